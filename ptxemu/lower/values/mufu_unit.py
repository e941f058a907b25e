"""MUFU, the instruction of approximate functions: a quadratic in each of 64 or 128 intervals, in fixed point.

An operand's fraction chooses the interval by its high bits; ``low``, the other 16 or 17, are the argument of the quadratic,
whose square is made without the columns of partial products below the 19th.  The result is cut, after a constant was added that
centres the error.  The model is that of bcarlet/ptx-math (MIT), which meets all results of sm_70 and sm_75; so do words from
later hardware.

A sum has more than 32 bits, so ``low`` is split: the products of its high part are added to the sum's high word, those of its
low part and of the square to the low word.  Coefficients of degree 1 and 2 lie in the halves of a word as signed numbers,
whose products processors add in one instruction; those of degree 1 have a ``bias`` taken away to fit.
"""

from __future__ import annotations

from msgspec import Struct

from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.core.products import pair_products
from ptxemu.lower.core.tables import paired, word_of
from ptxemu.lower.values import mufu_tables
from ptxemu.lower.values.mufu_tables import Coefficients

FRACTION_BITS = 23
FRACTION = (1 << FRACTION_BITS) - 1
EXPONENT = 0xFF << FRACTION_BITS
SIGN = 1 << 31
LEAST_NORMAL = 1 << FRACTION_BITS
INFINITY = EXPONENT
NOT_A_NUMBER = 0x7FFFFFFF
ONE = 127 << FRACTION_BITS


class Quadratic(Struct, frozen=True):
    """``low``: its bits.  The unit of the sum is that of ``low`` times its coefficient: that of degree 0 is shifted to the left
    by ``shift0``, the others are multiplied by ``times1`` and ``times2``.  ``split``: the bits of the sum's low word.
    """

    name: str
    table: Coefficients
    low: int
    shift0: int
    times1: int
    times2: int
    centre: int
    bias: int = 0
    split: int = 8

    def constants(self) -> tuple[int, ...]:
        """What coefficients of degree 0 add to the high word."""
        return tuple(c0 << self.shift0 - self.split & 0xFFFFFFFF for c0, _, _ in self.table)

    def factors(self) -> tuple[int, ...]:
        """The coefficients of degree 2 and 1, in the high and the low half."""
        return tuple((self.times2 * c2 & 0xFFFF) << 16 | self.times1 * (c1 - self.bias) & 0xFFFF for _, c1, c2 in self.table)


def _parity_first(table: Coefficients) -> Coefficients:
    """Of roots, in the order of the last bit of the biased exponent, which is set if the exponent is even."""
    return table[64:] + table[:64]


def _of_64(table: Coefficients) -> Coefficients:
    """With rows that nobody reads."""
    return table + ((0, 0, 0),) * (64 - len(table))


EX2 = Quadratic("ex2", mufu_tables.EX2, 17, 13, 1, 1, 0x37E2, bias=1 << 15)
LG2 = Quadratic("lg2", mufu_tables.LG2, 17, 13, 2, -4, 0x868B, bias=1 << 15)
RCP = Quadratic("rcp", mufu_tables.RCP, 16, 13, -1, 1, 0x67E7, bias=1 << 15)
RSQRT = Quadratic("rsqrt", _parity_first(mufu_tables.RSQRT), 17, 14, -1, 4, 0xFFFF, bias=1 << 15, split=9)
SQRT = Quadratic("sqrt", _parity_first(mufu_tables.SQRT), 17, 15, 1, -2, 0xFFFF, bias=1 << 16, split=9)
SINE = Quadratic("sin", mufu_tables.SIN, 17, 12, 1, -1, 0)
TANH = Quadratic("tanh", _of_64(mufu_tables.TANH), 17, 8, 1, -1, 0, bias=1 << 15)

TANH_EXPONENTS = {119: (0, 32), 120: (0, 31), 121: (0, 30), 122: (1, 30), 123: (1, 29), 124: (2, 29), 125: (2, 29),
                  126: (2, 28), 127: (3, 29), 128: (4, 31), 129: (3, 29)}  # fmt: skip
"""By the biased exponent of an operand: the bits of its fraction that choose an interval, and those of the sum behind the point,
but for 8."""


def _tanh_places() -> tuple[int, ...]:
    """For the last 6 bits of each exponent: the number of its first interval without that exponent, from the 17th bit on; the
    bits behind the point, from the 8th; how many bits of the fraction do not count."""
    places, first = [0] * 64, 0
    for exponent, (chosen, point) in TANH_EXPONENTS.items():
        places[exponent & 63] = (first - (exponent << chosen) & 63) << TANH.low | point << 8 | FRACTION_BITS - TANH.low - chosen
        first += 1 << chosen
    return tuple(places)


TANH_PLACES = _tanh_places()


