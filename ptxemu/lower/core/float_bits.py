"""Bit-level helpers of the elementwise lowerings: flushing, canonical NaN, clamping, packed halves."""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.ir.ops import Op
from ptxemu.lower.core.emit import Emitter

FLOAT_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
MANTISSA_BITS = {"half": 10, "bfloat": 7, "float": 23, "double": 52}

CANONICAL_NAN = 0x7FFFFFFF  # of f32 (PTX ISA 9.7.3)


def width(t: str) -> int:
    """Bits of an LLVM scalar type."""
    return FLOAT_BITS[t] if t in FLOAT_BITS else int(t[1:])


def integer(t: str) -> str:
    """The LLVM integer type as wide as ``t``."""
    return f"i{width(t)}"


def to_bits(e: Emitter, t: str, x: str) -> str:
    return e.cast("bitcast", t, x, integer(t))


def from_bits(e: Emitter, t: str, x: str) -> str:
    return e.cast("bitcast", integer(t), x, t)


def constant(e: Emitter, t: str, value: int) -> str:
    """An integer constant of LLVM type ``t`` (``i1`` to ``i64``)."""
    return e.int(width(t), value)


def sign_mask(t: str) -> int:
    return 1 << (width(t) - 1)


def exponent_mask(t: str) -> int:
    return sign_mask(t) - (1 << MANTISSA_BITS[t])


def flush(e: Emitter, t: str, x: str) -> str:
    """Subnormals become zeros of the same sign (``.ftz``)."""
    if ("flushed", x) in e.facts:
        return x
    i = integer(t)
    bits = to_bits(e, t, x)
    exponent = e.bin("and", i, bits, constant(e, i, exponent_mask(t)))
    tiny = e.icmp("eq", i, exponent, constant(e, i, 0))
    zero = e.bin("and", i, bits, constant(e, i, sign_mask(t)))
    result = from_bits(e, t, e.select(tiny, i, zero, bits))
    e.facts.add(("flushed", result))
    return result


def zero_where(e: Emitter, t: str, tiny: str, x: str) -> str:
    """A zero with the sign of x where ``tiny``, so that no subnormal number is left."""
    zero = e.bin("and", integer(t), to_bits(e, t, x), constant(e, integer(t), sign_mask(t)))
    result = e.select(tiny, t, from_bits(e, t, zero), x)
    e.facts.add(("flushed", result))
    return result


def flush_nearest(e: Emitter, operation: Callable[..., str], a: str, b: str, *c: str) -> str:
    """``operation``, a * b or a * b + c of f32, flushed as hardware does it: what is less than the least normal number when it is
    rounded as if exponents had no bounds.  That is what the operation gives far above."""
    high, *added = (e.bin("fmul", "float", x, e.f32(2.0**64)) for x in (a, *c))
    scaled = operation(high, b, *added)
    tiny = e.fcmp("olt", "float", e.intrinsic("fabs", "float", scaled), e.f32(2.0 ** (64 - 126)))
    return zero_where(e, "float", tiny, operation(a, b, *c))


def flush_inputs(e: Emitter, op: Op, t: str, sources: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(flush(e, t, x) for x in sources) if "ftz" in op.mods else sources


def arithmetic_inputs(e: Emitter, op: Op, t: str, sources: tuple[str, ...]) -> tuple[str, ...]:
    """The same for sources that only instructions of the processor read, which may do it themselves."""
    return sources if e.daz else flush_inputs(e, op, t, sources)


def is_nan(e: Emitter, t: str, x: str) -> str:
    return e.fcmp("uno", t, x, x)


def canonical(e: Emitter, t: str, x: str) -> str:
    """f32 NaN results are 0x7fffffff; f64 keeps the payload that the host's arithmetic gives.

    Opaque before, as LLVM turns the test of a square root for NaN into one of its operand for x < 0, and then drops the select
    between NaN and the root as if all NaNs were equal; opaque behind, as it would widen both sides of the select and the
    condition rather than the result.
    """
    if t != "float":
        return x
    x = e.opaque(t, x)
    bits = e.select(is_nan(e, t, x), "i32", e.int(32, CANONICAL_NAN), to_bits(e, t, x))
    return e.opaque(t, from_bits(e, t, bits))


def saturate(e: Emitter, t: str, x: str) -> str:
    """Clamp to [0, 1]; NaN and -0 become +0 (``.sat``)."""
    zero, one = e.splat(t, "0.0"), e.splat(t, "1.0")
    positive = e.select(e.fcmp("ogt", t, x, zero), t, x, zero)
    return e.select(e.fcmp("olt", t, positive, one), t, positive, one)


def finish(e: Emitter, op: Op, t: str, x: str) -> str:
    """The tail of every f32/f64 operation: ``.ftz`` on the result, then ``.sat`` or the canonical NaN."""
    if e.daz and e.raw_nan and "sat" not in op.mods:
        return x
    if "ftz" in op.mods:
        x = flush(e, t, x)
    if "sat" in op.mods:
        return saturate(e, t, x)
    result = x if e.raw_nan else canonical(e, t, x)
    if "ftz" in op.mods:
        e.facts.add(("flushed", result))
    return result


def clamp_sign(e: Emitter, t: str, x: str) -> str:
    """``.relu`` on a bit pattern ``x`` of float type ``t`` without NaN handling: negative values become +0."""
    i = integer(t)
    negative = e.icmp("slt", i, x, constant(e, i, 0))
    return e.select(negative, i, constant(e, i, 0), x)


def packed(e: Emitter, container: str, element: str, fn: Callable[..., str], *sources: str) -> str:
    """Run ``fn`` on registers of type ``container``, each seen as two values of type ``element``, the lower half first."""
    lanes = e.lanes
    count = max(lanes, 1) * (width(container) // width(element))
    whole = e.ty(container)
    e.lanes = count
    try:
        view = e.ty(element)
        value = fn(*(e.inst(f"bitcast {whole} {x} to {view}") for x in sources))
    finally:
        e.lanes = lanes
    return e.inst(f"bitcast {view} {value} to {whole}")


def wide_shift(e: Emitter, op: str, t: str, x: str, amount: str) -> str:
    """``shl``/``lshr``/``ashr`` by an amount of the same type that may reach the width or more."""
    bits = width(t)
    limit = constant(e, t, bits)
    inside = e.icmp("ult", t, amount, limit)
    if op == "ashr":
        return e.bin(op, t, x, e.select(inside, t, amount, constant(e, t, bits - 1)))
    return e.select(inside, t, e.bin(op, t, x, e.select(inside, t, amount, constant(e, t, 0))), constant(e, t, 0))


def low_mask(e: Emitter, t: str, count: str) -> str:
    """``count`` low bits set; all bits when ``count`` is the width or more."""
    inside = e.icmp("ult", t, count, constant(e, t, width(t)))
    safe = e.select(inside, t, count, constant(e, t, 0))
    ones = e.bin("sub", t, e.bin("shl", t, constant(e, t, 1), safe), constant(e, t, 1))
    return e.select(inside, t, ones, constant(e, t, -1))
