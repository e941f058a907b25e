"""The accepted set of atom, red and surface instructions, form by form, against what ptxas accepts.

``tests/data/spec/ptxas_*.csv.gz`` hold one row for each combination of modifiers with the verdict of ptxas 13.0.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from itertools import groupby

import pytest

from ptxemu.check import check
from ptxemu.syntax.parser import parse
from ptxemu.text.errors import MAX_ERRORS, Diagnostics
from ptxemu.text.source import SourceFile
from tests.support.places import SPEC

Rows = list[dict[str, str]]

HEADER = """.version {version}
.target {target}
.address_size 64
.global .surfref s;
.shared .u32 sm;
.visible .entry k()
{{
    .reg .pred %p<10>; .reg .b8 %b<10>; .reg .b16 %h<10>; .reg .b32 %r<10>; .reg .b64 %d<10>; .reg .f32 %f<10>;
    .reg .f64 %g<10>; .reg .b128 %q<10>; .reg .b64 %a, %pol;
"""
FIRST_LINE = HEADER.count("\n") + 1


def read(name: str) -> Rows:
    path = SPEC / f"{name}.csv.gz"
    with gzip.open(path, "rt") as file:
        return list(csv.DictReader(file))


PORTION = MAX_ERRORS // 3  # few enough lines for every error to be reported, of the header and several of a line


def rejected(
    lines: list[str], *, version: str = "9.0", target: str = "sm_100", strict: bool = False, step: int = PORTION
) -> set[int]:
    """The indices of the lines that have errors, checked in portions of ``step`` lines."""
    found: set[int] = set()
    for start in range(0, len(lines), step):
        portion = lines[start : start + step]
        text = HEADER.format(version=version, target=target) + "\n".join([*portion, "ret;", "}", ""])
        source = SourceFile("forms.ptx", text)
        diagnostics = Diagnostics(source, strict)
        tree = parse(source, diagnostics)
        check(tree, source, diagnostics)
        lines_at_fault = [record.line for record in diagnostics.errors if record.line >= FIRST_LINE]  # not the header's
        found |= {start + line - FIRST_LINE for line in lines_at_fault}
    return found


def expect(lines: list[str], accepted: Iterable[bool], **options: object) -> None:
    """Lines without errors are checked together, which is faster, unless there is one among them."""
    right = list(accepted)
    wanted = {index for index, ok in enumerate(right) if not ok}
    good, bad = [i for i, ok in enumerate(right) if ok], sorted(wanted)
    got = {bad[i] for i in rejected([lines[i] for i in bad], **options)}  # type: ignore[arg-type]
    if good and rejected([lines[i] for i in good], step=len(good), **options):  # type: ignore[arg-type]
        got |= {good[i] for i in rejected([lines[i] for i in good], **options)}  # type: ignore[arg-type]
    assert [lines[i] for i in sorted(got - wanted)] == [], "rejected, though ptxas accepts them"
    assert [lines[i] for i in sorted(wanted - got)] == [], "accepted, though ptxas rejects them"


# ---------------------------------------------------------------- atom and red

BANKS = {"16": "h", "32": "r", "64": "d", "28": "q"}


def register_bank(kind: str) -> str:
    if kind in ("f32", "f64"):
        return {"f32": "f", "f64": "g"}[kind]
    return "r" if kind.endswith("x2") else BANKS[kind[-2:]]


def atom_line(row: dict[str, str]) -> str:
    """An instruction with the modifiers of a row and operands of the right types."""
    if row["ptx_line"]:
        return row["ptx_line"]
    slots = [row[name] for name in ("sem", "scope", "space", "op", "noftz", "vec", "type")]
    words = [word for word in slots if word not in ("none", "generic")]
    bank, length = register_bank(row["type"]), 1 if row["vec"] == "none" else int(row["vec"][1])
    value = f"%{bank}1" if length == 1 else "{" + ",".join([f"%{bank}{i}" for i in range(length)]) + "}"
    operands = ([value] if row["instr"] == "atom" else []) + ["[%a]", value] + ([value] if row["op"] == "cas" else [])
    return f"{row['instr']}.{'.'.join(words)} {', '.join(operands)};"


PARTS = 7  # of the forms of atom and red; no period of the list divides it, so that each has some of everything


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(PARTS))
def test_atom_forms(part: int) -> None:
    rows = read("ptxas_atom_forms")
    assert len(rows) == 14548
    rows = rows[part::PARTS]
    expect([atom_line(row) for row in rows], [row["accepted"] == "yes" for row in rows], strict=True)


def version_key(row: dict[str, str]) -> tuple[tuple[int, int], int]:
    major, minor = row["min_ptx"].split(".")
    return (int(major), int(minor)), int(row["min_sm"][3:])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(PARTS))
def test_atom_gates(part: int) -> None:
    """In strict mode a form is accepted from its version and target on, and not before (3.1 and sm_35 are floors)."""
    rows = sorted((row for row in read("ptxas_atom_forms")[part::PARTS] if row["accepted"] == "yes"), key=version_key)
    for (version, target), group in groupby(rows, key=version_key):
        lines = [atom_line(row) for row in group]
        least = {"version": f"{version[0]}.{version[1]}", "target": f"sm_{target}"}
        expect(lines, [True] * len(lines), strict=True, **least)
        if version > (3, 1):
            older = f"{version[0]}.{version[1] - 1}" if version[1] else f"{version[0] - 1}.9"
            expect(lines, [False] * len(lines), strict=True, **least | {"version": older})
        if target > 35:
            expect(lines, [False] * len(lines), strict=True, **least | {"target": f"sm_{target - 1}"})


# ---------------------------------------------------------------- tensor maps

REPLACED = "tensormap.replace.tile.{}.global.b1024.b32 [%a], {};"


@pytest.mark.parametrize(
    ("field", "version", "target", "most"),
    [("swizzle_mode", "8.8", "sm_103a", 4), ("swizzle_mode", "9.5", "sm_107a", 4), ("swizzle_mode", "9.5", "sm_103f", 3),
     ("swizzle_mode", "9.5", "sm_100a", 3), ("swizzle_mode", "8.3", "sm_90a", 3), ("swizzle_atomicity", "8.6", "sm_100a", 3),
     ("swizzle_atomicity", "9.5", "sm_90a", -1), ("elemtype", "8.7", "sm_100a", 15), ("elemtype", "8.6", "sm_100a", 12),
     ("elemtype", "9.5", "sm_90a", 12), ("elemtype", "8.8", "sm_120f", 15)],
)  # fmt: skip
def test_values_of_tensor_maps(field: str, version: str, target: str, most: int) -> None:
    """In strict mode, as ptxas 13.5 has it."""
    values = range(18)
    lines = [REPLACED.format(field, value) for value in values]
    expect(lines, [value <= most for value in values], strict=True, version=version, target=target)


# ---------------------------------------------------------------- tensor memory

SHIFT = "tcgen05.shift.cta_group::1.down [%r1];"
MULTIPLY = "tcgen05.mma.cta_group::1.kind::{} [%r1], %d1, %d2, %r2, %p1;"


@pytest.mark.parametrize(
    ("target", "accepted"),
    [("sm_100a", [True, True, True]), ("sm_100f", [False, True, False]), ("sm_103a", [True, True, False]),
     ("sm_107f", [False, True, False]), ("sm_110a", [True, True, True]), ("sm_110f", [False, True, False]),
     ("sm_120a", [False, False, False])],
)  # fmt: skip
def test_targets_with_tensor_memory(target: str, accepted: list[bool]) -> None:
    """In strict mode, as ptxas 13.5 has it."""
    expect([SHIFT, MULTIPLY.format("f16"), MULTIPLY.format("i8")], accepted, strict=True, version="9.5", target=target)


# ---------------------------------------------------------------- surfaces


def test_surface_forms_strict() -> None:
    rows = read("ptxas_surface_forms")
    assert len(rows) == 8115
    expect([row["ptx_line"] for row in rows], [row["accepted"] == "yes" for row in rows], strict=True)


def test_surface_forms_without_clamp() -> None:
    """Outside strict mode a form without clamp modifier is accepted where the same with ``.trap`` is."""
    rows = read("ptxas_surface_forms")
    names = ("instr", "mode", "op_or_query", "cache_op", "geom", "vec", "type")
    accepted = [row for row in rows if row["accepted"] == "yes" and row["clamp"] == "trap"]
    trapping = {tuple(row[name] for name in names) for row in accepted}
    bare = [row for row in rows if row["clamp"] == "none" and row["instr"] != "suq"]
    expect([row["ptx_line"] for row in bare], [tuple(row[name] for name in names) in trapping for row in bare])


SCALAR_FOR_2D = "suld.b.2d.b32.trap %r1, [s, %r2];"  # accepted by ptxas, which then reads an unspecified register


def test_surface_operands() -> None:
    rows = [row for row in read("ptxas_surface_operands") if row["ptx_line"] != SCALAR_FOR_2D]
    assert len(rows) == 74
    for row in rows:
        expect([row["ptx_line"]], [row["accepted"] == "yes"])
    expect([SCALAR_FOR_2D], [False])


@pytest.mark.parametrize(
    "line",
    [
        "atom.global.add.u32 _, [%a], 1;",
        "atom.u32.add.global.relaxed.gpu %r1, [%a+8], %r2;",
        "atom.global.L2::cache_hint.add.u32 %r1, [%a], 1, %pol;",
        "atom.global.v2.f32.add {_, %f1}, [%a], {%f1, %f2};",
        "atom.global.cas.b32 %r1, [%a], 0, 1;",
        "red.shared.add.u32 [sm+4], 5;",
        "red.shared.add.f32 [%r1], 1.5;",
        "red.add.u32 [sm], %r1;",
    ],
)
def test_atom_operands_accepted(line: str) -> None:
    expect([line], [True])


@pytest.mark.parametrize(
    "line",
    [
        "atom.add.u32 %r1, [%a], 1, %pol;",
        "atom.global.L2::cache_hint.add.u32 %r1, [%a], 1;",
        "atom.global.add.u32 %d1, [%a], 1;",
        "atom.global.add.f32 %f1, [%a], 1;",
        "atom.global.add.u32 %r1, [sm], 1;",
        "red.global.add.u32 [%r1], 1;",
        "red.global.add.v2.f32 [%a], %f1;",
    ],
)
def test_atom_operands_rejected(line: str) -> None:
    expect([line], [False])