def _square(e: Emitter, x: str) -> str:
    """The square of a number of 15 bits and two lower ones, without 19 columns, from an i16 whose highest bit does not count.

    Of the 17 bits the upper 8 have a square, of which only the last bit is lost; those of the lower ones meet upper ones only:
    row by row.
    """
    x = e.bin("and", "i16", x, e.int(16, 0x7FFF))
    upper = e.bin("lshr", "i16", x, e.int(16, 7))
    total = e.bin("lshr", "i16", e.bin("mul", "i16", upper, upper), e.int(16, 1))
    for bit in range(7):
        taken = e.icmp("ne", "i16", e.bin("and", "i16", x, e.int(16, 1 << bit)), e.int(16, 0))
        row = e.bin("lshr", "i16", x, e.int(16, 14 - bit))
        total = e.bin("add", "i16", total, e.select(taken, "i16", row, e.int(16, 0)))
    return total


def _sum(e: Emitter, q: Quadratic, position: str) -> tuple[str, str]:
    """The high word of a sum, and the low one, of which only the last ``split`` bits count; ``position`` has the number of
    the interval above ``low``."""
    first = e.cast("trunc", "i32", position, "i16")
    second = e.cast("trunc", "i32", e.bin("lshr", "i32", position, e.int(32, 16)), "i16")
    index = second if q.low == 16 else e.bin("lshr", "i16", second, e.int(16, q.low - 16))
    constant = word_of(e, f"mufu.{q.name}.constants", q.constants(), index)
    factors = word_of(e, f"mufu.{q.name}.factors", q.factors(), index)
    squared = e.bin("lshr", "i16", first, e.int(16, q.low - 15))
    if q.low > 16:
        squared = e.bin("or", "i16", squared, e.bin("shl", "i16", second, e.int(16, 31 - q.low)))
    near = e.bin("and", "i16", first, e.int(16, (1 << q.split) - 1))
    low = e.bin("add", "i32", pair_products(e, factors, paired(e, near, _square(e, squared))), e.int(32, q.centre))
    argument = e.bin("and", "i32", position, e.int(32, (1 << q.low) - 1))
    far = e.bin("lshr", "i32", argument, e.int(32, q.split))
    high = e.bin("add", "i32", constant, pair_products(e, factors, far))
    if q.bias:
        bias = e.bin("mul", "i32", argument, e.int(32, q.times1 * q.bias >> q.split))
        high = e.bin("add", "i32", high, bias)
    return e.bin("add", "i32", high, e.bin("ashr", "i32", low, e.int(32, q.split))), low


def _float(e: Emitter, bits: str) -> str:
    return e.cast("bitcast", "i32", bits, "float")


def _magnitude(e: Emitter, bits: str) -> str:
    return e.bin("and", "i32", bits, e.int(32, ~SIGN & 0xFFFFFFFF))


def power_of_two(e: Emitter, x: str) -> str:
    """Negative operands are in ones' complement, but for whole numbers."""
    bounded = e.select(e.fcmp("olt", "float", x, e.f32(128.0)), "float", x, e.f32(128.0))
    bounded = e.select(e.fcmp("ogt", "float", bounded, e.f32(-127.0)), "float", bounded, e.f32(-127.0))
    fixed = e.cast("fptosi", "float", e.bin("fmul", "float", bounded, e.f32(2.0**FRACTION_BITS)), "i32")
    broken = e.icmp("ne", "i32", e.bin("and", "i32", fixed, e.int(32, FRACTION)), e.int(32, 0))
    below = e.select(broken, "i32", e.bin("ashr", "i32", fixed, e.int(32, 31)), e.int(32, 0))
    fixed = e.bin("add", "i32", fixed, below)
    high, _ = _sum(e, EX2, fixed)
    whole = e.bin("and", "i32", fixed, e.int(32, ~FRACTION & 0xFFFFFFFF))
    exponent = e.bin("add", "i32", whole, e.int(32, ONE - LEAST_NORMAL))
    bits = e.bin("add", "i32", exponent, e.bin("lshr", "i32", high, e.int(32, 7)))
    bits = e.select(e.icmp("slt", "i32", bits, e.int(32, LEAST_NORMAL)), "i32", e.int(32, 0), bits)
    return e.select(e.fcmp("uno", "float", x, x), "i32", e.int(32, NOT_A_NUMBER), bits)


def reciprocal(e: Emitter, x: str) -> str:
    bits = e.cast("bitcast", "float", x, "i32")
    magnitude = _magnitude(e, bits)
    high, _ = _sum(e, RCP, bits)
    exponent = e.bin("sub", "i32", e.int(32, 252 << FRACTION_BITS), e.bin("and", "i32", bits, e.int(32, EXPONENT)))
    result = e.bin("add", "i32", exponent, e.bin("lshr", "i32", high, e.int(32, 7)))
    result = e.select(e.icmp("slt", "i32", result, e.int(32, LEAST_NORMAL)), "i32", e.int(32, 0), result)
    result = e.select(e.icmp("ult", "i32", magnitude, e.int(32, LEAST_NORMAL)), "i32", e.int(32, INFINITY), result)
    result = e.bin("or", "i32", result, e.bin("and", "i32", bits, e.int(32, SIGN)))
    return e.select(e.fcmp("uno", "float", x, x), "i32", e.int(32, NOT_A_NUMBER), result)


