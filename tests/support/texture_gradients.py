"""The mip level that follows from gradients, as docs/semantics.md has it ("Mip levels and gradients"), in rational numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tests.support.texture_cube import FACES, face_of

Vector = Sequence[np.float32]
LEAST = Fraction(1, 2**126)
ONE_LESS = {0, 61, 86, 108, 109, 110, 111, 115, 116, 117, 141, 162, 170, 255}
"""Of which 256 times the logarithm is one less than rounded."""


def exponent_of(value: Fraction) -> int:
    """Of the leading bit of a positive number."""
    found = value.numerator.bit_length() - value.denominator.bit_length()
    return found if Fraction(2) ** found <= value else found - 1


def cut(value: Fraction, unit: Fraction) -> Fraction:
    return math.floor(value / unit) * unit


def last_place(value: Fraction) -> Fraction:
    """Of a number of ten bits."""
    return Fraction(2) ** (exponent_of(value) - 9) if value else Fraction(0)


def short(value: Fraction) -> Fraction:
    return cut(value, last_place(value)) if value else value


def magnitude(value: np.float32) -> Fraction:
    """Of an f32, to ten bits; infinity is 2^128."""
    if np.isnan(value):
        return Fraction(0)
    exact = Fraction(2) ** 128 if np.isinf(value) else abs(Fraction(float(value)))
    return short(exact) if exact >= LEAST else Fraction(0)


def in_texels(number: Fraction, extent: int) -> Fraction:
    """Times an extent: its partial products have three bits more."""
    if not number:
        return number
    places = extent.bit_length() - 1
    unit = last_place(number)
    partial = [cut(number / 2**k, unit / 8) for k in range(min(places, 9) + 1) if extent >> places - k & 1]
    return short(cut(sum(partial, Fraction(0)) + unit * Fraction(7, 8), unit) * 2**places)


def added(a: Fraction, b: Fraction, sign: int) -> Fraction:
    """The magnitude of a sum: one bit more than the larger one has."""
    unit = max(last_place(a), last_place(b)) / 2
    return short(abs(cut(a, unit) + sign * cut(b, unit))) if unit else unit


class Part(NamedTuple):
    """A component of a length: rounded, exact, its last place, and what is added to 11/32 of it."""

    rounded: Fraction
    exact: Fraction
    unit: Fraction
    offset: Fraction

    @classmethod
    def whole(cls, number: Fraction) -> Part:
        unit = last_place(number)
        return cls(number, number, unit, unit / 8)

    @classmethod
    def reduced(cls, number: Fraction) -> Part:
        """11/16 of a number."""
        unit, exact = last_place(number), number * Fraction(11, 16)
        own = unit if exact + unit / 4 >= 512 * unit else unit / 2
        return cls(cut(exact + unit / 4, own) if number else number, exact, own, unit / 16)


def length(components: Sequence[Fraction], make: Callable[[Fraction], Part]) -> Fraction:
    """max + 11/32 mid + 1/4 min."""
    parts = [make(number) for number in sorted(components, reverse=True)]
    total = parts[0].rounded
    if len(parts) > 1 and parts[1].rounded:
        mid, unit = parts[1], parts[1].unit
        fine = 4 if mid.rounded * Fraction(11, 32) + unit / 8 < 256 * unit else 2
        quarter = cut(parts[2].rounded / 4, unit / fine) if len(parts) > 2 else Fraction(0)
        total += cut(mid.exact * Fraction(11, 32) + quarter + mid.offset, unit)
    return total


def logarithm(value: Fraction) -> float:
    """In levels, of the first nine bits."""
    if not value:
        return -math.inf
    exponent = exponent_of(value)
    index = math.floor(value / Fraction(2) ** (exponent - 8)) - 256
    return exponent + (math.floor(256 * math.log2(1 + (index + 0.5) / 256) + 0.5) - (index in ONE_LESS)) / 256


class Slope(NamedTuple):
    """Steps in texels and their signs."""

    sizes: list[Fraction]
    negative: list[bool]


def level(first: Slope, second: Slope, apart: bool = False) -> float:
    lengths = [length(slope.sizes, Part.whole) for slope in (first, second)]
    if not apart:
        for difference in (False, True):
            pairs = zip(first.sizes, second.sizes, first.negative, second.negative)
            sums = [added(a, b, -1 if s ^ t ^ difference else 1) for a, b, s, t in pairs]
            lengths.append(length(sums, Part.reduced))
    return logarithm(max(lengths))


# ---------------------------------------------------------------- from operands to slopes


def plain_level(along: Sequence[Vector], extents: Sequence[int], position: Vector | None) -> float:
    """Of gradients; with a position, they are what the coordinates differ by."""
    slopes = []
    for vector in along:
        steps = vector if position is None else [(p + v) - p for p, v in zip(position, vector)]
        sizes = [in_texels(magnitude(step), extent) for step, extent in zip(steps, extents)]
        slopes.append(Slope(sizes, [bool(np.signbit(step)) for step in steps]))
    return level(*slopes)


def cube_level(along: Sequence[Vector], size: int, direction: Vector) -> float:
    """Of a cube: the pixels' places in the plane of the first one's face, into which neighbours are folded."""
    start = divided(direction)
    face = face_of(start)
    slopes, apart = [], False
    for vector in along:
        end = divided([p + v for p, v in zip(direction, vector)])
        other = face_of(end)
        if other != face:
            apart = True
            if other // 2 == face // 2:
                return math.inf
        (s, s_sign), (t, t_sign), (out, out_sign) = FACES[face]
        sizes, signs = [], []
        for axis, sign in ((s, s_sign), (t, t_sign)):
            here, there, beyond = sign * start[axis], sign * end[axis], np.float32(0)
            step = there - here
            if other // 2 == axis:  # over the edge on this side
                side = sign if other % 2 == 0 else -sign
                step, beyond = 1 - side * here, 1 - out_sign * end[out]
            parts = [in_texels(magnitude(value) / 2, size) for value in (step, beyond)]
            sizes.append(added(*parts, 1))
            signs.append(bool(np.signbit(step)))
        slopes.append(Slope(sizes, signs))
    return level(*slopes, apart)


def divided(direction: Vector) -> list[np.float32]:
    """A direction by its largest component."""
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / max(abs(value) for value in direction)
        return [value * inverse for value in direction]
