"""Device memory: one reserved arena in which a device address is also a host address."""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxemu._runtime import ffi, lib
from ptxemu.errors import InputError

MAX_HEAP = 1 << lib.PE_MAX_HEAP_LOG2
MAX_ALLOCATIONS = 24_000  # each takes two of the process's 65,530 mappings (Linux's default)


class _Window:
    """The owner of a view's memory, which NumPy keeps alive for as long as any array refers to it."""

    __slots__ = ("__array_interface__", "__weakref__", "arena")

    def __init__(self, arena: Arena, address: int, size: int) -> None:
        self.arena = arena
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
        }


class Arena:
    """``size`` bytes of device memory, committed per allocation.

    Memory that a live view shows is unmapped only when the view is gone, so a stale NumPy array can never crash the
    process.  Safe to use from several threads.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._arena = lib.pe_arena_create(size)
        if not self._arena:
            raise InputError(f"cannot reserve {size} bytes of device memory: {os.strerror(ffi.errno or errno.ENOMEM)}")
        self._finalizer = weakref.finalize(self, lib.pe_arena_destroy, self._arena)
        self._finalizer.atexit = False
        self._sizes: dict[int, int] = {}
        self._views: dict[int, int] = {}  # by allocation; 0 stands for launches in flight
        self._condemned: set[int] = set()
        self._closed = False
        self._lock = threading.RLock()

    @property
    def handle(self) -> Any:
        """The C arena."""
        if self._closed:
            raise InputError("the device is closed")
        return self._arena

    @property
    def base(self) -> int:
        return int(lib.pe_arena_base(self.handle))

    @property
    def used(self) -> int:
        """Bytes allocated, in whole pages."""
        return int(lib.pe_arena_used(self.handle))

    def set_heap(self, size: int) -> None:
        """The size of the heap that kernels' ``malloc`` serves; it can only change before the first such call."""
        if size > MAX_HEAP:
            raise InputError(f"a heap of {size} bytes is larger than {MAX_HEAP}")
        if lib.pe_arena_set_heap(self.handle, size):
            raise InputError("the device's heap is in use already")

    def alloc(self, size: int, align: int = 256, name: str = "") -> int:
        """The address of ``size`` zeroed bytes; ``name`` is what faults call them."""
        with self._lock:
            if len(self._sizes) >= MAX_ALLOCATIONS:
                raise InputError(f"too many allocations: {MAX_ALLOCATIONS} are in use")
            address = int(lib.pe_arena_alloc(self.handle, size, align, name.encode()))
            if not address:
                raise InputError(f"out of device memory: {size} bytes wanted, {self.used} of {self.size} in use")
            self._sizes[address] = size
            return address

    def free(self, address: int) -> None:
        """Give an allocation back; later accesses of kernels fault."""
        with self._lock:
            if self._sizes.pop(address, None) is None:
                raise InputError(f"0x{address:x} is not the address of an allocation")
            if self._views.get(address):
                self._condemned.add(address)
            else:
                lib.pe_arena_free(self.handle, address)

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """The memory itself, not a copy, as bytes; ``address`` may lie inside an allocation."""
        with self._lock:
            owner = self._owner(address, size)
            window = _Window(self, address, size)
            self._hold(owner)
            weakref.finalize(window, self._release, owner).atexit = False
            return np.asarray(window)

    def describe(self, address: int) -> str:
        """Where an address lies, relative to the nearest allocation."""
        found = ffi.new("pe_allocation *")
        if not lib.pe_arena_nearest(self.handle, address, found):
            return "no memory is allocated"
        name = ffi.string(found.name).decode(errors="replace")
        what = f"`{name}`" if name else "an allocation"
        where = f"{what} ({found.size} bytes at 0x{found.address:x})"
        if address < found.address:
            return f"{_bytes(found.address - address)} before {where}"
        if address >= found.address + found.size:
            return f"{_bytes(address - found.address - found.size)} past the end of {where}"
        return f"{_bytes(address - found.address)} into {where}"

    @contextmanager
    def in_use(self) -> Iterator[Any]:
        """The C arena, which stays mapped until the end of the block even if the arena is closed."""
        with self._lock:
            handle = self.handle
            self._hold(0)
        try:
            yield handle
        finally:
            self._release(0)

    def close(self) -> None:
        """Give all memory back, or, while views are alive, as soon as the last one is gone."""
        with self._lock:
            self._closed = True
            if not self._views:
                self._finalizer()

    def _owner(self, address: int, size: int) -> int:
        found = ffi.new("pe_allocation *")
        inside = lib.pe_arena_nearest(self.handle, address, found) and found.address <= address
        if not inside or found.address not in self._sizes or address + size > found.address + found.size:
            raise InputError(f"0x{address:x} and the {size} bytes from there do not lie in one allocation")
        return int(found.address)

    def _hold(self, owner: int) -> None:
        self._views[owner] = self._views.get(owner, 0) + 1

    def _release(self, owner: int) -> None:
        with self._lock:
            self._views[owner] -= 1
            if self._views[owner]:
                return
            del self._views[owner]
            if self._closed:
                if not self._views:
                    self._finalizer()
            elif owner in self._condemned:
                self._condemned.discard(owner)
                lib.pe_arena_free(self._arena, owner)


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"