def _half_exponent(e: Emitter, bits: str) -> str:
    """The biased exponent plus 1, halved, in its place."""
    half = e.bin("lshr", "i32", e.bin("add", "i32", bits, e.int(32, LEAST_NORMAL)), e.int(32, FRACTION_BITS + 1))
    return e.bin("shl", "i32", half, e.int(32, FRACTION_BITS))


def _of_positive(e: Emitter, bits: str, result: str, zero: int, infinity: int) -> str:
    """With the other results of a root: NaN for all negative numbers, whose zeros keep their sign."""
    result = e.select(e.icmp("sge", "i32", bits, e.int(32, INFINITY)), "i32", e.int(32, infinity), result)
    result = e.select(e.icmp("ugt", "i32", bits, e.int(32, INFINITY)), "i32", e.int(32, NOT_A_NUMBER), result)
    sign = e.bin("and", "i32", bits, e.int(32, SIGN))
    tiny = e.icmp("ult", "i32", _magnitude(e, bits), e.int(32, LEAST_NORMAL))
    return e.select(tiny, "i32", e.bin("or", "i32", sign, e.int(32, zero)), result)


def reciprocal_root(e: Emitter, x: str) -> str:
    """Even powers of two are exact."""
    bits = e.cast("bitcast", "float", x, "i32")
    high, _ = _sum(e, RSQRT, bits)
    significand = e.bin("lshr", "i32", high, e.int(32, 7))
    parity = e.bin("and", "i32", bits, e.int(32, FRACTION | LEAST_NORMAL))
    exact = e.icmp("eq", "i32", parity, e.int(32, LEAST_NORMAL))
    significand = e.select(exact, "i32", e.int(32, 2 * LEAST_NORMAL), significand)
    exponent = e.bin("sub", "i32", e.int(32, 189 << FRACTION_BITS), _half_exponent(e, bits))
    return _of_positive(e, bits, e.bin("add", "i32", exponent, significand), INFINITY, 0)


def root(e: Emitter, x: str) -> str:
    bits = e.cast("bitcast", "float", x, "i32")
    high, _ = _sum(e, SQRT, bits)
    exponent = e.bin("add", "i32", e.int(32, 62 << FRACTION_BITS), _half_exponent(e, bits))
    return _of_positive(e, bits, e.bin("add", "i32", exponent, e.bin("lshr", "i32", high, e.int(32, 8))), 0, INFINITY)


def _cut(e: Emitter, high: str, low: str, bits: int) -> str:
    """The positive number of a word below 2**31 and of so many lower bits as a float, toward zero: where the sum of both was
    rounded up, or the word, it was by one place."""
    word, rest = e.cast("sitofp", "i32", high, "float"), e.cast("sitofp", "i32", low, "float")
    rest = e.bin("fmul", "float", rest, e.f32(2.0**-bits))
    total = e.bin("fadd", "float", word, rest)
    result = e.cast("bitcast", "float", total, "i32")
    for above in (
        e.fcmp("ogt", "float", e.bin("fsub", "float", total, word), rest),
        e.icmp("sgt", "i32", e.cast("fptosi", "float", word, "i32"), high),
    ):
        result = e.bin("add", "i32", result, e.cast("sext", "i1", above, "i32"))
    return _float(e, result)


def logarithm(e: Emitter, x: str) -> str:
    """The magnitude of exponent and sum is cut to units of 2**-36."""
    bits = e.cast("bitcast", "float", x, "i32")
    high, low = _sum(e, LG2, bits)
    whole = e.bin("sub", "i32", e.bin("and", "i32", bits, e.int(32, EXPONENT)), e.int(32, ONE))
    negative = e.bin("ashr", "i32", whole, e.int(32, 31))
    rest = e.bin("or", "i32", e.bin("shl", "i32", high, e.int(32, 8)), e.bin("and", "i32", low, e.int(32, 0xFF)))
    rest = e.bin("and", "i32", e.bin("xor", "i32", rest, negative), e.int(32, 0xFFFF))
    rest = e.bin("sub", "i32", rest, negative)
    top = e.bin("xor", "i32", e.bin("add", "i32", whole, e.bin("lshr", "i32", high, e.int(32, 8))), negative)
    top = e.bin("add", "i32", top, e.bin("lshr", "i32", rest, e.int(32, 16)))
    value = _cut(e, top, e.bin("and", "i32", rest, e.int(32, 0xFFF8)), 16)
    value = e.bin("fmul", "float", value, e.f32(2.0**-FRACTION_BITS))
    result = e.bin("or", "i32", e.cast("bitcast", "float", value, "i32"), e.bin("and", "i32", negative, e.int(32, SIGN)))
    result = e.select(e.icmp("eq", "i32", bits, e.int(32, ONE)), "i32", e.int(32, 0), result)
    result = e.select(e.icmp("sge", "i32", bits, e.int(32, INFINITY)), "i32", e.int(32, INFINITY), result)
    result = e.select(e.icmp("ugt", "i32", bits, e.int(32, INFINITY)), "i32", e.int(32, NOT_A_NUMBER), result)
    tiny = e.icmp("ult", "i32", _magnitude(e, bits), e.int(32, LEAST_NORMAL))
    return e.select(tiny, "i32", e.int(32, SIGN | INFINITY), result)


