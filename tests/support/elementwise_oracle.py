"""Exact arithmetic on bit patterns with Python integers and fractions: the oracle of the elementwise tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import isqrt

import numpy as np


@dataclass(frozen=True)
class Format:
    """An IEEE interchange format; ``nan`` is the canonical NaN.

    ``flushes``: rounding makes a zero of what is less than the least normal number when it is rounded as if exponents had no
    bounds, as hardware does it for ``.ftz``.
    """

    exponent: int
    mantissa: int
    nan: int
    flushes: bool = False

    @cached_property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @cached_property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def infinity(self) -> int:
        return self.sign - (1 << self.mantissa)

    @cached_property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @cached_property
    def one(self) -> int:
        return self.bias << self.mantissa

    def is_nan(self, b: int) -> bool:
        return b & (self.sign - 1) > self.infinity

    def is_infinite(self, b: int) -> bool:
        return b & (self.sign - 1) == self.infinity

    def is_negative(self, b: int) -> bool:
        return bool(b & self.sign)

    def is_zero(self, b: int) -> bool:
        return b & (self.sign - 1) == 0

    def flush(self, b: int) -> int:
        return b & self.sign if b & self.infinity == 0 else b

    def value(self, b: int) -> Fraction:
        """The number (not NaN or infinity)."""
        field = (b & (self.sign - 1)) >> self.mantissa
        fraction = b & ((1 << self.mantissa) - 1)
        significand = fraction | (1 << self.mantissa) if field else fraction
        exponent = max(field, 1) - self.bias - self.mantissa
        signed = -significand if self.is_negative(b) else significand
        return Fraction(signed << exponent) if exponent >= 0 else Fraction(signed, 1 << -exponent)

    def round(self, q: Fraction, mode: str = "rn", negative_zero: bool = False) -> int:
        """The pattern of ``q`` rounded by ``mode``; the sign of an exact zero is given."""
        if q == 0:
            return self.sign if negative_zero else 0
        sign = self.sign if q < 0 else 0
        numerator, denominator = abs(q.numerator), q.denominator
        unbounded = _floor_log2(numerator, denominator)
        exponent = max(unbounded, 1 - self.bias)
        directed = {"rm": "up" if sign else "down", "rp": "down" if sign else "up", "rz": "down"}.get(mode, "near")
        if self.flushes and unbounded < 1 - self.bias:
            reached = _round_ratio(numerator << self.mantissa - unbounded, denominator, directed) >> self.mantissa + 1
            return sign | (reached and unbounded == -self.bias) << self.mantissa
        down = exponent - self.mantissa
        steps = _round_ratio(numerator << max(-down, 0), denominator << max(down, 0), directed)
        pattern = steps + ((exponent + self.bias - 1) << self.mantissa)
        if pattern >= self.infinity:
            pattern = self.infinity - (directed == "down")
        return sign | pattern

    def saturate(self, b: int) -> int:
        if self.is_nan(b) or self.is_negative(b):
            return 0
        return min(b, self.one)


F16 = Format(5, 10, 0x7FFF)
BF16 = Format(8, 7, 0x7FFF)
F32 = Format(8, 23, 0x7FFFFFFF)
F64 = Format(11, 52, 0x7FF8000000000000)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def floor_log2(q: Fraction) -> int:
    return _floor_log2(q.numerator, q.denominator)


def _floor_log2(numerator: int, denominator: int) -> int:
    estimate = numerator.bit_length() - denominator.bit_length()
    reached = denominator << estimate <= numerator if estimate >= 0 else denominator <= numerator << -estimate
    return estimate if reached else estimate - 1


def round_natural(q: Fraction, how: str) -> int:
    """A non-negative number to an integer: ``near`` (ties to even), ``up`` or ``down``."""
    return _round_ratio(q.numerator, q.denominator, how)


def _round_ratio(numerator: int, denominator: int, how: str) -> int:
    floor, rest = divmod(numerator, denominator)
    if how == "near":
        twice = 2 * rest
        return floor + (twice > denominator or (twice == denominator and floor & 1))
    return floor + (how == "up" and rest > 0)


def round_integer(q: Fraction, mode: str) -> int:
    """``rni rzi rmi rpi``."""
    directed = {"rni": "near", "rzi": "down", "rmi": "up" if q < 0 else "down", "rpi": "down" if q < 0 else "up"}[mode]
    magnitude = round_natural(abs(q), directed)
    return -magnitude if q < 0 else magnitude


def _sum(f: Format, terms: list[tuple[Fraction, bool]], mode: str) -> int:
    total = sum((q for q, _ in terms), Fraction(0))
    signs = {negative for _, negative in terms}
    exact_zeros = all(q == 0 for q, _ in terms)
    negative = signs == {True} if exact_zeros and len(signs) == 1 else mode == "rm"
    return f.round(total, mode, negative)


def _add(f: Format, a: int, b: int, mode: str) -> int:
    infinite = [x for x in (a, b) if f.is_infinite(x)]
    if infinite:
        return f.nan if len(set(infinite)) > 1 else infinite[0]
    return _sum(f, [(f.value(x), f.is_negative(x)) for x in (a, b)], mode)


def _mul(f: Format, a: int, b: int, mode: str) -> int:
    sign = (a ^ b) & f.sign
    if f.is_infinite(a) or f.is_infinite(b):
        return f.nan if f.is_zero(a) or f.is_zero(b) else sign | f.infinity
    return f.round(f.value(a) * f.value(b), mode, bool(sign))


def _fma(f: Format, a: int, b: int, c: int, mode: str) -> int:
    sign = (a ^ b) & f.sign
    if f.is_infinite(a) or f.is_infinite(b):
        product = f.nan if f.is_zero(a) or f.is_zero(b) else sign | f.infinity
        return f.nan if f.is_nan(product) else _add(f, product, c, mode) if f.is_infinite(c) else product
    if f.is_infinite(c):
        return c
    return _sum(f, [(f.value(a) * f.value(b), bool(sign)), (f.value(c), f.is_negative(c))], mode)


def _div(f: Format, a: int, b: int, mode: str) -> int:
    sign = (a ^ b) & f.sign
    if f.is_infinite(a) or f.is_zero(b):
        undefined = f.is_infinite(b) if f.is_infinite(a) else f.is_zero(a)
        return f.nan if undefined else sign | f.infinity
    return sign if f.is_infinite(b) else f.round(f.value(a) / f.value(b), mode, bool(sign))


def _sqrt(f: Format, a: int, mode: str) -> int:
    if f.is_zero(a):
        return a
    if f.is_negative(a):
        return f.nan
    if f.is_infinite(a):
        return a
    q = f.value(a)
    shift = 4 * f.mantissa + 2 * abs(floor_log2(q)) + 8
    scaled = q * Fraction(4) ** shift
    root = isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(root) ** 2 == scaled
    # Anything strictly between two representable neighbours rounds like the irrational root.
    return f.round((Fraction(root) if exact else Fraction(2 * root + 1, 2)) / Fraction(2) ** shift, mode)


def arithmetic(name: str, f: Format, xs: tuple[int, ...], mode: str = "rn", ftz: bool = False, sat: bool = False) -> int:
    """One operation on bit patterns, correctly rounded; NaN results are canonical."""
    if ftz:
        xs, f = tuple(f.flush(x) for x in xs), replace(f, flushes=True)
    if any(f.is_nan(x) for x in xs):
        result = f.nan
    elif name == "sub":
        result = _add(f, xs[0], xs[1] ^ f.sign, mode)
    elif name == "rcp":
        result = _div(f, f.one, xs[0], mode)
    else:
        functions = {"add": _add, "mul": _mul, "fma": _fma, "mad": _fma, "div": _div, "sqrt": _sqrt}
        result = functions[name](f, *xs, mode)  # type: ignore[operator]
    return f.saturate(result) if sat else result


def extreme(name: str, f: Format, a: int, b: int, nan: bool) -> int:
    if f.is_nan(a) or f.is_nan(b):
        both = f.is_nan(a) and f.is_nan(b)
        return f.nan if nan or both else b if f.is_nan(a) else a
    ordered = sorted((a, b), key=lambda x: -(x & (f.sign - 1)) - 1 if f.is_negative(x) else x)
    return ordered[0] if name == "min" else ordered[-1]


def convert(source: Format, target: Format, x: int, mode: str = "rn") -> int:
    """A NaN of f64 that becomes shorter keeps its sign and the upper bits of its payload, as on sm_90; others are canonical."""
    if source.is_nan(x) and source is F64 and target is not F64:
        payload = (x & ((1 << F64.mantissa) - 1)) >> F64.mantissa - target.mantissa
        return (target.sign if F64.is_negative(x) else 0) | target.infinity | 1 << target.mantissa - 1 | payload
    if source.is_nan(x):
        return target.nan
    if source.is_infinite(x):
        return target.infinity | (target.sign if source.is_negative(x) else 0)
    return target.round(source.value(x), mode, source.is_negative(x))


# ---------------------------------------------------------------- integers


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def unsigned(x: int, bits: int) -> int:
    return x & ((1 << bits) - 1)


def clamp(x: int, is_signed: bool, bits: int) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    return max(low, min(high, x))


# ---------------------------------------------------------------- inputs


def integer_edges(bits: int) -> np.ndarray:
    values = {0, 1, 2, 3, 5, 7, 0x12345678, 0x9ABCDEF0, 0x123456789ABCDEF0, 1000003}
    for power in (4, 5, 6, 7, 8, 15, 16, 23, 24, 31, 32, 33, 53, 63, 64):
        values |= {(1 << power) - 1, 1 << power, (1 << power) + 1, -(1 << power), -(1 << power) - 1, 1 - (1 << power)}
    return np.array(sorted({v & ((1 << bits) - 1) for v in values}), dtype=f"u{bits // 8}")


def float_edges(f: Format) -> np.ndarray:
    m = f.mantissa
    values = {0, 1, 2, 3, (1 << m) - 1, 1 << m, (1 << m) + 1, f.infinity, f.infinity - 1, f.infinity - 2, f.infinity + 1,
              f.nan, f.nan & ~1, f.one, f.one - 1, f.one + 1, f.one + (1 << m), f.one - (1 << m),
              f.one + (1 << (m - 1)), f.one + (m << m) + 1, f.one - (m << m) - 1, 3 << (m - 1)}  # fmt: skip
    for power in (*range(-3, 3), 7, 8, 15, 16, 31, 32, 63, 64):
        for offset in (Fraction(-1), Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(1)):
            values.add(f.round(abs(Fraction(2) ** power + offset)))
    both = values | {v ^ f.sign for v in values}
    return np.array(sorted(both), dtype=f"u{f.bits // 8}")


def random_bits(bits: int, count: int, seed: int = 1) -> np.ndarray:
    raw = np.random.default_rng(seed).integers(0, 256, count * bits // 8, dtype=np.uint8)
    return raw.view(f"u{bits // 8}")


def pairs(values: np.ndarray, extra: np.ndarray, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of ``values``, then ``extra`` against a shuffle of itself."""
    a, b = np.meshgrid(values, values)
    shuffled = np.random.default_rng(seed).permutation(extra)
    return np.concatenate([a.ravel(), extra]), np.concatenate([b.ravel(), shuffled])
