"""``ptxemu compile`` of modules of several kernels: all of them, in one file or in a file each."""

from __future__ import annotations

import json

import pytest
from elftools.elf.elffile import ELFFile

from ptxemu.cli import run

MODULE = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry _ZN4math3oneEPj(.param .u64 p) { .reg .b64 %rd; ld.param.u64 %rd, [p]; st.global.u32 [%rd], 111; ret; }
.visible .entry two(.param .u64 p) { .reg .b64 %rd; ld.param.u64 %rd, [p]; st.global.u32 [%rd], 222; ret; }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "k.ptx").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def functions(path) -> set[str]:
    """The functions that an object defines for others."""
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return {one.name for one in symbols if one["st_info"]["type"] == "STT_FUNC" and one["st_info"]["bind"] == "STB_GLOBAL"}


def test_one_object_has_all_kernels(folder, capsys):
    assert run(["compile", "k.ptx", "--emit", "obj", "-o", "all.o"]) == 0
    assert capsys.readouterr().out == "all.o: math::one is kernel\nall.o: two is kernel.1\n"
    assert functions(folder / "all.o") == {"kernel", "kernel.1"}


def test_a_folder_has_a_file_of_each_kernel(folder, capsys):
    for kind, suffix in (("obj", ".o"), ("asm", ".s"), ("llvm", ".ll"), ("ir", ".ir")):
        assert run(["compile", "k.ptx", "--emit", kind, "-o", "made/"]) == 0
        assert (folder / "made" / f"_ZN4math3oneEPj{suffix}").stat().st_size > 100
        assert (folder / "made" / f"two{suffix}").stat().st_size > 100
    assert capsys.readouterr().out == ""
    assert functions(folder / "made" / "two.o") == {"kernel"}
    assert "222" in (folder / "made" / "two.ir").read_text() and "111" not in (folder / "made" / "two.ir").read_text()


def test_texts_of_all_kernels_go_to_stdout(capsys):
    for kind in ("asm", "llvm", "ir"):
        assert run(["compile", "k.ptx", "--emit", kind]) == 0
        text = capsys.readouterr().out
        assert "111" in text and "222" in text
    assert run(["compile", "k.ptx", "--entry", "one", "--emit", "ir"]) == 0
    assert "222" not in capsys.readouterr().out


def test_json(capsys):
    assert run(["compile", "k.ptx", "--emit", "obj", "-o", "all.o", "--json"]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    names = [(kernel["name"], kernel["plain_name"], kernel["symbol"]) for kernel in file["kernels"]]
    assert names == [("_ZN4math3oneEPj", "math::one", "kernel"), ("two", "two", "kernel.1")]
    assert file["file"] == "all.o" and file["bytes"] > 100
    assert run(["compile", "k.ptx", "--emit", "llvm", "--json"]) == 0
    assert "define void @kernel" in json.loads(capsys.readouterr().out)["files"][0]["text"]
    assert run(["compile", "k.ptx", "--emit", "obj", "--json"]) == 2
    assert "--json with --emit obj needs -o" in capsys.readouterr().err


def test_wrong_outputs(folder, capsys):
    (folder / "file").write_text("")
    assert run(["compile", "k.ptx", "-o", "file/"]) == 2
    assert "file/" in capsys.readouterr().err
    (folder / "none.ptx").write_text(".version 7.8\n.target sm_70\n")
    assert run(["compile", "none.ptx"]) == 2
    assert "none.ptx: has no kernels" in capsys.readouterr().err
