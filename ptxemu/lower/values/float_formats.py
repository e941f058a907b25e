"""Conversions among float formats, in every rounding mode, as vector code without library calls.

Round to odd is the tool: a value that is inexact becomes the neighbour whose last bit is 1.  Rounding that again to a
format with at least two fewer bits gives the correctly rounded result of the exact value, whatever the mode.
"""

from __future__ import annotations

from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.core.float_bits import (
    MANTISSA_BITS,
    constant,
    exponent_mask,
    from_bits,
    integer,
    is_nan,
    sign_mask,
    to_bits,
    zero_where,
)

CANONICAL_16 = 0x7FFF  # the canonical NaN of f16 and bf16
LEAST_NORMAL = {"half": 2.0**-14, "float": 2.0**-126}


def widen(e: Emitter, t: str, x: str) -> str:
    """``half`` or ``bfloat`` to ``float``, exact."""
    if t == "half":
        return e.cast("fpext", "half", x, "float")
    bits = e.cast("zext", "i16", e.cast("bitcast", "bfloat", x, "i16"), "i32")
    return e.cast("bitcast", "i32", e.bin("shl", "i32", bits, e.int(32, 16)), "float")


def add_odd(e: Emitter, t: str, a: str, b: str) -> str:
    """a + b rounded to odd: the rounded sum and its exact error (Knuth's two-sum) decide."""
    total = e.bin("fadd", t, a, b)
    part = e.bin("fsub", t, total, a)
    error = e.bin("fadd", t, e.bin("fsub", t, a, e.bin("fsub", t, total, part)), e.bin("fsub", t, b, part))
    i = integer(t)
    bits = to_bits(e, t, total)
    one, zero = constant(e, i, 1), constant(e, i, 0)
    even = e.icmp("eq", i, e.bin("and", i, bits, one), zero)
    inexact = e.fcmp("one", t, error, e.splat(t, "0.0"))
    # Away from zero if the error has the sign of the sum: the bit pattern counts magnitudes.
    differs = e.icmp("slt", i, e.bin("xor", i, bits, to_bits(e, t, error)), zero)
    step = e.select(differs, i, constant(e, i, -1), one)
    move = e.bin("and", "i1", even, inexact)
    return from_bits(e, t, e.bin("add", i, bits, e.select(move, i, step, zero)))


def move_directed(e: Emitter, t: str, bits: str, above: str, below: str, mode: str) -> str:
    """``bits``, a nearest value, moved for a directed mode; ``above``/``below``: the exact value lies on that side."""
    i = integer(t)
    zero, up, down = constant(e, i, 0), constant(e, i, 1), constant(e, i, -1)
    negative = e.icmp("slt", i, bits, zero)
    if mode == "rz":
        move, step = e.select(negative, "i1", above, below), down
    elif mode == "rp":
        move, step = above, e.select(negative, i, down, up)
    else:
        move, step = below, e.select(negative, i, up, down)
    return e.bin("add", i, bits, e.select(move, i, step, zero))


def narrow_double(e: Emitter, x: str, mode: str) -> str:
    """``double`` to ``float``; ``mode`` is rn rz rm rp, or ``odd``.  NaN stays some NaN."""
    y = e.cast("fptrunc", "double", x, "float")
    if mode == "rn":
        return y
    back = e.cast("fpext", "float", y, "double")
    above, below = e.fcmp("ogt", "double", x, back), e.fcmp("olt", "double", x, back)
    bits = move_directed(e, "float", to_bits(e, "float", y), above, below, "rz" if mode == "odd" else mode)
    if mode == "odd":
        inexact = e.cast("zext", "i1", e.bin("or", "i1", above, below), "i32")
        bits = e.bin("or", "i32", bits, inexact)
    return from_bits(e, "float", bits)


def _half_bits(e: Emitter, x: str, mode: str) -> str:
    y = e.cast("fptrunc", "float", x, "half")
    bits = to_bits(e, "half", y)
    if mode == "rn":
        return bits
    back = e.cast("fpext", "half", y, "float")
    return move_directed(e, "half", bits, e.fcmp("ogt", "float", x, back), e.fcmp("olt", "float", x, back), mode)


