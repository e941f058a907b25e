"""Oracles for instructions among the lanes of a warp and for copies: the manual's rules over Python lists."""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable, Sequence

from tests.isa import oracles as isa_oracles

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


# ---------------------------------------------------------------- asynchronous copies


def combined_words(xs: Sequence[int]) -> int:
    """What a thread makes of the words it reads: the kernel multiplies by 3 and adds."""
    return functools.reduce(lambda total, x: total * 3 + x, xs, 0)


def masked_word(word: int, count: int) -> int:
    """A word of which only the first ``count`` bytes were copied."""
    return word & ((1 << 8 * min(max(count, 0), 4)) - 1)


def reduced(i: int, a: Sequence[int], d: Sequence[int], forms: Sequence[tuple[str, str]]) -> int:
    """Word i of memory d after reductions with a: 16 words for each form."""
    op, type = forms[i // 16]
    bits = isa_oracles.bits_of(type)
    if bits == 64:
        low = i & ~1
        return reduce_element(op, type, d[low] | d[low + 1] << 32, a[low] | a[low + 1] << 32) >> 32 * (i & 1) & 0xFFFFFFFF
    parts = [reduce_element(op, type, x, y) for x, y in zip(halves(d[i], bits), halves(a[i], bits), strict=True)]
    return sum(x << bits * k for k, x in enumerate(parts))


def reduce_element(op: str, type: str, old: int, b: int) -> int:
    x, y = isa_oracles.number(type, old), isa_oracles.number(type, b)
    return isa_oracles.atomic(op, x, y, type, ftz=type == "f32") & ((1 << isa_oracles.bits_of(type)) - 1)


def halves(word: int, bits: int) -> list[int]:
    return [word >> shift & ((1 << bits) - 1) for shift in range(0, 32, bits)]


def all_lanes(form: tuple[str, str], value: int) -> int:
    """A place in memory after all lanes of a warp have updated it, lane after lane."""
    op, type = form
    for lane in range(32):
        word = lane * 0x9E3779B1 & 0xFFFFFFFF
        operand = word * 0x100000003 & (1 << 64) - 1 if type.endswith("64") else word
        value = reduce_element(op, type, value, operand)
    return value


def float_word(x: int) -> int:
    return int.from_bytes(struct.pack("<f", x), "little")


def stored(i: int, words: int, items: Sequence[str]) -> int:
    """Word i of what each lane has stored: numbers, its lane (i) or that as a float (f)."""
    lane, item = i // words, items[i % words]
    return {"i": lane, "f": float_word(lane)}[item] if item in "if" else int(item, 0)
