"""``ptxemu record`` and ``test --update``: expected arrays in files, who made them, and that these lie where they should."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run
from ptxemu.process.cuda import library_path
from tests.support import api_kernels as ptx

CASE = """
title = "saxpy"
ptx = "saxpy.ptx"
grid = 1
block = 32
[args]
n = 4
a = 2
x = { values = [1, 2, 3, 4], dtype = "f32" }
y = { full = { dtype = "f32", shape = 4, value = 0.5 } }
"""
EXPECTS = '[expect.outputs.y]\nnpy = "expected/y.npy"\n'
RIGHT = [2.5, 4.5, 6.5, 8.5]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, in another one that nothing may write to."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "saxpy.ptx").write_text(ptx.SAXPY)
    monkeypatch.chdir(inner)
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    return inner


def write(more: str = "", name: str = "case.toml", case: str = CASE) -> None:
    Path(name).write_text(case + more)


def facts(path: str = "expected/y.npy.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(path).read_text())
    return found


def test_names_of_arrays_are_keys() -> None:
    """Also of letters that JSON writes as two escapes, which TOML does not take."""
    write("[buffers]\n'𝐲' = { full = { dtype = 'f32', shape = 4, value = 0.5 } }\n", case=CASE.replace("y = {", "y = '𝐲'\n#"))
    assert run(["record", "case.toml"]) == run(["test", "case.toml"]) == 0
    np.testing.assert_array_equal(np.load("expected/𝐲.npy"), RIGHT)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    write(EXPECTS)
    changes = []
    for _ in range(2):
        assert run(["record", "case.toml", "--json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        (file,) = found["files"]
        changes.append(file.pop("change"))
    assert found["case"] == "case.toml" and found["by"]["engine"] == "jit" and changes == ["new", "as before"]
    assert file == {"name": "y", "file": "expected/y.npy", "dtype": "float32", "shape": [4]}


def refused(message: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
    assert run(["record", "case.toml", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


def test_a_case_without_expectations_gets_them(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert run(["test", "."]) == 2
    assert run(["record", "case.toml"]) == 0
    assert "saxpy" in Path("case.toml").read_text() and EXPECTS.replace(".y]", '."y"]') in Path("case.toml").read_text()
    np.testing.assert_array_equal(np.load("expected/y.npy"), np.array(RIGHT, np.float32))
    assert not Path("expected/x.npy").exists(), "no kernel changed it"
    assert run(["test", "."]) == 0
    capsys.readouterr()
    assert run(["record", "case.toml"]) == 0
    assert f"case.toml: by ptxemu {ptxemu.__version__}\n  y: float32[4] in expected/y.npy (as before)" in capsys.readouterr().out


def test_who_made_it_is_kept() -> None:
    write(EXPECTS)
    assert run(["record", "case.toml", "--engine", "interpreter"]) == 0
    found = facts()
    assert found["emulator"] == f"ptxemu {ptxemu.__version__}" and found["engine"] == "interpreter"
    assert abs(datetime.now(UTC) - datetime.fromisoformat(found["date"])) < timedelta(minutes=10)
    assert found["programs"] == {"saxpy.ptx": f"sha256:{hashlib.sha256(ptx.SAXPY.encode()).hexdigest()}"}


def test_an_update_shows_the_difference_and_is_what_is_expected_from_then_on(capsys: pytest.CaptureFixture[str]) -> None:
    write(EXPECTS + '[expect.outputs.x]\nexpression = "x"\n')
    assert run(["record", "case.toml"]) == 0
    kept = Path("expected/y.npy").read_bytes()
    Path("saxpy.ptx").write_text(ptx.SAXPY.replace("fma.rn.f32 %f3, %f1, %f2, %f3", "mul.rn.f32 %f3, %f1, %f2"))
    assert run(["test", "."]) == 1
    assert Path("expected/y.npy").read_bytes() == kept
    capsys.readouterr()
    assert run(["test", ".", "--update"]) == 0
    out = capsys.readouterr().out
    assert "case.toml: updated\ny: 4 of 4 differ; first at [0]: 2.0, expected 2.5" in out and "0 of 1 passed, 1 updated" in out
    np.testing.assert_array_equal(np.load("expected/y.npy"), np.array([2, 4, 6, 8], np.float32))
    assert run(["test", "."]) == 0


def test_what_is_computed_is_not_updated() -> None:
    write(EXPECTS + '[expect.outputs.x]\nexpression = "x + 1"\n')
    Path("expected").mkdir()
    np.save("expected/y.npy", np.zeros(4, np.float32))
    assert run(["test", ".", "--update"]) == 1, "x differs still"
    np.testing.assert_array_equal(np.load("expected/y.npy"), np.array(RIGHT, np.float32))


def test_points_of_a_sweep_have_files_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = "[[matrix]]\nk = [1, 2]\n"
    write(sweep, case=CASE.replace("a = 2", 'a = "${k}"'))
    refused("case.toml: is a sweep: say which files", capsys)
    write(sweep + EXPECTS.replace("/y.npy", "/${k}.npy"), case=CASE.replace("a = 2", 'a = "${k}"'))
    assert run(["record", "."]) == 0
    assert [np.load(f"expected/{k}.npy")[0] for k in (1, 2)] == [1.5, 2.5]
    assert run(["test", "."]) == 0


def test_pictures_and_small_floats_are_recorded() -> None:
    text = CASE.replace('x = { values = [1, 2, 3, 4], dtype = "f32" }', 'x = { full = { dtype = "f32", shape = 4, value = 0 } }')
    buffers = (
        'p = { full = { dtype = "u8", shape = [4, 4, 4], value = 7 } }',
        'b = { full = { dtype = "bf16", shape = 3, value = 2 } }',
    )
    write(
        "\n".join(("[buffers]", *buffers, "")) + '[expect.outputs.p]\npng = "p.png"\n[expect.outputs.b]\nnpy = "b.npy"\n',
        case=text,
    )
    assert run(["record", "case.toml"]) == 0
    assert run(["test", "."]) == 0
    assert Path("p.png.json").exists()


@pytest.mark.parametrize("name", ["../x.npy", "/tmp/x.npy", "link/x.npy", "file.npy", "beside.npy"])
def test_nothing_is_written_elsewhere(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link").symlink_to("..")
    (folder / "file.npy").symlink_to("../x.npy")
    (folder / "beside.npy.json").symlink_to("../x.json")
    write(f'[expect.outputs.y]\nnpy = "{name}"\n')
    before = sorted(folder.parent.iterdir())
    refused(f"'{name}{'.json' * (name == 'beside.npy')}' does not lie below", capsys)
    assert sorted(folder.parent.iterdir()) == before and not (folder / "beside.npy").exists()


@pytest.mark.parametrize("name", ["../../y", "a/b", ".", "..", "", "\\u0000", "n" * 300])
def test_names_of_arrays_are_no_paths(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = CASE.replace("\nn =", "\ncount =").replace("\na =", "\nfactor =").replace("\nx =", "\nleft =")
    write(case=own.replace("\ny = {", f'\n"{name}" = {{'))
    refused("no file can be named as the array", capsys)
    assert sorted(path.name for path in folder.iterdir()) == ["case.toml", "saxpy.ptx"]


def test_what_cannot_be_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    write('[expect.outputs.y]\nexpression = "y"\n')
    refused("case.toml: expects what is computed, so there is nothing to record", capsys)
    write(case=CASE.replace("n = 4", "n = 0"))
    refused("nothing changes an array of the case", capsys)
    write("expect = { tolerance = { abs = 1 } }\n", case="", name="case.toml")
    Path("case.toml").write_text("expect = { tolerance = { abs = 1 } }\n" + CASE)
    refused('expect: cannot be added to; write into the file:\n[expect.outputs."y"]\nnpy = "expected/y.npy"', capsys)
    assert run(["test", ".", "--update", "--isolate"]) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "nobody knows whom"),
        ("[1]", "nobody knows whom"),
        ('{"device": 3}', "was by 3"),
        ("[" * 100_000, "nobody knows whom"),
    ],
)
def test_provenance_that_is_damaged_is_none(content: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(EXPECTS)
    Path("expected").mkdir()
    np.save("expected/y.npy", np.zeros(4, np.float32))
    Path("expected/y.npy.json").write_text(content)
    assert run(["record", "case.toml"]) == 0
    assert message in capsys.readouterr().out
    assert "emulator" in facts()


SCRIPT = """
import json, sys, numpy as np
inputs, outputs = sys.argv[1:]
scalars = json.load(open(inputs + "/scalars.json"))
assert scalars == {"n": 4, "a": 2}
x, y = (np.load(f"{inputs}/{name}.npy") for name in "xy")
np.save(f"{outputs}/y.npy", scalars["a"] * x + y)
"""


def test_another_executable_may_make_them() -> None:
    write()
    Path("script.py").write_text(SCRIPT)
    command = f"{sys.executable} script.py {{inputs}} {{outputs}}"
    assert run(["record", "case.toml", "--from-command", command]) == 0
    assert facts()["command"] == command
    assert run(["test", "."]) == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sh -c 'echo no luck >&2; exit 3'", "--from-command: ended with code 3: no luck"),
        ("true", "has written no NAME.npy to {outputs}"),
        ("cp {inputs}/x.npy {outputs}/z.npy", "expect.outputs.y.npy: nothing has made 'y'"),
        ("sh -c 'echo x > {outputs}/y.npy'", "not a valid .npy file"),
        ("ln -s {inputs}/.. {outputs}/y.npy", "is a folder"),
        ("no-such-program", "No such file"),
        ("'", "No closing quotation"),
        ("", "is empty"),
        ("sleep 60", "took longer than 0.5 s"),
    ],
)
def test_executables_that_make_nothing(command: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(EXPECTS)
    refused(message, capsys, "--from-command", command, "--timeout", "0.5")
    assert not Path("expected").exists()


def test_a_cuda_driver_makes_the_same() -> None:
    """The driver is ptxemu's own libcuda.so.1, and what is recorded says so."""
    write(EXPECTS)
    assert run(["record", "case.toml", "--from", "cuda", "--library", str(library_path() / "libcuda.so.1")]) == 0
    assert facts()["device"].startswith("ptxemu") and facts()["driver"].startswith("CUDA 1")
    assert "emulator" not in facts()
    np.testing.assert_array_equal(np.load("expected/y.npy"), np.array(RIGHT, np.float32))
    assert run(["test", "."]) == 0


