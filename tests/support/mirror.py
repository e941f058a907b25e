"""The device memory that a launch of the emulator can reach, on a GPU: with the GPU's addresses and handles in it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptxemu._runtime import ffi, lib
from ptxemu.case.cuda_driver import Address, CudaDriver, Pointer
from ptxemu.case.cuda_images import CudaImages
from ptxemu.device.arena import Arena

WORD = 8  # bytes of an address
Bytes = NDArray[np.uint8]


@dataclass
class Copy:
    """Device memory of the emulator from ``start`` on, as it was before the launch, and where the GPU has its copy."""

    start: int
    before: Bytes
    there: int

    @property
    def size(self) -> int:
        return len(self.before)


@dataclass
class Mirror:
    """Copies of what a launch's parameters lead to.

    ``handles`` are those of surfaces and textures, by which ``images`` knows them; ``in_memory``: memory may hold some of them.
    """

    driver: CudaDriver
    arena: Arena
    images: CudaImages
    handles: dict[int, str]
    in_memory: bool
    copies: list[Copy] = field(default_factory=list)

    def add(self, start: int, size: int, there: int | None = None) -> None:
        """Have a range of device memory on the GPU, at an address if it is there already, and what its words lead to."""
        before = self.arena.view(start, size, writes=False).copy()
        self.copies.append(Copy(start, before, self.driver.to_device(before) if there is None else there))
        self.follow(before)

    def follow(self, data: Bytes) -> None:
        """Have what addresses in memory lead to on the GPU."""
        words = data[: len(data) // WORD * WORD].view(np.uint64)
        base = self.arena.base
        for word in np.unique(words[(words >= base) & (words < base + self.arena.size)]).tolist():
            found = self._allocation(word)
            if found and not any(copy.start <= word < copy.start + max(1, copy.size) for copy in self.copies):
                self.add(*found)

    def translated(self, data: Bytes, *, home: bool = False, handles: bool = True) -> Bytes:
        """Memory with addresses of the GPU and its ``handles``, or, ``home``, with addresses of the emulator."""
        result = data.copy()
        words = result[: len(result) // WORD * WORD].view(np.uint64)
        given = words.copy()
        for copy in self.copies:
            here, there = (copy.there, copy.start) if home else (copy.start, copy.there)
            inside = (given >= here) & (given <= here + copy.size)
            words[inside] = given[inside] - np.uint64(here) + np.uint64(there)
        if not home and handles:
            for handle, name in self.handles.items():
                if (given == handle).any():
                    words[given == handle] = self.images.handle(name)
        return result

    def upload(self) -> None:
        """Let the GPU have the memory as it was."""
        for copy in self.copies:
            data = self.translated(copy.before, handles=self.in_memory)
            if data.size:
                pointer, size = Pointer(data.ctypes.data), ctypes.c_size_t(data.nbytes)
                self.driver.call("cuMemcpyHtoD_v2", Address(copy.there), pointer, size)

    def results(self) -> list[Bytes]:
        """What the launch has left in each copy, with addresses and handles of the emulator."""
        found = []
        for copy in self.copies:
            raw = self.driver.to_host(copy.there, copy.before)
            result, end = self.translated(raw, home=True), copy.size // WORD * WORD
            sent = self.translated(copy.before, handles=self.in_memory)
            same = sent[:end].view(np.uint64) == raw[:end].view(np.uint64)
            result[:end].view(np.uint64)[same] = copy.before[:end].view(np.uint64)[same]
            found.append(result)
        return found

    def emulated(self) -> list[Bytes]:
        """What the emulator's memory holds now."""
        return [self.arena.view(copy.start, copy.size, writes=False).copy() for copy in self.copies]

    def leave(self, results: list[Bytes]) -> None:
        """Put results into the emulator's memory."""
        for copy, data in zip(self.copies, results, strict=True):
            self.arena.view(copy.start, copy.size)[...] = data

    def _allocation(self, address: int) -> tuple[int, int] | None:
        """The start and size of the allocation that an address lies in."""
        found = ffi.new("pe_allocation *")
        if not lib.pe_arena_find(self.arena.handle, address, found):
            return None
        return int(found.address), int(found.size)
