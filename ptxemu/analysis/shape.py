"""Shapes: how a value varies over the lanes of a warp.

A value whose lanes are ``base + offsets[lane]`` with constant offsets is kept as the scalar ``base`` alone.  All offsets
zero is *uniform*; equal steps are *affine*; other patterns come from 2D blocks (``tid.x`` of a 16-wide block is 0..15
twice).  ``None`` as a shape means varying: one vector with a value for every lane.

Widening a 32-bit pattern to 64 bits is exact only if no lane wraps.  The op that widens (a *widening*) tests that at run time;
when it fails, it sets the warp's sticky ``wrapped`` flag and keeps, lane by lane, what must be added (2**32 or its negative).
``widenings`` says which corrections, times which factor, belong to a value.  They are read only when the flag is set.
"""

from __future__ import annotations

import operator
from functools import cache, lru_cache

from msgspec import Struct

from ptxemu.ir.ops import Op

MAX_OFFSET = 1 << 24  # keeps every lane of an access inside the arena's margins
MAX_WIDENINGS = 4


class Shape(Struct, frozen=True):
    """``offsets``: one constant for each lane, relative to the base.

    ``zeros``: known trailing zero bits of the base; ``high``: largest possible value of any lane (as an unsigned number),
    or None.  ``widenings``: sorted (widening, factor) corrections.
    """

    offsets: tuple[int, ...]
    zeros: int = 0
    high: int | None = None
    widenings: tuple[tuple[Op, int], ...] = ()

    @property
    def uniform(self) -> bool:
        return not any(self.offsets) and not self.widenings

    @property
    def spread(self) -> tuple[int, int]:
        return min(self.offsets), max(self.offsets)

    @property
    def stride(self) -> int:
        """How far each lane lies behind the one before; 0 if they are not one distance apart."""
        first, second = self.offsets[:2]
        distance = second - first
        equal = distance and self.offsets == tuple(range(first, first + distance * len(self.offsets), distance))
        return distance if equal else 0

    def strided(self, size: int) -> bool:
        """Whether lanes lie one distance apart, a multiple of ``size``, with room for two elements of it between neighbours."""
        return self.stride % size == 0 and abs(self.stride) > 2 * size


@cache
def no_offsets(lanes: int) -> tuple[int, ...]:
    """One object, as shapes are compared often."""
    return (0,) * lanes


@lru_cache
def uniform(lanes: int, zeros: int = 0, high: int | None = None) -> Shape:
    return Shape(no_offsets(lanes), zeros, high)


@lru_cache
def constant(lanes: int, bits: int) -> Shape:
    """The shape of a constant: its alignment and value are known."""
    return Shape(no_offsets(lanes), trailing_zeros(bits), bits)


def trailing_zeros(value: int) -> int:
    return 64 if value == 0 else (value & -value).bit_length() - 1


def checked(offsets: tuple[int, ...], zeros: int, high: int | None, widenings: tuple[tuple[Op, int], ...]) -> Shape | None:
    """A shape, or None (varying) if it is outside what the lowering can use."""
    if not any(offsets) and not widenings:
        return uniform(len(offsets), zeros, high)
    if max(offsets) > MAX_OFFSET or min(offsets) < -MAX_OFFSET or len(widenings) > MAX_WIDENINGS:
        return None
    return Shape(offsets, zeros, high, widenings)


def merge_widenings(a: Shape, b: Shape, sign: int = 1) -> tuple[tuple[Op, int], ...]:
    if not b.widenings:
        return a.widenings
    total = dict(a.widenings)
    for widening, factor in b.widenings:
        total[widening] = total.get(widening, 0) + sign * factor
    return tuple(sorted(((s, f) for s, f in total.items() if f), key=lambda item: item[0].pos))


def add(a: Shape, b: Shape, bits: int) -> Shape | None:
    offsets = tuple(map(operator.add, a.offsets, b.offsets))
    high = None if a.high is None or b.high is None else a.high + b.high
    return checked(offsets, min(a.zeros, b.zeros), _fits(high, bits), merge_widenings(a, b))


