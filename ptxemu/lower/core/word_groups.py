"""Words of lanes in groups side by side, whose stamps are looked at together (lower/core/stamps.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES

WORD_BYTES = 4
VECTOR = 8  # stamps of one
NOBODY = -1
SEVERAL = LANES  # is added to the last lane of those that have a word


class Group(Struct):
    """Words side by side, from an offset off an address on, and the lane that has each: ``NOBODY``, if none has, or the last one,
    plus ``SEVERAL``. Or words anywhere, so many bytes behind that."""

    start: str
    offset: int
    lanes: tuple[int, ...]
    anywhere: tuple[int, ...] = ()

    @property
    def words(self) -> int:
        return len(self.lanes)

    @property
    def last(self) -> int:
        """The last word that a lane has."""
        return max(word for word, lane in enumerate(self.lanes) if lane != NOBODY)

    @property
    def type(self) -> str:
        return f"<{self.words} x i64>"

    def pieces(self) -> Iterator[Group]:
        """It in parts of a vector."""
        for first in range(0, self.words, VECTOR):
            offset, end = self.offset if self.anywhere else self.offset + WORD_BYTES * first, first + VECTOR
            yield Group(self.start, offset, self.lanes[first:end], self.anywhere[first:end])


def lanes_of(offsets: Sequence[int], count: int) -> dict[int, int]:
    """The lane that has each word, by its offset, of lanes that have so many words each."""
    lanes: dict[int, int] = {}
    for lane, first in enumerate(offsets):
        for word in range(first, first + WORD_BYTES * count, WORD_BYTES):
            lanes[word] = lane + SEVERAL if word in lanes else lane
    return lanes


def windows(lanes: Mapping[int, int], near: int, unit: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Words, given as the lane at each offset, in groups that go on if the next one is so ``near``: the first offset of each, and
    its lanes. A multiple of ``unit`` of them, of which some may be nobody's."""
    while lanes:
        start = end = min(lanes)
        while following := [offset for offset in lanes if end < offset <= end + WORD_BYTES * near]:
            end = max(following)
        words = -(-((end - start) // WORD_BYTES + 1) // unit) * unit
        inside = range(start, start + WORD_BYTES * words, WORD_BYTES)
        yield start, tuple(lanes.get(offset, NOBODY) for offset in inside)
        lanes = {offset: lane for offset, lane in lanes.items() if offset not in inside}


def scattered(start: str, lanes: Mapping[int, int]) -> Group | None:
    """Words of which it is enough to know the stamps of the first and the last to know that those of all are kept."""
    offsets = sorted(lanes)
    first, last = offsets[0], offsets[-1]
    if len(offsets) > LANES or last - first >= 1 << int(lib.PE_SHADOW_LOG2):
        return None
    return Group(start, first, tuple(lanes[offset] for offset in offsets), tuple(offset - first for offset in offsets))
