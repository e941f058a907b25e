"""``cvt`` to and from s2f6, a signed byte that counts 64ths (PTX ISA, "Fixed-point Data format")."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import from_bits, is_nan, to_bits
from ptxemu.lower.values.convert import WORD, to_integer
from ptxemu.lower.values.float_formats import CANONICAL_16
from ptxemu.lower.values.fp8 import BRAIN_LARGEST, MAGNITUDE, fields, joined, rounded_brain, scaled, scales_of, upper_and_lower

UNITS = 64.0
LEAST, MOST = -128, 127
ROUNDING = {"rn": "roundeven", "rz": "trunc"}
SIGN = 0x8000  # of bf16


def _fixed(e: Emitter, op: Op, x: str) -> str:
    """A float as a byte in an i32: what is too large or small is the last number there is, NaN the largest."""
    units = e.intrinsic(ROUNDING[op.mods["round"]], "float", e.bin("fmul", "float", x, e.f32(UNITS)))
    count = e.intrinsic("smin", "i32", to_integer(e, "float", units, WORD), e.int(32, MOST))
    count = e.intrinsic("smax", "i32", count, e.int(32, 0 if "relu" in op.mods else LEAST))
    count = e.select(is_nan(e, "float", x), "i32", e.int(32, MOST), count)
    return e.bin("and", "i32", count, e.int(32, 0xFF))


@elementwise("cvt.to_fixed", size=8)
def to_fixed(e: Emitter, op: Op, *xs: str) -> str:
    """Two f32, or a bf16x2, to s2f6x2; scale factors divide them before."""
    values, scales = scales_of(e, op, xs)
    pair = upper_and_lower(e, op, values)
    if scales:
        pair = tuple(scaled(e, x, scale, divided=True) for x, scale in zip(pair, scales, strict=True))
    return joined(e, op, (_fixed(e, op, x) for x in pair), 8)


def _brain(e: Emitter, op: Op, field: str, scale: str) -> str:
    """A byte as the bf16 that equals it, or is next to its product with a scale factor, in an i32."""
    count = e.cast("sext", "i8", e.cast("trunc", "i32", field, "i8"), "i32")
    value = e.bin("fmul", "float", e.cast("sitofp", "i32", count, "float"), e.f32(1 / UNITS))
    bits = to_bits(e, "float", scaled(e, value, scale) if scale else value)
    magnitude = rounded_brain(e, from_bits(e, "float", e.bin("and", "i32", bits, e.int(32, MAGNITUDE))))
    nan = e.icmp("eq", "i32", magnitude, e.int(32, CANONICAL_16))
    result = e.intrinsic("umin", "i32", magnitude, e.int(32, BRAIN_LARGEST)) if "satfinite" in op.mods else magnitude
    negative = e.int(32, 0) if "relu" in op.mods else e.bin("or", "i32", result, e.int(32, SIGN))
    result = e.select(e.icmp("slt", "i32", count, e.int(32, 0)), "i32", negative, result)
    return e.select(nan, "i32", e.int(32, CANONICAL_16), result)


@elementwise("cvt.from_fixed", size=8)
def from_fixed(e: Emitter, op: Op, *xs: str) -> str:
    """s2f6x2 to bf16x2, whose elements may be scaled."""
    (packed,), scales = scales_of(e, op, xs)
    pair = zip(fields(e, op, packed, 8), scales or ("", ""), strict=True)
    return joined(e, op, (_brain(e, op, field, scale) for field, scale in pair), 16)
