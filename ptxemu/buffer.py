"""Device memory that the host holds on to."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxemu.errors import InputError
from ptxemu.memory import Arena

Array = NDArray[Any]


class Buffer:
    """An array in device memory. Passed to a kernel, it is a pointer; its memory is freed with the last reference.

    ``array`` is the memory itself as a NumPy array: reading and writing it needs no copy.
    """

    def __init__(
        self,
        arena: Arena,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        owned: bool = False,
        keeps: object = None,
    ) -> None:
        self._arena = arena
        self.address = address
        self.shape = shape
        self.dtype = dtype
        self.nbytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        self._keeps = keeps  # what owns the memory, where the buffer does not
        self._finalizer = weakref.finalize(self, _free, arena, address) if owned else None
        if self._finalizer is not None:
            self._finalizer.atexit = False

    @classmethod
    def allocate(cls, arena: Arena, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "") -> Buffer:
        """Zeroed memory of its own. An empty array is a null pointer."""
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if size == 0:
            return cls(arena, 0, shape, dtype)
        return cls(arena, arena.alloc(size, name=name), shape, dtype, owned=True)

    def part(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        """A buffer over a part of this one, from a byte on; it keeps this one."""
        made = Buffer(self._arena, self.address + offset, shape, dtype, keeps=self)
        if offset < 0 or offset + made.nbytes > self.nbytes:
            raise InputError(f"bytes {offset} to {offset + made.nbytes} do not lie in a buffer of {self.nbytes}")
        return made

    @property
    def array(self) -> Array:
        """The device memory as a NumPy array, not a copy."""
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        if self._finalizer is not None and not self._finalizer.alive:
            raise InputError("the buffer has been freed")
        return self._arena.view(self.address, self.nbytes).view(self.dtype).reshape(self.shape)

    def copy_to_host(self, out: Array | None = None) -> Array:
        """The contents, in ``out`` or a new array."""
        if out is None:
            return self.array.copy()
        _check_same(self, out)
        out[...] = self.array
        return out

    def copy_from_host(self, array: Array) -> None:
        """Replace the contents."""
        _check_same(self, array)
        self.array[...] = array

    def free(self) -> None:
        """Free the memory now; kernels that still access it fault."""
        if self._finalizer is not None:
            self._finalizer()

    def belongs_to(self, arena: Arena) -> bool:
        return self._arena is arena

    @property
    def freed(self) -> bool:
        return self._finalizer is not None and not self._finalizer.alive

    def __int__(self) -> int:
        return self.address

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a buffer without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Buffer({self.dtype.name}{list(self.shape)} at 0x{self.address:x})"


def _free(arena: Arena, address: int) -> None:
    with suppress(InputError):  # a closed arena has given everything back already
        arena.free(address)


def _check_same(buffer: Buffer, array: Array) -> None:
    if array.shape != buffer.shape or array.dtype != buffer.dtype:
        want, have = (f"{item.dtype.name}{list(item.shape)}" for item in (buffer, array))
        raise InputError(f"the array is {have}, the buffer {want}")