def _of_turns(e: Emitter, x: str, cosine: bool) -> str:
    """Of a number of turns, which is cut to units of 2**-25."""
    magnitude = e.intrinsic("fabs", "float", x)
    part = e.bin("fsub", "float", magnitude, e.intrinsic("trunc", "float", magnitude))
    finite = e.fcmp("ord", "float", part, part)
    part = e.select(finite, "float", part, e.f32(0.0))
    turns = e.cast("fptosi", "float", e.bin("fmul", "float", part, e.f32(2.0 ** (FRACTION_BITS + 2))), "i32")
    odd = e.bin("shl", "i32", turns, e.int(32, 31 - FRACTION_BITS))  # the quarter's last bit at the place of the sign
    second = e.bin("shl", "i32", turns, e.int(32, 30 - FRACTION_BITS))
    sign = e.bin("xor", "i32", second, odd if cosine else e.cast("bitcast", "float", x, "i32"))
    mirrored = e.bin("ashr", "i32", odd, e.int(32, 31))
    if cosine:
        mirrored = e.bin("xor", "i32", mirrored, e.int(32, -1))
    position = e.bin("and", "i32", e.bin("xor", "i32", turns, mirrored), e.int(32, FRACTION))
    high, low = _sum(e, SINE, position)
    value = _cut(e, high, e.bin("and", "i32", low, e.int(32, 0xFF)), 8)
    value = e.bin("fmul", "float", value, e.f32(2.0**-29))
    result = e.bin("or", "i32", e.cast("bitcast", "float", value, "i32"), e.bin("and", "i32", sign, e.int(32, SIGN)))
    return e.select(finite, "i32", result, e.int(32, NOT_A_NUMBER))


def sine(e: Emitter, x: str) -> str:
    return _of_turns(e, x, cosine=False)


def cosine(e: Emitter, x: str) -> str:
    return _of_turns(e, x, cosine=True)


def hyperbolic_tangent(e: Emitter, x: str) -> str:
    """Below 2**-8 the operand, from 8 on 1."""
    bits = e.cast("bitcast", "float", x, "i32")
    magnitude = _magnitude(e, bits)
    exponent = e.cast("trunc", "i32", e.bin("lshr", "i32", magnitude, e.int(32, FRACTION_BITS)), "i16")
    place = word_of(e, "mufu.tanh.places", TANH_PLACES, exponent)
    first = e.bin("and", "i32", place, e.int(32, 63 << TANH.low))
    position = e.bin("add", "i32", e.bin("lshr", "i32", magnitude, e.bin("and", "i32", place, e.int(32, 7))), first)
    high, low = _sum(e, TANH, position)
    value = e.cast("bitcast", "float", _cut(e, high, e.bin("and", "i32", low, e.int(32, 0xFF)), 8), "i32")
    point = e.bin("shl", "i32", e.bin("and", "i32", place, e.int(32, 63 << 8)), e.int(32, FRACTION_BITS - 8))
    result = e.bin("sub", "i32", value, point)
    result = e.select(e.icmp("ult", "i32", magnitude, e.int(32, 119 << FRACTION_BITS)), "i32", magnitude, result)
    result = e.select(e.icmp("uge", "i32", magnitude, e.int(32, 130 << FRACTION_BITS)), "i32", e.int(32, ONE), result)
    result = e.bin("or", "i32", result, e.bin("and", "i32", bits, e.int(32, SIGN)))
    return e.select(e.icmp("ugt", "i32", magnitude, e.int(32, INFINITY)), "i32", e.int(32, NOT_A_NUMBER), result)


FUNCTIONS = {
    "ex2": power_of_two, "lg2": logarithm, "rcp": reciprocal, "rsqrt": reciprocal_root, "sqrt": root, "sin": sine, "cos": cosine,
    "tanh": hyperbolic_tangent,
}  # fmt: skip
"""Of f32 values, with their results as bits."""