def _bfloat_bits(e: Emitter, x: str, mode: str) -> str:
    """The upper half of the float after adding what makes the cut round: carries run into the exponent as they should."""
    bits = to_bits(e, "float", x)
    sixteen, rest = e.int(32, 16), e.int(32, 0xFFFF)
    if mode == "rn":
        odd = e.bin("and", "i32", e.bin("lshr", "i32", bits, sixteen), e.int(32, 1))
        bits = e.bin("add", "i32", bits, e.bin("add", "i32", odd, e.int(32, 0x7FFF)))
    elif mode in ("rm", "rp"):
        away = e.icmp("slt" if mode == "rm" else "sge", "i32", bits, e.int(32, 0))
        bits = e.bin("add", "i32", bits, e.select(away, "i32", rest, e.int(32, 0)))
    return e.cast("trunc", "i32", e.bin("lshr", "i32", bits, sixteen), "i16")


def _upper_payload(e: Emitter, x: str, t: str) -> str:
    """Of a quiet NaN: its sign, and what ``t`` has of its payload."""
    bits = to_bits(e, "float", x)
    upper = e.cast("trunc", "i32", e.bin("lshr", "i32", bits, e.int(32, 16)), "i16")
    if t == "bfloat":
        return upper
    payload = e.cast("trunc", "i32", e.bin("lshr", "i32", bits, e.int(32, 13)), "i16")
    payload = e.bin("and", "i16", payload, e.int(16, (1 << MANTISSA_BITS[t]) - 1))
    return e.bin("or", "i16", e.bin("and", "i16", upper, e.int(16, sign_mask(t) | exponent_mask(t))), payload)


def narrow_float(e: Emitter, x: str, t: str, mode: str, payload: bool = False) -> str:
    """``float`` to ``half`` or ``bfloat``; NaN becomes canonical, or a quiet one that has ``t``'s part of its ``payload``."""
    bits = _half_bits(e, x, mode) if t == "half" else _bfloat_bits(e, x, mode)
    nan = _upper_payload(e, x, t) if payload else e.int(16, CANONICAL_16)
    bits = e.select(is_nan(e, "float", x), "i16", nan, bits)
    return from_bits(e, t, bits)


def flush_rounded(e: Emitter, t: str, x: str, wide: str, exact: str, mode: str) -> str:
    """x, which is ``exact`` of the type ``wide`` rounded by ``mode``, flushed as hardware does it: what is less than the least
    normal number when it is rounded as if exponents had no bounds.  ``exact`` may be rounded to odd."""
    least, bits = LEAST_NORMAL[t], MANTISSA_BITS[t] + 1
    below = least * (1 - 2.0**-bits)  # the number before it, if exponents had no bounds
    halfway = least * (1 - 2.0 ** -(bits + 1))
    upper, above = {"rn": (halfway, "olt"), "rp": (below, "ole")}.get(mode, (least, "olt"))
    lower, under = {"rn": (halfway, "ogt"), "rm": (below, "oge")}.get(mode, (least, "ogt"))
    literal = e.f64 if wide == "double" else e.f32
    tiny = e.bin("and", "i1", e.fcmp(above, wide, exact, literal(upper)), e.fcmp(under, wide, exact, literal(-lower)))
    return zero_where(e, t, tiny, x)


def convert_float(e: Emitter, x: str, source: str, target: str, mode: str, payload: bool = False) -> str:
    """Any float format to any other; ``payload`` is narrow_float's."""
    if source == target:
        return x
    if source in ("half", "bfloat"):
        x, source = widen(e, source, x), "float"
    if target == "double":
        return e.cast("fpext", source, x, "double")
    if target == "float":
        return narrow_double(e, x, mode) if source == "double" else x
    if source == "double":
        x = narrow_double(e, x, "odd")
    return narrow_float(e, x, target, mode, payload)


def largest(e: Emitter, t: str) -> str:
    """The bit pattern of the largest finite value."""
    return constant(e, integer(t), sign_mask(t) - (1 << MANTISSA_BITS[t]) - 1)
