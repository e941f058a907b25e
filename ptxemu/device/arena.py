"""Device memory: one reserved arena in which a device address is also a host address."""

from __future__ import annotations

import errno
import os
import weakref
from typing import TYPE_CHECKING, Any

from ptxemu._runtime import ffi, lib
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_HEAP = 1 << lib.PE_MAX_HEAP_LOG2
ALIGNMENT = 256  # of an allocation, in bytes, at least
DESCRIPTION_BYTES = 256
MAX_ALLOCATIONS = lib.PE_MAX_ALLOCATIONS
CUDA_SLACK = lib.PE_CUDA_SLACK


class _Window:
    """The owner of a view's memory, which NumPy keeps alive for as long as any array refers to it."""

    __slots__ = ("__array_interface__", "__weakref__", "memory")

    def __init__(self, memory: Any, address: int, size: int) -> None:
        self.memory = memory
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
        }


class Arena:
    """``size`` bytes of device memory, committed per allocation.

    Memory that a live view shows is unmapped only when the view is gone, so a stale NumPy array can never crash the
    process; so it is with all of the memory while a launch runs in it.  Safe to use from several threads.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        arena = lib.pe_arena_create(size)
        if not arena:
            raise InputError(f"cannot reserve {size} bytes of device memory: {os.strerror(ffi.errno or errno.ENOMEM)}")
        # Unmapped with the last reference to it: this one, and those of views and of launches in flight.
        self._memory: Any = ffi.gc(arena, lib.pe_arena_destroy)

    @property
    def handle(self) -> Any:
        """The C arena, which stays mapped as long as this reference to it."""
        if self._memory is None:
            raise InputError("the device is closed")
        return self._memory

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

    def set_slack(self, size: int) -> None:
        """Bytes before and behind each allocation, from now on, that kernels may touch: at most ``CUDA_SLACK``."""
        lib.pe_arena_set_slack(self.handle, size)

    def alloc(self, size: int, align: int = ALIGNMENT, name: str = "") -> int:
        """The address of ``size`` zeroed bytes; ``name`` is what faults call them."""
        if not isinstance(name, str):
            raise InputError(f"the name of an allocation is a text, not {shown(name)}")
        if size > self.size:
            raise InputError(f"out of device memory: {shown(size)} bytes wanted, the device has {self.size}")
        address = int(lib.pe_arena_alloc(self.handle, size, align, name.encode(errors="replace")))
        if not address and lib.pe_arena_allocations(self.handle) >= MAX_ALLOCATIONS:
            raise InputError(f"too many allocations: {MAX_ALLOCATIONS} are in use")
        if not address:
            raise InputError(f"out of device memory: {size} bytes wanted, {self.used} of {self.size} in use")
        return address

    def free(self, address: int) -> None:
        """Give an allocation back; later accesses of kernels fault."""
        if lib.pe_arena_free(self.handle, address):
            raise InputError(f"0x{address:x} is not the address of an allocation")

    def filled(self, address: int, size: int, blank: bool = False) -> None:
        """Let checkers know that the host may have written to memory; or, if ``blank``, that kernels should not read it yet."""
        lib.pe_arena_filled(self.handle, address, size, lib.PE_BLANKS if blank else lib.PE_CONTENTS)

    def view(self, address: int, size: int, writes: bool = True) -> NDArray[np.uint8]:
        """The memory itself, not a copy, as bytes, to be read or also written; ``address`` may lie inside an allocation."""
        if not isinstance(address, int | np.integer) or not 0 <= address < 2**64:
            raise InputError(f"{shown(address)} is not an address")
        memory = self.handle
        owner = lib.pe_arena_hold(memory, address, size) if 0 <= size < 2**64 else 0
        if not owner:
            raise InputError(f"0x{address:x} and the {size} bytes from there do not lie in one allocation")
        window = _Window(memory, address, size)
        weakref.finalize(window, lib.pe_arena_unhold, memory, owner).atexit = False
        if writes:
            self.filled(address, size)
        return np.asarray(window)

    def describe(self, address: int) -> str:
        """Where an address lies, relative to the nearest allocation if one is near."""
        out = ffi.new("char[]", DESCRIPTION_BYTES)
        lib.pe_arena_describe(self.handle, address, out, DESCRIPTION_BYTES)
        return str(ffi.string(out).decode("utf-8", "replace"))

    def close(self) -> None:
        """Give all memory back, or, while views are alive or launches run, as soon as the last one is gone."""
        self._memory = None