def sub(a: Shape, b: Shape) -> Shape | None:
    offsets = tuple(map(operator.sub, a.offsets, b.offsets))
    return checked(offsets, min(a.zeros, b.zeros), None, merge_widenings(a, b, -1))


def scale(a: Shape, factor: int, bits: int) -> Shape | None:
    """Multiplication by a constant (given as a signed number)."""
    offsets = tuple(x * factor for x in a.offsets)
    high = None if a.high is None or factor < 0 else a.high * factor
    widenings = tuple((widening, times * factor) for widening, times in a.widenings) if factor else ()
    return checked(offsets, min(64, a.zeros + trailing_zeros(factor)), _fits(high, bits), widenings)


def product(a: Shape, b: Shape, bits: int) -> Shape | None:
    """Multiplication of uniform values; the result has ``bits`` bits."""
    if not a.uniform or not b.uniform:
        return None
    high = None if a.high is None or b.high is None else _fits(a.high * b.high, bits)
    return uniform(len(a.offsets), min(64, a.zeros + b.zeros), high)


def shift_right(a: Shape, amount: int, sign: int | None) -> Shape | None:
    """Right shift of ``base + offset`` splits when no carry can cross the cut; ``sign`` is the bit that is copied, if any."""
    if a.widenings or not separate(a):
        return None
    if sign is not None and a.high is not None and a.high >> sign:
        a = Shape(a.offsets, a.zeros)
    if a.high is not None and a.high >> amount == 0:
        return constant(len(a.offsets), 0)
    if a.zeros < amount and any(a.offsets):
        # base's low bits below the cut are unknown from bit `zeros` up; offsets only reach below them
        if max(a.offsets) >> amount or max(a.offsets) >= 1 << a.zeros:
            return None
        return Shape((0,) * len(a.offsets), 0, None if a.high is None else a.high >> amount)
    high = None if a.high is None else a.high >> amount
    return Shape(tuple(x >> amount for x in a.offsets), max(0, a.zeros - amount), high)


def mask(a: Shape, value: int) -> Shape | None:
    """``and`` with a constant: bit by bit where base and offsets do not overlap."""
    if a.widenings or not separate(a):
        return None
    high = value if a.high is None else min(a.high, value)
    return Shape(tuple(x & value for x in a.offsets), max(a.zeros, trailing_zeros(value)), high)


def disjoint_or(a: Shape, b: Shape) -> Shape | None:
    """``or``/``xor`` of a pattern with a uniform value whose low bits are zero where the pattern has its offsets."""
    pattern, other = (a, b) if any(a.offsets) else (b, a)
    if any(other.offsets) or a.widenings or b.widenings or not separate(pattern):
        return None
    if max(pattern.offsets) >= 1 << min(other.zeros, 63):
        return None
    high = None if a.high is None or b.high is None else (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
    return Shape(pattern.offsets, min(a.zeros, b.zeros), high)


def separate(a: Shape) -> bool:
    """No offset reaches a bit that the base may have set."""
    return min(a.offsets) >= 0 and max(a.offsets) < 1 << min(a.zeros, 63)


def _fits(high: int | None, bits: int) -> int | None:
    return high if high is not None and high < 1 << (bits - 1) else None


def meet(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of a value that is one or the other for the whole warp."""
    if a is b:
        return a
    if a is None or b is None or (a.offsets is not b.offsets and a.offsets != b.offsets) or a.widenings != b.widenings:
        return None
    lesser = a if a.zeros <= b.zeros else b
    return lesser if a.high == b.high else unbounded(lesser)


def unbounded(a: Shape) -> Shape:
    """The same of values with any bound."""
    if a.high is None:
        return a
    if a.offsets is no_offsets(len(a.offsets)) and not a.widenings:
        return uniform(len(a.offsets), a.zeros)
    return Shape(a.offsets, a.zeros, None, a.widenings)
