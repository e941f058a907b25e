"""What the parts of a launch leave together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxemu._runtime import lib
from ptxemu.spread.footprint import Blocks, Changes
from ptxemu.spread.updates import update_of
from ptxemu.text.errors import Error

Bytes = NDArray[np.uint8]
Extent = tuple[int, int, int]
Place = Callable[[str, int], str]
"""What a byte of an area is, in words."""
NOT_SPREAD = "one launch over several workers needs blocks that share no results but by integer reductions"


class ConflictError(Error):
    """Blocks of different parts do to the same memory what depends on their order."""

    exit_code = 1


def merged(before: Mapping[str, Bytes], parts: Sequence[Mapping[str, Changes]], grid: Extent, place: Place) -> dict[str, Bytes]:
    """The bytes of each area after all parts of a launch, each of which began with those ``before``.

    Raises ConflictError, which names both blocks and the place, where one writes what another one writes otherwise, updates or
    reads.
    """
    found: dict[str, Bytes] = {}
    for name, data in before.items():
        found[name] = _merged(data, [part[name] for part in parts if name in part], grid, partial(place, name))
    return found


def _merged(before: Bytes, parts: Sequence[Changes], grid: Extent, place: Callable[[int], str]) -> Bytes:
    if not any(part.bytes.size for part in parts):
        return before
    state = _State(before.copy(), np.zeros(before.size, np.uint32), np.zeros(before.size, np.uint32),
                   np.zeros(before.size, np.uint8), before, grid, place)  # fmt: skip
    for part in parts:
        state.add(part)
    return state.bytes


class _State(Struct):
    """An area after some of the parts, and what they have done to each of its bytes."""

    bytes: Bytes
    writers: Blocks
    readers: Blocks
    done: Bytes
    before: Bytes
    grid: Extent
    place: Callable[[int], str]

    def add(self, part: Changes) -> None:
        """Add what another part has done. Raises ConflictError."""
        writers, readers, done = part.writers.expanded(), part.readers.expanded(), part.done.expanded()
        wrote = writers != 0
        values = np.zeros_like(self.bytes)
        values[wrote] = part.bytes
        self._refuse((self.writers != 0) & (readers != 0), self.writers, "writes", readers, "reads")
        self._refuse((self.readers != 0) & wrote, writers, "writes", self.readers, "reads")
        both = wrote & (self.writers != 0)
        updated = both & (self.done == done) & _commutes(done)
        alike = both & (self.done == lib.PE_WRITTEN) & (done == lib.PE_WRITTEN) & (self.bytes == values)
        self._refuse(both & ~updated & ~alike, self.writers, "writes", writers, "writes")
        self.bytes[wrote & ~updated] = values[wrote & ~updated]
        for code in np.unique(done[updated]).tolist():
            self._combine(updated & (done == code), values, code)
        self.writers[wrote], self.done[wrote] = writers[wrote], done[wrote]
        self.readers[readers != 0] = readers[readers != 0]

    def _combine(self, where: NDArray[np.bool_], values: Bytes, code: int) -> None:
        """Combine the words of which these are the bytes."""
        update = update_of(code)
        size = update.dtype.itemsize
        words = np.unique(np.flatnonzero(where) // size)
        places = (words[:, None] * size + np.arange(size)).reshape(-1)
        one, other, before = (data[places].view(update.dtype) for data in (self.bytes, values, self.before))
        with np.errstate(over="ignore"):
            self.bytes[places] = update.combine(one, other, before).view(np.uint8)

    def _refuse(self, where: NDArray[np.bool_], ones: Blocks, does: str, others: Blocks, also: str) -> None:
        if not where.any():
            return
        at = int(np.argmax(where))
        one, other = (self._block(int(blocks[at])) for blocks in (ones, others))
        what = f"block {one} {does} {self.place(at)}, which block {other} {also}, too"
        raise ConflictError(f"{what}: {NOT_SPREAD}")

    def _block(self, number: int) -> str:
        rest, x = divmod(number - 1, self.grid[0])
        z, y = divmod(rest, self.grid[1])
        return f"({x},{y},{z})"


def _commutes(done: Bytes) -> NDArray[np.bool_]:
    return np.asarray((done > lib.PE_WRITTEN) & (done < lib.PE_MIXED))
