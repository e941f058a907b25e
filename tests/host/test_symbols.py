"""Kernels by the names that they have in C++."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ptxemu
from ptxemu.cli import run
from ptxemu.text.symbols import plain_name

KERNEL = ".visible .entry {}() {{ ret; }}\n"
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("saxpy", "saxpy"),
        ("_Z6reducePKfPfi", "reduce"),
        ("_Z6kernelIfLi32EEvPT_S1_i", "kernel"),
        ("_ZN2at6native10vectorizedILi4ENS0_11FillFunctorIfEEEEviT0_", "at::native::vectorized"),
        ("_ZN12_GLOBAL__N_15scaleEPf", "scale"),
        ("_ZN35_GLOBAL__N__822878a0_5_an_cu__Z1gPf5scaleEPf", "scale"),
        ("_ZL5localPf", "local"),
        ("_Z3addP6float4S0_", "add"),
        ("_Z1", "_Z1"),
        ("_Z99short", "_Z99short"),
        ("_Z" + "9" * 5000, "_Z" + "9" * 5000),
        ("_Z", "_Z"),
        ("_ZplRK1AS1_", "_ZplRK1AS1_"),
        ("_ZTV3abc", "_ZTV3abc"),
        ("", ""),
    ],
)
def test_plain_names(symbol: str, name: str) -> None:
    assert plain_name(symbol) == name


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="binutils' c++filt is the oracle")
@pytest.mark.parametrize("symbol", ["_Z6reducePKfPfi", "_ZN4math5inner5scaleIfEEvPT_", "_ZN1a1bIiLb1EEEvv"])
def test_plain_names_are_what_binutils_says(symbol: str) -> None:
    whole = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout
    assert f"{plain_name(symbol)}<" in whole or f"{plain_name(symbol)}(" in whole


def test_kernels_are_found_by_plain_names() -> None:
    symbols = ["_Z5scalePf", "_ZN4math4normEPf", "_ZN4math3addIfEEvPT_", "_ZN4math3addIiEEvPT_", "plain"]
    module = ptxemu.loads(HEADER + "".join(map(KERNEL.format, symbols)))
    for name, symbol in (("scale", symbols[0]), ("math::norm", symbols[1]), ("norm", symbols[1]), ("plain", "plain")):
        assert module[name].name == symbol
        assert name in module
        assert module.get(name).name == symbol
    assert list(module) == symbols
    with pytest.raises(ptxemu.InputError, match="has several kernels 'add': _ZN4math3addIfEEvPT_, _ZN4math3addIiEEvPT_"):
        module["add"]
    with pytest.raises(ptxemu.InputError, match="has no kernel 'scales'; did you mean 'scale'"):
        module["scales"]
    assert "add" not in module
    assert module.get("orm", 1) == 1


def test_a_name_that_is_a_symbol_means_it() -> None:
    module = ptxemu.loads(HEADER + KERNEL.format("_Z3addv") + KERNEL.format("add"))
    assert module["add"].name == "add"


def test_faults_and_tables_have_plain_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{HEADER}.visible .entry _Z4bumpPi(.param .u64 p) {{ .reg .u64 %d; ld.param.u64 %d, [p]; st.u32 [%d], 1; ret; }}\n"
    with pytest.raises(ptxemu.Fault, match="null pointer in kernel `bump` at"):
        ptxemu.loads(text)["bump"][1, 1](None)
    (tmp_path / "k.ptx").write_text(text)
    assert run(["info", str(tmp_path / "k.ptx")]) == 0
    assert "\nkernel bump (_Z4bumpPi)\n" in capsys.readouterr().out
    assert run(["run", str(tmp_path / "k.ptx"), "--grid", "2", "--block", "1", "--arg", "p=zeros:u32:1"]) == 0
    assert capsys.readouterr().out.startswith("bump: 2 blocks in ")
