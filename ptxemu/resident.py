"""A module in device memory: its variables, and the table of its surface handles."""

from __future__ import annotations

import weakref
from contextlib import suppress

import numpy as np

from ptxemu.buffer import Buffer
from ptxemu.device import Device
from ptxemu.errors import InputError
from ptxemu.names import closest
from ptxemu.scalars import dtype_of_type
from ptxemu.signature import CONST, GLOBAL, ModuleInfo
from ptxemu.surface import SurfaceTable
from ptxemu.surface_object import SurfaceObject


class Resident:
    """The global and constant blocks of a module on one device, initialised once."""

    def __init__(self, info: ModuleInfo, device: Device, name: str) -> None:
        self._info = info
        self._device = device
        self._declared = {
            item.name: device.surface_table.declare(item.fields or ({},) * item.count)
            for item in info.handles.values()
            if item.type == "surfref"
        }
        forget = weakref.finalize(self, _forget, device.surface_table, list(self._declared.values()))
        forget.atexit = False
        self._handles = self._handle_table()
        self._blocks = {
            space: Buffer.allocate(device.arena, (len(image),), np.dtype(np.uint8), f"{name} .{space}")
            for space, image in ((GLOBAL, info.global_image), (CONST, info.const_image))
        }
        self.bases = {space: block.address for space, block in self._blocks.items()}
        for space, image in info.images(self.bases, self._handles.tolist()).items():
            self._blocks[space].array[:] = np.frombuffer(image, np.uint8)

    @property
    def handles_address(self) -> int:
        """The host address of the u64 table that compiled code reads handles from; kernels cannot reach it."""
        return int(self._handles.ctypes.data)

    def variable(self, name: str) -> Buffer:
        """A variable as a buffer inside the module's block."""
        found = self._info.variables.get(name)
        if found is None:
            raise InputError(f"the module has no variable '{name}'{closest(name, self._info.variables)}")
        dtype = dtype_of_type(found.type)
        shape = (*found.dims, found.vector) if found.vector > 1 else found.dims
        address = self.bases[found.space] + found.offset
        return Buffer(self._device.arena, address, shape, dtype, keeps=self._blocks[found.space])

    def bind(self, name: str, surface: SurfaceObject, index: int) -> None:
        """Bind a surface to element ``index`` of a ``.surfref`` variable."""
        if name not in self._declared:
            raise InputError(f"the module has no .surfref '{name}'{closest(name, self._declared)}")
        if not isinstance(surface, SurfaceObject) or not surface.belongs_to(self._device.surface_table):
            raise InputError(f"'{name}' can only be bound to an open surface of the module's device")
        self._device.surface_table.bind(self._declared[name], surface.surface, index)

    def _handle_table(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        table = np.zeros(max(1, self._info.handle_count), np.uint64)
        for name, handle in self._declared.items():
            item = self._info.handles[name]
            for index in range(item.count):
                table[item.first + index] = handle + 8 * index
        return table


def _forget(table: SurfaceTable, handles: list[int]) -> None:
    for handle in handles:
        with suppress(InputError):
            table.remove(handle)
