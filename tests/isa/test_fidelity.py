"""What is said of the bits of results agrees with the numerics that they have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxemu import isa
from ptxemu.cli import run
from ptxemu.ir.numerics import numerics_of
from ptxemu.isa.fidelity import (
    BOUND,
    CHAINS,
    DEFINED,
    IN_TABLE,
    IN_WORDS,
    MEASURED,
    MUFU,
    MUFU_90,
    OPEN,
    SPARSE_SUMS,
    SUMS,
    TENSOR_SUMS,
    UNCHECKED,
    WARPGROUP_SUMS,
    fidelity_of,
)
from ptxemu.isa.table import Row

F16 = {"atype": "f16", "dtype": "f32", "ctype": "f32", "shape": "m16n8k16"}
FP8 = F16 | {"atype": "e4m3"}


def one(bits: str) -> Row:
    return next(row for forms in isa.rows().values() for row in forms if row.bits == bits)


@pytest.mark.parametrize(
    ("bits", "mods", "like", "kind"),
    [(MUFU, {}, "", BOUND), (MUFU, {}, "exact", BOUND), (MUFU, {}, "sm_89", MEASURED), (MUFU_90, {}, "", BOUND),
     (MUFU_90, {}, "sm_90", MEASURED), (MUFU_90, {}, "sm_89", UNCHECKED), (SUMS, F16, "", MEASURED),
     (SUMS, F16, "sm_75", UNCHECKED), (SUMS, F16, "sm_120", UNCHECKED), (SUMS, F16, "exact", OPEN),
     (SUMS, FP8, "sm_75", MEASURED), (SPARSE_SUMS, F16, "", MEASURED), (SPARSE_SUMS, F16, "sm_80", UNCHECKED),
     (SPARSE_SUMS, FP8, "sm_75", UNCHECKED), (SPARSE_SUMS, FP8, "", MEASURED), (SPARSE_SUMS, F16, "exact", OPEN),
     (CHAINS, {}, "", MEASURED), (CHAINS, {}, "sm_80", UNCHECKED), (CHAINS, {}, "exact", MEASURED),
     (WARPGROUP_SUMS, F16, "sm_80", MEASURED), (WARPGROUP_SUMS, F16, "exact", OPEN), (TENSOR_SUMS, {}, "sm_90", UNCHECKED),
     (TENSOR_SUMS, {}, "exact", OPEN), (DEFINED, {}, "", DEFINED)],
)  # fmt: skip
def test_kinds(bits: str, mods: dict[str, str], like: str, kind: str) -> None:
    assert fidelity_of(one(bits), mods, numerics_of(like, ("sm_90",))) == kind


TEXT = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d)
{
  .reg .f32 %x; .reg .b64 %p;
  ld.param.u64 %p, [d]; ld.global.f32 %x, [%p]; ex2.approx.f32 %x, %x; st.global.f32 [%p], %x; ret;
}
"""


LOOP = TEXT.replace("ex2.approx.f32 %x, %x;", "mov.u32 %n, %tid.x; L: setp.eq.u32 %q, %n, 0; @%q bra E; sub.u32 %n, %n, 1;"
                    " ex2.approx.f32 %x, %x; setp.eq.u32 %q, %n, 1; @%q rcp.approx.f32 %x, %x; bra L; E:").replace(
                    ".reg .b64", ".reg .b32 %n; .reg .pred %q; .reg .b64")  # fmt: skip
ONE = "  {}instructions: 4 defined by PTX, executed {:,} times; 1 {} (ex2.approx.f32), executed {:,} times\n"


@pytest.mark.parametrize(("like", "kind"), [([], BOUND), (["--like", "sm_90"], MEASURED)])
def test_a_run_says_it_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], like: list[str], kind: str) -> None:
    (tmp_path / "k.ptx").write_text(TEXT)
    options = ["--grid", "20", "--block", "40", "--arg", "d=zeros:f32:1", "--fidelity", *like]
    assert run(["run", str(tmp_path / "k.ptx"), *options]) == 0
    assert ONE.format("", 3200, IN_WORDS[kind], 800) in capsys.readouterr().out
    assert run(["run", str(tmp_path / "k.ptx"), *options, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["fidelity"][kind] == {"ex2.approx.f32": 1} and facts["executed"][kind] == {"ex2.approx.f32": 800}
    assert run(["info", str(tmp_path / "k.ptx"), *like]) == 0
    assert f"1  {IN_WORDS[kind]}\n" in capsys.readouterr().out
    assert run(["run", str(tmp_path / "k.ptx"), *options, "--engine", "jit"]) == 0
    assert f"  instructions: 4 defined by PTX, 1 {IN_WORDS[kind]} (ex2.approx.f32)\n" in capsys.readouterr().out


def test_loops_and_guards_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thread i goes round i times; all but the first two come to the guarded instruction once with a guard that holds."""
    (tmp_path / "k.ptx").write_text(LOOP)
    assert (
        run(["run", str(tmp_path / "k.ptx"), "--grid", "1", "--block", "40", "--arg", "d=zeros:f32:1", "--fidelity", "--json"])
        == 0
    )
    executed = json.loads(capsys.readouterr().out)["executed"]
    assert executed[BOUND] == {"ex2.approx.f32": sum(range(40)), "rcp.approx.f32": 38}
    assert executed[DEFINED]["sub.u32"] == sum(range(40)) and executed[DEFINED]["ret"] == 40


def test_a_case_says_it_of_each_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.ptx").write_text(TEXT)
    launch = '[[launch]]\nentry = "k"\ngrid = 1\nblock = 1\nargs = { d = "d" }\n'
    buffers = '[buffers]\nd = { zeros = { dtype = "f32", shape = 1 } }\n'
    (tmp_path / "case.toml").write_text(f'ptx = "k.ptx"\n{buffers}{2 * launch}')
    assert run(["run", str(tmp_path / "case.toml"), "--fidelity"]) == 0
    assert capsys.readouterr().out.count(ONE.format("k: ", 8, IN_WORDS[BOUND], 2)) == 1
    assert run(["run", str(tmp_path / "case.toml"), "--fidelity", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["fidelity"]["k"][BOUND] == {"ex2.approx.f32": 1} and facts["executed"]["k"][BOUND] == {"ex2.approx.f32": 2}


def test_approximate_rows_are_not_called_defined() -> None:
    for forms in isa.rows().values():
        for row in forms:
            assert row.bits in {*IN_WORDS, *IN_TABLE}, row.text
            approximate = row.supported and any("approx" in qualifier.values for qualifier in row.qualifiers)
            assert not approximate or row.bits in (MUFU, MUFU_90), row.text
            sums = row.lower == "mma" and any("s32" in qualifier.values for qualifier in row.qualifiers)
            assert row.lower != "mma" or sums == (row.bits == DEFINED), row.text
