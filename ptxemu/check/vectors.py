"""Operands in braces: how many elements they have, and of which types."""

from __future__ import annotations

from itertools import pairwise

from ptxemu.check import typerules
from ptxemu.check.candidate import Candidate
from ptxemu.check.operands import Computed, Value
from ptxemu.check.plan import Mismatch
from ptxemu.ir.ops import Reg, SReg
from ptxemu.ir.types import B32, TYPES, ScalarType
from ptxemu.isa.operands import OperandPattern
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError

PACKED_LENGTHS = (1, 2, 4)


def joined(form: Candidate, index: int, kind: ScalarType, value: tuple[Value, ...]) -> bool:
    """Whether the elements of a vector are registers of several types that fit nevertheless.

    They have one size, and together the bit type of that size.
    """
    types = {item.type for item in value if isinstance(item, Reg)}
    if len({held.bits for held in types}) > 1:
        raise Mismatch("the elements of a vector must have one size", index)
    fragment = "fragments" in form.row.traits
    if fragment:
        _fragment(form, index, types, value)
    else:
        _alike(index, value)
    mixed = any(isinstance(item, ast.Float) and item.width == 32 for item in value)
    if mixed and any(isinstance(item, ast.Int) for item in value):
        raise Mismatch("a vector cannot hold integer and 0f literals", index)
    present = [item for item in value if item is not None]
    if not present or any(not isinstance(item, Reg) or isinstance(item, Computed) for item in present):
        return False
    if not fragment and len(value) > 1 and typerules.vector_fits(kind, [item.type for item in present]):
        return True
    if len(types) < 2:
        return False
    bits = next(iter(types)).bits
    return f"b{bits}" in TYPES and typerules.register_fits(kind, TYPES[f"b{bits}"], form.relaxed)


def _alike(index: int, value: tuple[Value, ...]) -> None:
    """Registers side by side are both integers, both of one floating-point type, or one of them is untyped."""
    held = [item.type if isinstance(item, Reg) else B32 for item in value if item is not None]
    words = ["integer" if kind.kind in "us" else "" if kind.kind == "b" else kind.name for kind in held]
    if any(one and other and one != other for one, other in pairwise(words)):
        raise Mismatch("the elements of a vector must have one type", index)


def _fragment(form: Candidate, index: int, types: set[ScalarType], value: tuple[Value, ...]) -> None:
    """Registers of one type, except for untyped ones; a lone element is a register."""
    if len({"integer" if held.kind in "us" else held.name for held in types if held.kind != "b"}) > 1:
        raise Mismatch("the elements of a fragment must have one type", index)
    if len(value) == 1 and not isinstance(value[0], Reg):
        raise Mismatch("the element of a fragment must be a register", index)


def scalar(form: Candidate, index: int, pattern: OperandPattern) -> int:
    length = form.length(pattern) or 1
    if (
        length > 1
        and pattern.role == "src"
        and "packed" in form.row.traits
        and isinstance(form.values[index], (ast.Int, ast.Float))
    ):
        raise UnsupportedError("a literal in place of a vector is not supported")
    if pattern.count == "1":
        raise Mismatch(f"operand {index + 1} of '{form.row.opcode}' must be in braces", index)
    if length > 1 and not (form.values[index] is None and pattern.sink):
        raise Mismatch(f"operand {index + 1} of '{form.row.opcode}' must be a vector of {length} elements", index)
    return length


def unpacked(form: Candidate) -> None:
    """One side of a mov that packs or unpacks is not a vector."""
    if "moves" in form.row.traits and "vec" not in form.mods and [type(value) for value in form.values] == [tuple, tuple]:
        raise Mismatch("'mov' needs '.v2' or '.v4' to copy a vector to a vector", 1)


def elements(form: Candidate, index: int, pattern: OperandPattern, kind: ScalarType, value: Value) -> tuple[ScalarType, ...]:
    """The element types of a braced operand."""
    length = form.length(pattern)
    if length == len(value):
        return (kind,) * length
    if length == 1 and "packed" in form.row.traits and len(value) in PACKED_LENGTHS and pattern.count not in form.mods:
        raise UnsupportedError(f"a vector without '.v{len(value)}' is not supported")
    if length is not None:
        wanted = f"{length} element" + ("s" if length > 1 else "")
        raise Mismatch(f"operand {index + 1} of '{form.row.opcode}' must have {wanted}, not {len(value)}", index)
    width = kind.bits // len(value)
    if "moves" in form.row.traits and kind.kind == "b" and len(value) in PACKED_LENGTHS and width >= 8:
        return (TYPES[f"b{width}"],) * len(value)
    if "moves" in form.row.traits and kind.kind == "b":
        raise Mismatch(f"{len(value)} elements cannot make up {kind}; there may be 2 or 4", index)
    if all(isinstance(item, (SReg, ast.Int)) for item in value) and isinstance(value[0], SReg):
        name = value[0].name.partition(".")[0]
        raise Mismatch(f"'%{name}' has several components: write %{name}.x, %{name}.y or %{name}.z", index)
    raise Mismatch(f"operand {index + 1} of '{form.row.opcode}{form.written()}' must not be a vector", index)
