"""The formats of eight bits and fewer and stochastic rounding, from the values of all their patterns.

Names that ``tests/isa`` expressions use, next to those of :mod:`tests.isa.oracles`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tests.support.elementwise_oracle import BF16, F16, F32, Format, floor_log2

CANONICAL = 0x7FFF
BITS = {
    "e2m1x2": 8, "e4m3x2": 16, "e5m2x2": 16, "e2m3x2": 16, "e3m2x2": 16, "ue8m0x2": 16, "e2m1x4": 16,
    "e4m3": 8, "e5m2": 8, "e4m3x4": 32, "e5m2x4": 32, "s2f6x2": 16, "ue5m3x2": 16,
    "ue8m0": 8,
}  # fmt: skip
"""Of the register that holds several."""
QUARTERS = {
    "e2m1": ((8, 15, 24, 31), (31, 24, 15, 8), (0, 7, 16, 23), (23, 16, 7, 0)),
    "others": ((16, 31), (31, 16), (0, 15), (15, 0)),
}
"""Where the random bits of each of four elements are, the uppermost first: ranges of bits of the random operand, from and to, as
vkuzo/quant_cast_bench (``experiments/nvidia_rs_bit_probe``) has measured them on sm_100."""


@dataclass(frozen=True)
class NarrowFormat:
    """``patterns`` without sign are numbers; ``nan`` is what NaN becomes.  What is not ``signed`` has magnitudes."""

    exponent: int
    mantissa: int
    patterns: int
    nan: int
    infinity: int | None = None
    signed: bool = True

    @property
    def bits(self) -> int:
        return self.signed + self.exponent + self.mantissa

    def value(self, pattern: int) -> Fraction:
        field, fraction = divmod(pattern, 1 << self.mantissa)
        significand = fraction + ((1 << self.mantissa) if field else 0)
        bias = (1 << (self.exponent - 1)) - 1
        return Fraction(significand) * Fraction(2) ** (max(field, 1) - bias - self.mantissa)


NARROW = {
    "e4m3": NarrowFormat(4, 3, 0x7F, 0x7F), "e5m2": NarrowFormat(5, 2, 0x7C, 0x7F, 0x7C),
    "e2m3": NarrowFormat(2, 3, 0x20, 0x1F), "e3m2": NarrowFormat(3, 2, 0x20, 0x1F), "e2m1": NarrowFormat(2, 1, 8, 7),
    "ue5m3": NarrowFormat(5, 3, 0xFF, 0xFF, signed=False),
}  # fmt: skip


PAIRS = {"f16x2": F16, "bf16x2": BF16}


@cache
def values(name: str) -> list[Fraction]:
    """The numbers by pattern, which is their order."""
    f = NARROW[name]
    return [f.value(pattern) for pattern in range(f.patterns)]


@cache
def halves(name: str) -> tuple[int, list[int]]:
    """How many halves of the least number make 1, and the numbers in such halves by pattern, with what would follow the last."""
    f = NARROW[name]
    unit = f.value(1) / 2
    return unit.denominator, [int(f.value(pattern) / unit) for pattern in range(f.patterns + 1)]


def rounded(name: str, q: Fraction, mods: Sequence[str]) -> int:
    """The pattern of a number that is not negative, rounded by ``rz`` or ``rp`` if one is among ``mods``, else to nearest even;
    what is rounded to more than the last number is the pattern behind it."""
    whole, numbers = halves(name)
    count, rest = divmod(q.numerator * whole, q.denominator)
    low = min(bisect_right(numbers, count), len(numbers) - 1) - 1
    above = count - numbers[low]
    if "rz" in mods or "rp" in mods:
        return low + ("rp" in mods and (above > 0 or rest > 0))
    middle = (numbers[low + 1] - numbers[low]) // 2
    return low + (above > middle or (above == middle and (rest > 0 or low % 2 == 1)))


@cache
def power(scale: int) -> Fraction:
    """The factor that a pattern of ue8m0 stands for."""
    return Fraction(2) ** (scale - 127)


def to_narrow(name: str, source: Format, x: int, mods: Sequence[str], scale: int = 127) -> int:
    """One number of a source format, divided by a factor, with satfinite for all formats but ue5m3, which may do without."""
    f = NARROW[name]
    if source.is_nan(x) or scale == 255:
        return f.nan
    negative = f.signed and source.is_negative(x)
    if negative and "relu" in mods:
        return 0
    magnitude = x & (source.sign - 1)
    if "scaled::n1::ue8m0" in mods:
        magnitude = source.flush(magnitude)
    pattern = f.patterns if source.is_infinite(magnitude) else rounded(name, source.value(magnitude) / power(scale), mods)
    if f.signed or "satfinite" in mods:
        pattern = min(pattern, f.patterns - 1)
    if pattern == 0 and "pzo" in mods:
        return 0
    return pattern | (1 << (f.bits - 1) if negative else 0)


def narrow_pair(target: str, mods: Sequence[str], *xs: int, packed: str = "f16x2", scale: int = 127) -> int:
    """Two f32, or one register of a packed type, to a pair of a narrow format."""
    name = target[:-2]
    source = F32 if len(xs) == 2 else PAIRS[packed]
    upper, lower = xs if len(xs) == 2 else (xs[0] >> 16, xs[0] & 0xFFFF)
    size = 4 if name == "e2m1" else 8
    return to_narrow(name, source, upper, mods, scale) << size | to_narrow(name, source, lower, mods, scale)


def from_narrow(name: str, x: int, mods: Sequence[str], target: Format = F16, scale: int = 127) -> int:
    """The pattern of 16 bits of a narrow one times a factor."""
    f = NARROW[name]
    sign = x >> (f.bits - 1) & f.signed
    magnitude = x & ((1 << (f.bits - f.signed)) - 1)
    if scale == 255:
        return CANONICAL
    if magnitude == f.infinity:
        pattern = target.infinity
    elif magnitude >= f.patterns:
        return CANONICAL
    else:
        pattern = target.round(f.value(magnitude) * power(scale))
    pattern -= pattern == target.infinity and "satfinite" in mods
    return 0 if sign and "relu" in mods else pattern | sign << 15


def half_pair(source: str, mods: Sequence[str], x: int, packed: str = "f16x2", scales: int = 0x7F7F) -> int:
    """A packed type of two times 16 bits from a pair of a narrow format, with a factor for each."""
    size = 4 if source == "e2m1x2" else 8
    pairs = ((x >> size, scales >> 8), (x & ((1 << size) - 1), scales & 255))
    upper, lower = (from_narrow(source[:-2], field, mods, PAIRS[packed], scale) for field, scale in pairs)
    return upper << 16 | lower


def to_fixed(source: Format, x: int, mods: Sequence[str], scale: int = 127) -> int:
    """s2f6: a signed byte of 64ths."""
    if source.is_nan(x) or scale == 255:
        return 127
    if source.is_infinite(x):
        count = -128 if source.is_negative(x) else 127
    else:
        q = 64 * source.value(x) / power(scale)
        count = min(max(int(q) if "rz" in mods else round(q), -128), 127)
    return (max(count, 0) if "relu" in mods else count) & 255


def fixed_pair(mods: Sequence[str], *xs: int, scales: int = 0x7F7F) -> int:
    """Two f32, or one bf16x2, to s2f6x2."""
    source = F32 if len(xs) == 2 else BF16
    upper, lower = xs if len(xs) == 2 else (xs[0] >> 16, xs[0] & 0xFFFF)
    return to_fixed(source, upper, mods, scales >> 8) << 8 | to_fixed(source, lower, mods, scales & 255)


def from_fixed(x: int, mods: Sequence[str], scale: int = 127) -> int:
    """bf16 from s2f6."""
    if scale == 255:
        return CANONICAL
    q = Fraction(x - 2 * (x & 128), 64) * power(scale)
    pattern = BF16.round(abs(q))
    pattern -= pattern == BF16.infinity and "satfinite" in mods
    return pattern if q >= 0 else 0 if "relu" in mods else pattern | BF16.sign


def brain_pair(mods: Sequence[str], x: int, scales: int = 0x7F7F) -> int:
    """bf16x2 from s2f6x2."""
    return from_fixed(x >> 8, mods, scales >> 8) << 16 | from_fixed(x & 255, mods, scales & 255)


def to_scale(source: Format, x: int, mods: Sequence[str]) -> int:
    """ue8m0: the pattern ``n`` is 2**(n - 127), and 255 is NaN."""
    if source.is_nan(x):
        return 255
    magnitude = x & (source.sign - 1)
    top = 254 if "satfinite" in mods else 255
    if source.is_infinite(magnitude):
        return top
    q = source.value(magnitude)
    if q == 0:
        return 0
    exponent = floor_log2(q)
    exponent += "rp" in mods and Fraction(2) ** exponent != q
    return min(max(exponent + 127, 0), top)


def scale_pair(mods: Sequence[str], *xs: int) -> int:
    """Two f32, or one bf16x2, to ue8m0x2."""
    source = F32 if len(xs) == 2 else BF16
    upper, lower = xs if len(xs) == 2 else (xs[0] >> 16, xs[0] & 0xFFFF)
    return to_scale(source, upper, mods) << 8 | to_scale(source, lower, mods)


def from_scale(x: int) -> int:
    return CANONICAL if x == 255 else BF16.round(power(x))


def stochastic(target: Format, x: int, random: int, mods: Sequence[str]) -> int:
    """f32 rounded away from zero if what is discarded, as a fraction of a step, and the random fraction exceed one."""
    if F32.is_nan(x):
        return CANONICAL
    negative = F32.is_negative(x)
    if negative and "relu" in mods:
        return 0
    magnitude = x & (F32.sign - 1)
    top = target.infinity - ("satfinite" in mods)
    width = 23 - target.mantissa  # of the random bits
    random &= (1 << width) - 1
    if F32.is_infinite(magnitude):
        pattern = top
    else:
        q = F32.value(magnitude)
        pattern = target.round(q, "rz")
        step = target.value(pattern + 1) - target.value(pattern) if pattern + 1 < target.infinity else None
        if step is None:
            step = target.value(pattern) - target.value(pattern - 1)
        discarded = (q - target.value(pattern)) / step
        pattern += int(discarded * (1 << width)) + random >= 1 << width
    return min(pattern, top) | (target.sign if negative else 0)


def stochastic_pair(target: str, mods: Sequence[str], a: int, b: int, random: int) -> int:
    f = {"f16x2": F16, "bf16x2": BF16}[target]
    return stochastic(f, a, random >> 16, mods) << 16 | stochastic(f, b, random & 0xFFFF, mods)


def random_quarter(ranges: Sequence[int], random: int) -> int:
    """The random bits of one of four elements."""
    steps = [(a, b, 1 if b > a else -1) for a, b in zip(ranges[::2], ranges[1::2], strict=True)]
    places = [bit for a, b, step in steps for bit in range(a, b + step, step)]
    return sum((random >> bit & 1) << (15 - at) for at, bit in enumerate(places))


def stochastic_quad(target: str, mods: Sequence[str], *xs_and_random: int) -> int:
    """Four f32 to four elements of a narrow format, the first in the uppermost field; too large is the largest number."""
    *xs, random = xs_and_random
    name = target[:-2]
    f, numbers = NARROW[name], values(name)
    packed = 0
    for x, ranges in zip(xs, QUARTERS.get(name, QUARTERS["others"]), strict=True):
        packed <<= 4 if name == "e2m1" else 8
        negative, magnitude = F32.is_negative(x), x & (F32.sign - 1)
        if F32.is_nan(x):
            packed |= f.nan
        elif not (negative and "relu" in mods):
            q = numbers[-1] if F32.is_infinite(magnitude) else min(F32.value(magnitude), numbers[-1])
            low = bisect_right(numbers, q) - 1
            if low + 1 < len(numbers):
                part = (q - numbers[low]) / (numbers[low + 1] - numbers[low])
                low += part + Fraction(random_quarter(ranges, random), 1 << 16) >= 1
            packed |= low | (1 << (f.bits - 1) if negative else 0)
    return packed
