"""Oracles for instructions among the lanes of a warp: the manual's rules over Python lists."""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable, Sequence

CANONICAL_NAN = 0x7FFFFFFF
FLOATS = (0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x00000001, 0x80000001, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
          0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x42280000)  # fmt: skip


def some_float(i: int) -> int:
    """Bits of a float: special values in some warps, NaNs only in every seventh."""
    warp, lane = divmod(i, 32)
    if warp % 7 == 6:
        return 0x7FC00000 + lane
    return FLOATS[(lane * (warp + 1) + warp) % (len(FLOATS) if warp % 2 else 8)]


def value_of(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def redux_float(name: str, xs: Sequence[int], absolute: bool, nan: bool) -> int:
    """redux.sync.{min,max}{.abs}{.NaN}.f32 over bit patterns."""
    xs = [x & 0x7FFFFFFF for x in xs] if absolute else list(xs)
    numbers = [x for x in xs if value_of(x) == value_of(x)]
    if not numbers or (nan and len(numbers) < len(xs)):
        return CANONICAL_NAN
    choose: Callable[..., int] = min if name == "min" else max
    return choose(numbers, key=lambda x: (value_of(x), -(x >> 31)))


def warp_of(xs: Sequence[int], i: int, mask: int = 0xFFFFFFFF) -> list[int]:
    """The values that the lanes of thread i's warp have which are in a mask."""
    start = i // 32 * 32
    return [x for lane, x in enumerate(xs[start : start + 32]) if mask >> lane & 1]


def tile(i: int, width: int) -> int:
    """The membermask of thread i's tile of ``width`` lanes."""
    return ((1 << width) - 1) << (i % 32 // width * width)


def exclusive_or(xs: Sequence[int]) -> int:
    return functools.reduce(operator.xor, xs)


def ballot(xs: Sequence[int], i: int, mask: int) -> int:
    """The lanes of a mask whose value is not zero."""
    start = i // 32 * 32
    return sum(1 << lane for lane in range(32) if mask >> lane & 1 and xs[start + lane])


def equal_lanes(xs: Sequence[int], i: int, mask: int) -> int:
    return ballot([int(x == xs[i]) for x in xs], i, mask)
