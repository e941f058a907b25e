"""The atomic operations on Python integers and exact fractions, as an oracle for the C runtime."""

from __future__ import annotations

from fractions import Fraction

# Exponent and fraction bits.
FLOATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}


def bits_of(type_: str) -> int:
    if type_.endswith("x2"):
        return 32
    return int(type_.lstrip("bsuf"))


def is_nan(type_: str, bits: int) -> bool:
    exponent, fraction = FLOATS[type_]
    return bits & ((1 << exponent + fraction) - 1) > ((1 << exponent) - 1) << fraction


def is_infinite(type_: str, bits: int) -> bool:
    exponent, fraction = FLOATS[type_]
    return bits & ((1 << exponent + fraction) - 1) == ((1 << exponent) - 1) << fraction


def value(type_: str, bits: int) -> Fraction:
    """The value of a finite float."""
    exponent, fraction = FLOATS[type_]
    bias = (1 << exponent - 1) - 1
    sign = -1 if bits >> exponent + fraction else 1
    e, f = bits >> fraction & ((1 << exponent) - 1), bits & ((1 << fraction) - 1)
    significand = Fraction(f, 1 << fraction) + (1 if e else 0)
    return sign * significand * Fraction(2) ** (max(e, 1) - bias)


def rounded(type_: str, number: Fraction, negative_zero: bool) -> int:
    """The nearest float, ties to even."""
    exponent, fraction = FLOATS[type_]
    bias = (1 << exponent - 1) - 1
    sign = 1 << exponent + fraction
    if number == 0:
        return sign if negative_zero else 0
    magnitude = abs(number)
    e = max(1 - bias, magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1)
    while magnitude >= Fraction(2) ** (e + 1):
        e += 1
    units = magnitude / Fraction(2) ** (e - fraction)
    count = round(units)  # Fraction rounds to even
    # Subnormals count from 0, the others from 2^fraction: adding them up carries into the exponent by itself.
    bits = ((e + bias - 1) << fraction) + count
    infinity = ((1 << exponent) - 1) << fraction
    return min(bits, infinity) | (sign if number < 0 else 0)


def flushed(type_: str, bits: int) -> int:
    exponent, fraction = FLOATS[type_]
    return bits if bits >> fraction & ((1 << exponent) - 1) else bits & (1 << exponent + fraction)


def float_add(type_: str, x: int, y: int, ftz: bool) -> int | None:
    """None: any NaN."""
    exponent, fraction = FLOATS[type_]
    if ftz:
        x, y = flushed(type_, x), flushed(type_, y)
    opposite = (x ^ y) >> exponent + fraction
    infinities = [bits for bits in (x, y) if is_infinite(type_, bits)]
    if is_nan(type_, x) or is_nan(type_, y) or (len(infinities) == 2 and opposite):
        return CANONICAL_NAN.get(type_)
    if infinities:
        return infinities[0]
    zero_sign = x >> exponent + fraction & y >> exponent + fraction
    result = rounded(type_, value(type_, x) + value(type_, y), bool(zero_sign))
    return flushed(type_, result) if ftz else result


def float_extreme(type_: str, old: int, a: int, largest: bool) -> int:
    """fmin and fmax: a NaN loses, -0 is less than +0."""
    if is_nan(type_, old) or is_nan(type_, a):
        survivors = [bits for bits in (old, a) if not is_nan(type_, bits)]
        return survivors[0] if survivors else CANONICAL_NAN[type_]

    def key(bits: int) -> tuple[Fraction | float, int]:
        negative = bits >> sum(FLOATS[type_])
        if is_infinite(type_, bits):
            return (float("-inf") if negative else float("inf"), 0)
        return (value(type_, bits), -negative)

    return max(old, a, key=key) if largest else min(old, a, key=key)


def signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> width - 1 else bits


def apply(op: str, type_: str, old: int, a: int, b: int = 0, ftz: bool = False) -> int | None:
    """The new value."""
    if type_.endswith("x2"):
        halves = [apply(op, type_[:-2], old >> s & 0xFFFF, a >> s & 0xFFFF, b >> s & 0xFFFF, ftz) for s in (0, 16)]
        return halves[0] | halves[1] << 16  # type: ignore[operator]
    width = bits_of(type_)
    mask = (1 << width) - 1
    match op:
        case "add":
            return (old + a) & mask
        case "sub":
            return (old - a) & mask
        case "umin":
            return min(old, a)
        case "umax":
            return max(old, a)
        case "smin":
            return min(old, a, key=lambda bits: signed(bits, width))
        case "smax":
            return max(old, a, key=lambda bits: signed(bits, width))
        case "and":
            return old & a
        case "or":
            return old | a
        case "xor":
            return old ^ a
        case "inc_wrap":
            return 0 if old >= a else old + 1
        case "dec_wrap":
            return a if old == 0 or old > a else old - 1
        case "inc":
            return (old + 1) & mask
        case "dec" | "predec":
            return (old - 1) & mask
        case "xchg":
            return a
        case "cas":
            return b if old == a else old
        case "fadd":
            return float_add(type_, old, a, ftz)
        case "fmin":
            return float_extreme(type_, old, a, False)
        case "fmax":
            return float_extreme(type_, old, a, True)
        case "fcas":
            if is_nan(type_, old) or is_nan(type_, a) or is_infinite(type_, old) or is_infinite(type_, a):
                return b if old == a and not is_nan(type_, a) else old
            return b if value(type_, old) == value(type_, a) else old
    raise AssertionError(op)