def test_linked_programs_structs_and_cooperative_launches_on_a_driver() -> None:
    library = str(library_path() / "libcuda.so.1")
    caller = ptx.HEAD + ".extern .func (.param .b32 r) twice (.param .b32 a);\n" + """
.visible .entry k(.param .u64 out, .param .align 4 .b8 p[8]) {
  .reg .b32 %r<5>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [p+4]; mov.u32 %r4, %tid.x; add.u32 %r1, %r1, %r4;
  { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), twice, (a); ld.param.b32 %r2, [r]; }
  mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r2; ret;
}
"""  # fmt: skip
    callee = ptx.HEAD + """
.visible .func (.param .b32 r) twice (.param .b32 a) {
  .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
}
"""  # fmt: skip
    Path("a.ptx").write_text(caller)
    Path("b.ptx").write_text(callee)
    case = 'ptx = ["a.ptx", "b.ptx"]\ngrid = 1\nblock = 4\ncooperative = true\nshared = 64\n[args]\n'
    case += 'out = { zeros = { dtype = "u32", shape = 4 } }\n'
    write("p = { struct = [{ u32 = 0 }, { u32 = 5 }] }\n" + '[expect.outputs.out]\nnpy = "out.npy"\n', case=case)
    assert run(["record", "case.toml", "--from", "cuda", "--library", library]) == 0
    assert np.load("out.npy").tolist() == [10, 12, 14, 16]
    Path("poke.ptx").write_text(ptx.STRUCT)
    case = 'ptx = "poke.ptx"\ngrid = 1\nblock = 1\n[buffers]\nw = { zeros = { dtype = "f32", shape = 4 } }\n'
    write('[args]\np = { struct = [{ u32 = 2 }, { f32 = 1.5 }, { ptr = "w" }] }\n', case=case)
    assert run(["record", "case.toml", "--from", "cuda", "--library", library]) == 0
    assert np.load("expected/w.npy").tolist() == [0, 0, 1.5, 0]


def test_a_kernel_that_does_not_end_on_a_gpu_is_left_behind() -> None:
    """In a process of its own, which takes the kernel along when it ends."""
    Path("endless.ptx").write_text(ptx.ENDLESS)
    write(case='ptx = "endless.ptx"\ngrid = 1\nblock = 1\n[buffers]\nx = { zeros = { dtype = "u8", shape = 1 } }\n')
    library = str(library_path() / "libcuda.so.1")
    command = [sys.executable, "-m", "ptxemu", "record", ".", "--from", "cuda", "--library", library, "--timeout", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (1, "ptxemu: error: kernel `endless` did not end in time on the GPU\n")


@pytest.mark.parametrize(
    ("more", "library", "message"),
    [
        ("", "libm.so.6", "libm.so.6 has no cuInit: it is no CUDA driver"),
        ("", "/none.so", "no CUDA driver: /none.so"),
        ("[options]\nout_of_range = 'zero'\n", "libm.so.6", "options.out_of_range: is for the emulator"),
    ],
)
def test_what_no_driver_makes(more: str, library: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(more + EXPECTS)
    refused(message, capsys, "--from", "cuda", "--library", library)
