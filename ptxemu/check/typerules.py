"""Which registers and literals an instruction type accepts (PTX ISA, "Instruction Operands", "Type Checking")."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ptxemu.ir.ops import Imm
from ptxemu.ir.types import ScalarType
from ptxemu.syntax import ast

INTEGER_PAIRS = frozenset({"u16x2", "s16x2"})


def register_fits(instruction: ScalarType, register: ScalarType, relaxed: bool) -> bool:
    """Whether a register may be an operand of an instruction type.

    ``relaxed`` is the rule of ld, st, cvt and the surface instructions: the register may be wider than the
    instruction type ("Operand Size Exceeding Instruction-Type Size").
    """
    if instruction is register:
        return True
    kind, held = instruction.kind, register.kind
    if kind in ("pred", "opaque") or held in ("pred", "opaque"):
        return False
    if register.bits != instruction.bits and not (relaxed and register.bits > instruction.bits):
        return False
    if kind == "b":
        return True
    if kind in "us":
        return held in "usb"
    return held == "b" or (instruction.name in INTEGER_PAIRS and register.name == "f16x2")


def vector_fits(kind: ScalarType, held: Sequence[ScalarType], *, integers: bool = True) -> bool:
    """Whether registers side by side fit because they are untyped together.

    They are if their types differ, but integers and floats do not go together; and ``integers`` are in a vector of floats.
    """
    if any(one.kind in ("pred", "opaque") or one.bits != kind.bits for one in held):
        return False
    classes = {"integer" if one.kind in "us" else one.kind for one in held} - {"b"}
    several = len(set(held)) > 1
    return len(classes) < 2 and (several or (integers and kind.is_float and classes == {"integer"}))


def special_fits(instruction: ScalarType, types: tuple[ScalarType, ...]) -> bool:
    """Whether a special register that reads as ``types`` may be a source of an instruction type."""
    return any(register_fits(instruction, kind, relaxed=False) for kind in types)


def literal_fits(instruction: ScalarType, literal: ast.Int | ast.Float) -> bool:
    """Integers fit integer, bit and predicate types; floats fit f32, f64 and bit types of their own width."""
    if isinstance(literal, ast.Int):
        return instruction.kind in ("u", "s", "b", "pred")
    return instruction.name in ("f32", "f64") or (instruction.kind == "b" and instruction.bits == literal.width)


def literal_value(instruction: ScalarType, literal: ast.Int | ast.Float) -> Imm:
    """The constant a literal denotes: integers wrap to the width, floats are converted to f32 or f64."""
    if isinstance(literal, ast.Float):
        return Imm(float_bits(literal, instruction), instruction)
    if instruction.kind == "pred":
        return Imm(int(literal.value != 0), instruction)
    return Imm(literal.value & ((1 << instruction.bits) - 1), instruction)


def literal_number(literal: ast.Float) -> float:
    """The number that a floating-point literal denotes."""
    size = literal.width // 8
    value: float = struct.unpack("<f" if size == 4 else "<d", literal.bits.to_bytes(size, "little"))[0]
    return value


def float_bits(literal: ast.Float, target: ScalarType) -> int:
    """The bits of a float literal as ``target``; narrowing rounds to nearest even, overflow gives infinity."""
    if literal.width == target.bits or not target.is_float:
        return literal.bits
    if target.bits == 64:
        (value,) = struct.unpack("<f", literal.bits.to_bytes(4, "little"))
        return int.from_bytes(struct.pack("<d", value), "little")
    (value,) = struct.unpack("<d", literal.bits.to_bytes(8, "little"))
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000
