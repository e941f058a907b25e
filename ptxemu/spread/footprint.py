"""What a part of a launch does to memory: which block writes, updates or reads which bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.device.buffer import Buffer
from ptxemu.text.errors import InputError

Blocks = NDArray[np.uint32]
"""For each byte of an array a block, counted from 1 in the order of the grid, or 0."""


@dataclass(frozen=True, slots=True)
class Runs:
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


@dataclass(frozen=True, slots=True)
class Changes:
    """What a part of a launch did to an array: of each byte the block that wrote it last, the first that read what it did not
    write itself, and what was done to it (PE_WRITTEN ...); and the bytes that were written, as they are now."""

    writers: Runs
    readers: Runs
    done: Runs
    bytes: NDArray[np.uint8]


class Footprint:
    """The footprint of launches on some buffers. ``updates`` are codes of updates that commute, by their source positions."""

    def __init__(self, buffers: Mapping[str, Buffer], updates: Mapping[int, int]) -> None:
        self._buffers = dict(sorted(((name, buffer) for name, buffer in buffers.items() if buffer.nbytes), key=_address))
        self._writers = {name: np.zeros(buffer.nbytes, np.uint32) for name, buffer in self._buffers.items()}
        self._readers = {name: np.zeros(buffer.nbytes, np.uint32) for name, buffer in self._buffers.items()}
        self._done = {name: np.zeros(buffer.nbytes, np.uint8) for name, buffer in self._buffers.items()}
        self._areas = ffi.new("pe_footprint_area[]", [self._area(name) for name in self._buffers])
        self._updates = ffi.new("pe_footprint_update[]", sorted(updates.items()))
        self._native = ffi.new("pe_footprint *")
        self._native.areas, self._native.area_count = self._areas, len(self._buffers)
        self._native.updates, self._native.update_count = self._updates, len(updates)
        self._observer = ffi.new("pe_observer *")
        lib.pe_footprint_observer(self._native, self._observer)

    def _area(self, name: str) -> tuple[Any, ...]:
        buffer = self._buffers[name]
        words = (ffi.from_buffer("uint32_t[]", numbers[name]) for numbers in (self._writers, self._readers))
        return (buffer.address, buffer.nbytes, *words, ffi.from_buffer("uint8_t[]", self._done[name]))

    @contextmanager
    def kept(self, arena: Arena) -> Iterator[None]:
        """Keep the footprint of what is launched within, of code that is compiled to be observed."""
        lib.pe_arena_observe(arena.handle, self._observer)
        try:
            yield
        finally:
            lib.pe_arena_observe(arena.handle, ffi.NULL)

    def check(self) -> None:
        """Raises InputError if something was done of which there is no footprint."""
        if self._native.texels:
            raise InputError("the kernel writes to surfaces, which several workers cannot do for one launch")
        if self._native.allocated:
            raise InputError("the kernel calls malloc or free, which several workers cannot do for one launch")

    def changes(self) -> dict[str, Changes]:
        """What was done to each array that was touched."""
        touched = (name for name in self._buffers if self._writers[name].any() or self._readers[name].any())
        return {name: self._changed(name) for name in touched}

    def _changed(self, name: str) -> Changes:
        writers, readers, done = self._writers[name], self._readers[name], self._done[name]
        return Changes(Runs.of(writers), Runs.of(readers), Runs.of(done), bytes_of(self._buffers[name])[writers != 0])


def bytes_of(buffer: Buffer) -> NDArray[np.uint8]:
    """The memory of a buffer itself."""
    return buffer.array.reshape(-1).view(np.uint8)


def _address(item: tuple[str, Buffer]) -> int:
    return item[1].address
