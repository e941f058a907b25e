"""Comparison and selection (PTX ISA 9.7.5 and 9.7.6)."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.ir.types import TYPES, ScalarType
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import arithmetic_inputs, constant, flush
from ptxemu.lower.values.float_formats import widen

FLOAT_CONDITIONS = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge",
    "num": "ord", "nan": "uno",
}  # fmt: skip
UNSIGNED_NAMES = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
HALVES = {"f16x2": "half", "bf16x2": "bfloat"}


def float_comparison(e: Emitter, op: Op, t: str, a: str, b: str) -> str:
    a, b = arithmetic_inputs(e, op, t, (a, b))
    t, a, b = (t, a, b) if t in ("float", "double") else ("float", widen(e, t, a), widen(e, t, b))
    return e.fcmp(FLOAT_CONDITIONS[op.mods["cmp"]], t, a, b)


def comparison(e: Emitter, op: Op, kind: ScalarType, a: str, b: str) -> str:
    if kind.is_float:
        return float_comparison(e, op, kind.llvm, a, b)
    cmp = op.mods["cmp"]
    if cmp in ("eq", "ne"):
        condition = cmp
    else:
        condition = UNSIGNED_NAMES.get(cmp) or ("s" if kind.is_signed else "u") + cmp
    return e.icmp(condition, kind.llvm, a, b)


def _combined(e: Emitter, op: Op, t: str, c: tuple[str, ...]) -> str:
    return e.bin(op.mods["bool"], "i1", t, c[0]) if c else t


@elementwise("setp")
def set_predicate(e: Emitter, op: Op, a: str, b: str, *c: str) -> str | tuple[str, ...]:
    """p = (a cmp b) op c; q = !(a cmp b) op c."""
    t = comparison(e, op, op.type(), a, b)
    p = _combined(e, op, t, c)
    if len(op.dsts) == 1:
        return p
    return p, _combined(e, op, e.bin("xor", "i1", t, e.int(1, 1)), c)


@elementwise("setp2")
def set_predicates_packed(e: Emitter, op: Op, a: str, b: str, *c: str) -> tuple[str, ...]:
    """One predicate for each half: p for the low one, q (if there is one) for the high one."""
    element = HALVES[op.mods["type"]]
    return tuple(
        _combined(e, op, float_comparison(e, op, element, _half(e, element, a, i), _half(e, element, b, i)), c)
        for i in range(len(op.dsts))
    )


def _half(e: Emitter, element: str, x: str, index: int) -> str:
    bits = e.bin("lshr", "i32", x, e.int(32, 16)) if index else x
    return e.cast("bitcast", "i16", e.cast("trunc", "i32", bits, "i16"), element)


def _truth_value(e: Emitter, kind: ScalarType, t: str) -> str:
    """1.0 or 0.0 for float destinations, else all ones or zero."""
    if kind.name == "bf16":
        return e.cast("bitcast", "i16", e.select(t, "i16", e.int(16, 0x3F80), e.int(16, 0)), "bfloat")
    if kind.is_float:
        return e.select(t, kind.llvm, e.splat(kind.llvm, "1.0"), e.splat(kind.llvm, "0.0"))
    return e.cast("sext", "i1", t, kind.llvm)


@elementwise("set")
def set_value(e: Emitter, op: Op, a: str, b: str, *c: str) -> str:
    t = _combined(e, op, comparison(e, op, op.type("stype"), a, b), c)
    return _truth_value(e, op.type("dtype"), t)


@elementwise("set2")
def set_value_packed(e: Emitter, op: Op, a: str, b: str, *c: str) -> str:
    """Each half of the result is 1.0 or 0.0 (``f16x2``, ``bf16x2``), 0xffff or 0 (``u32``, ``s32``)."""
    element = HALVES[op.mods["stype"]]
    one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(op.mods["dtype"], 0xFFFF)
    result = e.int(32, 0)
    for i in range(2):
        t = _combined(e, op, float_comparison(e, op, element, _half(e, element, a, i), _half(e, element, b, i)), c)
        result = e.bin("or", "i32", result, e.select(t, "i32", e.int(32, one << 16 * i), e.int(32, 0)))
    return result


@elementwise("set.packed")
def set_integers_packed(e: Emitter, op: Op, a: str, b: str) -> str:
    """Each element of the result is all ones or zero."""
    packed = op.mods["type"]
    bits = 8 if packed.endswith("x4") else 16
    kind = TYPES[f"{packed[0]}{bits}"]
    result = e.int(32, 0)
    for shift in range(0, 32, bits):
        x, y = (e.cast("trunc", "i32", e.bin("lshr", "i32", word, e.int(32, shift)), kind.llvm) for word in (a, b))
        ones = e.int(32, (1 << bits) - 1 << shift)
        result = e.bin("or", "i32", result, e.select(comparison(e, op, kind, x, y), "i32", ones, e.int(32, 0)))
    return result


@elementwise("selp")
def select_by_predicate(e: Emitter, op: Op, a: str, b: str, p: str) -> str:
    return e.select(p, op.type().llvm, a, b)


@elementwise("slct")
def select_by_sign(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    """``c >= 0 ? a : b``: -0 selects a, NaN selects b."""
    kind = op.type("ctype")
    if kind.is_float:
        c = flush(e, "float", c) if "ftz" in op.mods else c
        condition = e.fcmp("oge", "float", c, e.f32(0.0))
    else:
        condition = e.icmp("sge", "i32", c, constant(e, "i32", 0))
    return e.select(condition, op.type("dtype").llvm, a, b)
