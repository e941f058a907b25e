"""What a part of a launch does to memory: which block writes, updates or reads which bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.spread.areas import Area
from ptxemu.text.errors import InputError

Blocks = NDArray[np.uint32]
"""For each byte of an area a block, counted from 1 in the order of the grid, or 0."""


class Runs(Struct, frozen=True):
    """Numbers of which many neighbours are the same: those that begin at ``starts``, of ``count`` in all."""

    starts: NDArray[np.int64]
    values: NDArray[Any]
    count: int

    @classmethod
    def of(cls, numbers: NDArray[Any]) -> Runs:
        starts = np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1]) if numbers.size else np.zeros(0, np.int64)
        return cls(starts, numbers[starts], numbers.size)

    def expanded(self) -> NDArray[Any]:
        return np.repeat(self.values, np.diff(self.starts, append=self.count))


class Changes(Struct, frozen=True):
    """What a part of a launch did to an area: of each byte the block that wrote it last, the first that read what it did not
    write itself, and what was done to it (PE_WRITTEN ...); and the bytes that were written, as they are now."""

    writers: Runs
    readers: Runs
    done: Runs
    bytes: NDArray[np.uint8]


class Footprint:
    """The footprint of launches in some areas. ``updates`` are codes of updates that commute, by their source positions."""

    def __init__(self, areas: Iterable[Area], updates: Mapping[int, int]) -> None:
        self._areas = sorted(areas, key=_address)
        self._writers = [np.zeros(area.bytes.size, np.uint32) for area in self._areas]
        self._readers = [np.zeros(area.bytes.size, np.uint32) for area in self._areas]
        self._done = [np.zeros(area.bytes.size, np.uint8) for area in self._areas]
        self._noted = ffi.new("pe_footprint_area[]", [self._note(number) for number in range(len(self._areas))])
        self._updates = ffi.new("pe_footprint_update[]", sorted(updates.items()))
        self._native = ffi.new("pe_footprint *")
        self._native.areas, self._native.area_count = self._noted, len(self._areas)
        self._native.updates, self._native.update_count = self._updates, len(updates)
        self._observer = ffi.new("pe_observer *")
        lib.pe_footprint_observer(self._native, self._observer)

    def _note(self, number: int) -> tuple[Any, ...]:
        area = self._areas[number]
        words = (ffi.from_buffer("uint32_t[]", blocks[number]) for blocks in (self._writers, self._readers))
        return (_address(area), area.bytes.size, *words, ffi.from_buffer("uint8_t[]", self._done[number]))

    @contextmanager
    def kept(self, arena: Arena) -> Iterator[None]:
        """Keep the footprint of what is launched within, of code that is compiled to be observed."""
        lib.pe_arena_observe(arena.handle, self._observer)
        try:
            yield
        finally:
            lib.pe_arena_observe(arena.handle, ffi.NULL)

    def check(self) -> None:
        """Raises InputError if something was done that others cannot be told of."""
        if self._native.allocated:
            raise InputError("the kernel calls malloc or free, which several workers cannot do for one launch")
        for area, writers in zip(self._areas, self._writers, strict=True):
            if area.fixed and writers.any():
                raise InputError(f"the kernel writes to texture {area.name}, which several workers cannot do for one launch")

    def changes(self) -> dict[str, Changes]:
        """What was done to each area that kernels may change and that was touched."""
        numbered = [(number, area) for number, area in enumerate(self._areas) if not area.fixed]
        touched = (item for item in numbered if self._writers[item[0]].any() or self._readers[item[0]].any())
        return {area.name: self._changed(number, area) for number, area in touched}

    def _changed(self, number: int, area: Area) -> Changes:
        writers, readers, done = self._writers[number], self._readers[number], area.codes[self._done[number]]
        return Changes(Runs.of(writers), Runs.of(readers), Runs.of(done), area.bytes[writers != 0])


def _address(area: Area) -> int:
    return area.bytes.ctypes.data
