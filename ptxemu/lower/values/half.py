"""f16 and bf16 arithmetic (PTX ISA 9.7.4): computed in a wider format and rounded once."""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import (
    clamp_sign,
    exponent_mask,
    flush,
    flush_inputs,
    from_bits,
    is_nan,
    packed,
    saturate,
    sign_mask,
    to_bits,
)
from ptxemu.lower.values import mufu
from ptxemu.lower.values.approx import exp2, hyperbolic_tangent
from ptxemu.lower.values.float import SIGN_OPS, extreme_of
from ptxemu.lower.values.float_formats import add_odd, convert_float, flush_rounded, narrow_float, widen

OneElement = Callable[..., str]

OUTSIDE = 0x7FF7  # of f16 and bf16 alike, with either sign


def on_elements(e: Emitter, op: Op, fn: OneElement, *xs: str) -> str:
    """Apply ``fn(t, x, ...)`` to f16 or bf16 values, or to both halves of packed ones."""
    kind = op.mods["type"]
    t = "half" if kind.startswith("f16") else "bfloat"
    if kind.endswith("x2"):
        return packed(e, "i32", t, lambda *ys: fn(t, *ys), *xs)
    return fn(t, *xs)


def _wide_result(e: Emitter, name: str, t: str, xs: tuple[str, ...]) -> tuple[str, str]:
    """The result in a format from which one rounding is correct, and that format.

    Sums of two are rounded to f32, which has more than twice the bits and the range; products are exact in f32 (f16) or
    f64 (bf16, whose products leave the range of f32); three-operand sums are rounded to odd.
    """
    wide = "double" if t == "bfloat" and name in ("mul", "fma") else "float"
    ys = [convert_float(e, x, t, wide, "rn") for x in xs]
    if name != "fma":
        return e.bin("f" + name, wide, *ys), wide
    return add_odd(e, wide, e.bin("fmul", wide, ys[0], ys[1]), ys[2]), wide


@elementwise("add.half", "sub.half", "mul.half", "fma.half")
def arithmetic(e: Emitter, op: Op, *xs: str) -> str:
    def one(t: str, *ys: str) -> str:
        result, wide = _wide_result(e, op.opcode, t, flush_inputs(e, op, t, ys))
        if "sat" in op.mods:
            result = saturate(e, wide, result)
        narrow = convert_float(e, result, wide, t, "rn")
        if "ftz" in op.mods and op.opcode in ("mul", "fma"):
            narrow = flush_rounded(e, t, narrow, wide, result, "rn")
        result = _finish(e, op, t, narrow)
        return _out_of_bounds(e, t, ys[:2], result) if "oob" in op.mods else result

    return on_elements(e, op, one, *xs)


def _out_of_bounds(e: Emitter, t: str, factors: tuple[str, ...], result: str) -> str:
    """+0 where a factor is the NaN that copies of tensors put in place of what lies outside."""
    magnitudes = [e.bin("and", "i16", to_bits(e, t, factor), e.int(16, sign_mask(t) - 1)) for factor in factors]
    outside = [e.icmp("eq", "i16", magnitude, e.int(16, OUTSIDE)) for magnitude in magnitudes]
    return e.select(e.bin("or", "i1", *outside), t, from_bits(e, t, e.int(16, 0)), result)


def _finish(e: Emitter, op: Op, t: str, result: str) -> str:
    if "ftz" in op.mods:
        result = flush(e, t, result)
    if "relu" in op.mods:
        result = from_bits(e, t, clamp_sign(e, t, to_bits(e, t, result)))
    return result


@elementwise("abs.half", "neg.half")
def sign_operation(e: Emitter, op: Op, a: str) -> str:
    """Hardware adds -0, so that any NaN becomes the canonical one."""

    def one(t: str, x: str) -> str:
        bits = to_bits(e, t, SIGN_OPS[op.opcode](e, t, *flush_inputs(e, op, t, (x,))))
        magnitude = e.bin("and", "i16", bits, e.int(16, sign_mask(t) - 1))
        invalid = e.icmp("ugt", "i16", magnitude, e.int(16, exponent_mask(t)))
        return from_bits(e, t, e.select(invalid, "i16", e.int(16, 0x7FFF), bits))

    return on_elements(e, op, one, a)


@elementwise("min.half", "max.half")
def extreme(e: Emitter, op: Op, *xs: str) -> str:
    def one(t: str, *ys: str) -> str:
        wide = tuple(widen(e, t, y) for y in flush_inputs(e, op, t, ys))
        return narrow_float(e, extreme_of(e, op, "float", wide), t, "rn")

    return on_elements(e, op, one, *xs)


@elementwise("ex2.half", size=20)
def exponential(e: Emitter, op: Op, a: str) -> str:
    def one(t: str, x: str) -> str:
        if e.numerics.hardware:
            return mufu.of_half(e, "ex2", t, x)
        y = widen(e, t, *flush_inputs(e, op, t, (x,)))
        power = e.select(is_nan(e, "float", y), "float", y, exp2(e, y))
        return _finish(e, op, t, narrow_float(e, power, t, "rn"))

    return on_elements(e, op, one, a)


@elementwise("tanh.half", size=20)
def tanh(e: Emitter, op: Op, a: str) -> str:
    def one(t: str, x: str) -> str:
        if e.numerics.hardware:
            return mufu.of_half(e, "tanh", t, x)
        return narrow_float(e, hyperbolic_tangent(e, widen(e, t, x)), t, "rn")

    return on_elements(e, op, one, a)
