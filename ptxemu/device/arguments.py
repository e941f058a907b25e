"""The arguments of a launch: packed by parameter type. NumPy arrays are copied in, and out again after it, unless kernels may
touch the memory of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ptxemu.device.buffer import Buffer, no_device_form
from ptxemu.device.device import Device
from ptxemu.device.host_arrays import host_array
from ptxemu.device.module_info import POINTER_USE, KernelInfo, Parameter
from ptxemu.device.scalars import pack_scalar, pack_struct
from ptxemu.device.structs import POINTER, has_members, members_of
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.device.texture_object import SamplerObject, TextureObject
from ptxemu.device.uses import mismatch
from ptxemu.ir.types import OPAQUE
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError
from ptxemu.text.symbols import plain_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptxemu.process.numpy import Array

POINTER_TYPES = ("u64", "s64", "b64")
PLAIN = (int, float)
HANDLES = (SurfaceObject, TextureObject, SamplerObject)


class _Group(Struct):
    """Host memory that one or several overlapping arrays cover, and its copy in device memory."""

    start: int
    end: int
    name: str
    arrays: list[Array] = []
    buffer: Buffer | None = None

    @property
    def writable(self) -> bool:
        return any(array.flags.writeable for array in self.arrays)

    def changed(self) -> bool:
        """Whether the copy differs from the arrays."""
        return any(not np.array_equal(_bytes_of(array), part) for array, part in self._parts())

    def copy_in(self) -> None:
        for array, part in self._parts():
            part[...] = _bytes_of(array)

    def copy_out(self) -> None:
        """Copy back to the arrays that can be written."""
        for array, part in self._parts():
            if array.flags.writeable:
                _bytes_of(array)[...] = part

    def _parts(self) -> Iterator[tuple[Array, Array]]:
        """The arrays, each with its bytes in the copy."""
        assert self.buffer is not None
        memory = self.buffer.array
        for array in self.arrays:
            offset = _address(array) - self.start
            yield array, memory[offset : offset + array.nbytes]


class Arguments:
    """The checked arguments of one launch, whose register files have ``rows``. Nothing is read before ``copy_in``.

    Keep it until the launch has ended: it owns copies of arrays that are not contiguous.  ``doubts`` says which arguments the
    kernel seems to take for something else.
    """

    def __init__(
        self, kernel: KernelInfo, values: Sequence[object], device: Device, rows: int, places: Sequence[str] | None = None
    ) -> None:
        if len(values) != len(kernel.parameters):
            raise InputError(_count_message(kernel, len(values)))
        self._kernel = kernel
        self._device = device
        self._rows = rows
        self._groups: list[_Group] = []
        self._arrays: list[tuple[Parameter, Array]] = []
        self._copies: list[tuple[Array, Array]] = []  # arrays that are not contiguous, and what the kernel gets of them
        self.doubts: list[str] = []
        self._params = bytearray(kernel.param_bytes)
        places = places_of(kernel) if places is None else places
        for parameter, value, where in zip(kernel.parameters, values, places, strict=True):
            data = self._pack(parameter, value, where)
            if data is not None:
                self._params[parameter.offset : parameter.offset + len(data)] = data
        if self._copies:
            self._check_apart()
        if self._arrays and not device.host_memory:
            self._make_groups()

    def copy_in(self) -> bytes:
        """Copy arrays to the device; the parameter buffer of the launch."""
        for original, copy in self._copies:
            copy.flags.writeable = True
            copy[...] = original
            copy.flags.writeable = original.flags.writeable
        for group in self._groups:
            size = group.end - group.start
            group.buffer = Buffer.allocate(self._device.arena, (size,), np.dtype(np.uint8), group.name)
            group.copy_in()
        for parameter, array in self._arrays:
            pointer = self._pointer(array)
            self._params[parameter.offset : parameter.offset + 8] = pointer.to_bytes(8, "little")
        return bytes(self._params)

    def copy_out(self) -> None:
        """Copy what the kernel wrote to the writable arrays. Raises InputError if it wrote to others."""
        if not self._arrays:
            return
        written = [group.name for group in self._groups if not group.writable and group.changed()]
        for group in self._groups:
            group.copy_out()
        for original, copy in self._copies:
            if original.flags.writeable:
                original[...] = copy
        if written:
            raise InputError(
                f"kernel {plain_name(self._kernel.name)} has written to {', '.join(written)}, which is a read-only array"
            )

    def release(self) -> None:
        """Free the copies."""
        for group in self._groups:
            if group.buffer is not None:
                group.buffer.free()

    def _pack(self, parameter: Parameter, value: object, where: str) -> bytes | None:
        """The bytes of an argument, or None for an array, whose address is known later."""
        if type(value) in PLAIN and parameter.elements is None and not parameter.opaque:
            return pack_scalar(parameter, value, where)
        if parameter.elements is not None:
            return self._pack_members(parameter, value, where) if has_members(value) else pack_struct(parameter, value, where)
        if isinstance(value, HANDLES):
            return self._pack_handle(parameter, value, where)
        if parameter.opaque:
            what = OPAQUE[parameter.type]
            raise InputError(f"{where}: expects a {what} (.{parameter.type}), not {type(value).__name__}")
        if isinstance(value, Buffer):
            return self._pack_buffer(parameter, value, where)
        if value is None and parameter.type in POINTER_TYPES:
            return bytes(8)
        given = None if isinstance(value, PLAIN) else host_array(value, where)
        if given is None:
            if parameter.type in POINTER_TYPES and not isinstance(value, np.generic | float) and not hasattr(value, "__index__"):
                raise InputError(f"{where}: expects an array, a buffer, an address or None, not {type(value).__name__}")
            return pack_scalar(parameter, value, where)
        array = self._contiguous(_checked_array(parameter, given, where))
        self._check_file(parameter, array, where)
        self._judge(parameter, POINTER_USE, array.dtype, where)
        self._arrays.append((parameter, array))
        return None

    def _pack_members(self, parameter: Parameter, value: object, where: str) -> bytes:
        """The bytes of a struct; pointers in it are arguments of their own."""
        data = bytearray(parameter.size)
        for member in members_of(parameter, value, where):
            made: bytes | None
            if isinstance(member.value, bytes):
                made = member.value
            else:
                name, offset = f"{parameter.name}.{member.name}", parameter.offset + member.offset
                use = parameter.use_at(member.offset)
                pointer = Parameter(name, "u64", POINTER, POINTER, offset, None, None, uses=(use,) if use else ())
                made = self._pack(pointer, member.value, member.place(where))
            if made is not None:
                data[member.offset : member.offset + len(made)] = made
        return bytes(data)

    def _contiguous(self, array: Array) -> Array:
        """An array whose memory can be copied as it is: the array, or a copy of it."""
        if array.flags.c_contiguous or array.flags.f_contiguous:
            return array
        copy = np.empty(array.shape, array.dtype)
        copy.flags.writeable = array.flags.writeable
        self._copies.append((array, copy))
        return copy

    def _pack_handle(self, parameter: Parameter, item: SurfaceObject | TextureObject | SamplerObject, where: str) -> bytes:
        type = "surfref" if isinstance(item, SurfaceObject) else "texref" if isinstance(item, TextureObject) else "samplerref"
        what = OPAQUE[type]
        if parameter.type not in (type, *POINTER_TYPES):
            raise InputError(f"{where}: is .{parameter.type}, which cannot hold a {what} handle")
        table: Any = self._device.surface_table if isinstance(item, SurfaceObject) else self._device.texture_table
        if not item.belongs_to(table):
            raise InputError(f"{where}: the {what} is closed or belongs to another device")
        self._judge(parameter, what, None, where)
        return item.handle.to_bytes(8, "little")

    def _pack_buffer(self, parameter: Parameter, buffer: Buffer, where: str) -> bytes:
        if parameter.type not in POINTER_TYPES:
            raise InputError(f"{where}: is .{parameter.type}, which cannot hold a pointer")
        if buffer.freed or not buffer.belongs_to(self._device.arena):
            raise InputError(f"{where}: the buffer is freed or belongs to another device")
        self._check_file(parameter, buffer, where)
        self._judge(parameter, POINTER_USE, buffer.dtype, where)
        return buffer.address.to_bytes(8, "little")

    def _judge(self, parameter: Parameter, kind: str, dtype: np.dtype[Any] | None, where: str) -> None:
        """Note if the kernel uses an image, or a pointer to elements of a type, as something else."""
        if parameter.uses and (problem := mismatch(parameter.uses[0], kind, dtype)):
            self.doubts.append(f"{where}: {problem}")

    def _check_file(self, parameter: Parameter, array: Array | Buffer, where: str) -> None:
        """A register file has elements of the register's size, enough for every thread."""
        if parameter.row is None:
            return
        size, count = parameter.row
        if array.dtype.itemsize != size and array.dtype.names is None:
            raise InputError(f"{where}: is a register file with elements of {size} bytes, not {array.dtype.name}")
        if array.nbytes < self._rows * count * size:
            wanted = f"{self._rows} x {count} elements" if count > 1 else f"{self._rows} elements"
            raise InputError(f"{where}: the register file needs {wanted} of {size} bytes, not {list(array.shape)}")

    def _check_apart(self) -> None:
        """A copy of an array must not be the only one that sees what the kernel does through another argument."""
        originals = {id(copy): original for original, copy in self._copies}
        given = [originals.get(id(array), array) for _, array in self._arrays]
        for one, other in combinations(given, 2):
            whole = one.flags.forc and other.flags.forc
            if not whole and (one.flags.writeable or other.flags.writeable) and np.may_share_memory(one, other):
                raise InputError(
                    f"kernel {self._kernel.name}: an array is not contiguous, and shares memory with another argument"
                )

    def _make_groups(self) -> None:
        """Arrays that share memory share a copy, so that the kernel sees the aliasing it would see on the host."""
        for parameter, array in sorted(self._arrays, key=lambda item: _address(item[1])):
            if array.nbytes == 0:
                continue
            start, end = _address(array), _address(array) + array.nbytes
            if self._groups and start < self._groups[-1].end:
                group = self._groups[-1]
                group.end = max(group.end, end)
            else:
                group = _Group(start, end, parameter.name)
                self._groups.append(group)
            group.arrays.append(array)

    def _pointer(self, array: Array) -> int:
        if array.nbytes == 0:
            return 0
        start = _address(array)
        if self._device.host_memory:
            return start
        for group in self._groups:
            if group.start <= start < group.end:
                assert group.buffer is not None
                return group.buffer.address + start - group.start
        raise AssertionError("every array has a group")


def places_of(kernel: KernelInfo) -> tuple[str, ...]:
    """What messages call the arguments."""
    return tuple(
        f"kernel {plain_name(kernel.name)}, argument {number} ({item.name})" for number, item in enumerate(kernel.parameters)
    )


def _checked_array(parameter: Parameter, given: Array, where: str) -> Array:
    """An array whose elements kernels can have, without what a subclass makes of it."""
    array = np.asarray(given)
    if parameter.type not in POINTER_TYPES:
        raise InputError(f"{where}: is .{parameter.type}: expects a scalar, not an array of {array.dtype.name}")
    if problem := no_device_form(array.dtype):
        raise InputError(f"{where}: {problem}")
    return array


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _bytes_of(array: Array) -> NDArray[np.uint8]:
    """A contiguous array's memory as bytes."""
    flat = array.ravel(order="K")  # a view, since the array is contiguous
    return flat.view(np.uint8)


def _count_message(kernel: KernelInfo, given: int) -> str:
    names = ", ".join(f"{item.name}: .{item.type}" for item in kernel.parameters)
    return f"kernel {plain_name(kernel.name)} takes {len(kernel.parameters)} arguments ({names}), not {given}"
