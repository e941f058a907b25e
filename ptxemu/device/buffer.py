"""Device memory that the host holds on to."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from ptxemu.device.arena import ALIGNMENT, Arena
from ptxemu.device.dtypes import dtype_named
from ptxemu.device.picture import png_of
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ptxemu.process.numpy import Array

MAX_AXES = 32  # that every NumPy has


class Buffer:
    """An array in device memory. Passed to a kernel, it is a pointer; its memory is freed with the last reference.

    ``array`` is the memory itself as a NumPy array: reading and writing it needs no copy. NumPy and DLPack take it as memory
    of the CPU, which it is; there is no ``__cuda_array_interface__``, as whoever reads that looks for the memory of a GPU.
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
    def allocate(cls, arena: Arena, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "", align: int = 1) -> Buffer:
        """Zeroed memory of its own. An empty array is a null pointer."""
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if size == 0:
            return cls(arena, 0, shape, dtype)
        return cls(arena, arena.alloc(size, max(align, ALIGNMENT), name), shape, dtype, owned=True)

    def part(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        """A buffer over a part of this one, from a byte on; it keeps this one."""
        made = Buffer(self._arena, self.address + offset, shape, dtype, keeps=self)
        if offset < 0 or offset + made.nbytes > self.nbytes:
            raise InputError(f"bytes {offset} to {offset + made.nbytes} do not lie in a buffer of {self.nbytes}")
        return made

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """For NumPy: ``np.asarray(buffer)`` is :attr:`array`, ``np.array(buffer)`` a copy of it."""
        return np.array(self.array, dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        """The memory as a DLPack tensor of the CPU: ``torch.from_dlpack(buffer)`` sees what kernels write."""
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.array.__dlpack_device__()

    def __buffer__(self, flags: int) -> memoryview:
        """The memory for ``memoryview(buffer)``, from Python 3.12 on."""
        return self.array.data

    def _repr_png_(self) -> bytes | None:
        """The picture that a notebook shows of a buffer of shape (height, width[, components])."""
        return None if self.freed else png_of(self.array)

    def __getitem__(self, index: int | slice) -> Buffer:
        """An element of the first axis, or a range of them without a step, as a buffer over the same memory."""
        count = len(self)
        if isinstance(index, slice):
            first, end, step = index.indices(count)
            if step != 1:
                raise InputError(f"a part of a buffer has no step: use buffer.array[{first}:{end}:{step}]")
            shape = (max(0, end - first), *self.shape[1:])
        else:
            first, shape = operator.index(index), self.shape[1:]
            first += count if first < 0 else 0
            if not 0 <= first < count:
                raise IndexError(f"index {shown(index)} is out of range for {count} elements")
        stride = self.nbytes // count if count else 0
        return self.part(first * stride if shape[0:1] != (0,) else 0, shape, self.dtype)

    @property
    def array(self) -> Array:
        """The device memory as a NumPy array, not a copy."""
        return self._view(writes=True)

    def _view(self, writes: bool) -> Array:
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        if self._finalizer is not None and not self._finalizer.alive:
            raise InputError("the buffer has been freed")
        return self._arena.view(self.address, self.nbytes, writes).view(self.dtype).reshape(self.shape)

    def copy_to_host(self, out: Array | None = None) -> Array:
        """The contents, in ``out`` or a new array."""
        if out is None:
            return self._view(writes=False).copy()
        if not isinstance(out, np.ndarray) or not out.flags.writeable:
            raise InputError("out must be a NumPy array that can be written")
        _check_same(self, out)
        out[...] = self._view(writes=False)
        return out

    def copy_from_host(self, array: Array) -> None:
        """Replace the contents."""
        source = as_array(array)
        _check_same(self, source)
        self.array[...] = source

    def free(self) -> None:
        """Free the memory now; kernels that still access it fault."""
        if self._finalizer is not None:
            self._finalizer()

    def belongs_to(self, arena: Arena) -> bool:
        """Whether it is memory of this device."""
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


def as_array(value: object) -> Array:
    """A value as a NumPy array, without a copy if possible; InputError if it cannot be one."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"expects an array: {error}") from None


def checked_shape(shape: object) -> tuple[int, ...]:
    """A shape that is given as an extent or as several."""
    try:
        items = list(islice(shape, MAX_AXES + 1)) if isinstance(shape, Iterable) else [shape]
        extents = tuple(operator.index(item) for item in items)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):  # the latter of memoryviews
        raise InputError(f"a shape is an integer or several, not {shown(shape)}") from None
    if len(extents) > MAX_AXES:
        raise InputError(f"a shape has up to {MAX_AXES} extents")
    if any(extent < 0 for extent in extents):
        raise InputError(f"shape {shown(list(extents))} has a negative extent")
    return extents


def device_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The type of elements in device memory, by a name of PTX, CUDA C++ or NumPy, or as NumPy has it.

    Raises InputError if there can be none of them in device memory.
    """
    try:
        found = dtype_named(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise InputError(f"{shown(dtype)} is not a type of array elements")
    if problem := no_device_form(found):
        raise InputError(problem)
    return found


def no_device_form(dtype: np.dtype[Any]) -> str:
    """Why elements of a type cannot be in device memory, or nothing."""
    if dtype.hasobject or dtype.kind in "OUMm" or dtype.subdtype is not None:
        return f"an array of {dtype} cannot be held in device memory"
    return "" if dtype.isnative else "the array's byte order is not the machine's"


def _free(arena: Arena, address: int) -> None:
    with suppress(InputError):  # a closed arena has given everything back already
        arena.free(address)


def _check_same(buffer: Buffer, array: Array) -> None:
    if array.shape != buffer.shape or array.dtype != buffer.dtype:
        want, have = (f"{item.dtype.name}{list(item.shape)}" for item in (buffer, array))
        raise InputError(f"the array is {have}, the buffer {want}")
