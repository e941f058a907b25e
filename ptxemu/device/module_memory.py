"""A module in device memory: its variables, and the table of its surface, texture and sampler handles."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from ptxemu.device.buffer import Buffer
from ptxemu.device.device import Device
from ptxemu.device.handle_slots import MAX_SLOT, SLOT_STEP
from ptxemu.device.launch import ModuleMemory
from ptxemu.device.module_info import HandleInfo, ModuleInfo
from ptxemu.device.scalars import dtype_of_type
from ptxemu.device.surface import SurfaceContext, SurfaceTable
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.device.texture import TextureTable
from ptxemu.device.texture_object import SamplerObject, TextureObject
from ptxemu.text.errors import InputError, shown
from ptxemu.text.suggestions import closest

Bindable = SurfaceObject | TextureObject | SamplerObject
BINDABLE: dict[str, tuple[type[Bindable], str]] = {
    "surfref": (SurfaceObject, "surface"),
    "texref": (TextureObject, "texture"),
    "samplerref": (SamplerObject, "sampler"),
}


class Resident:
    """The global and constant blocks of a module on one device, initialised once."""

    def __init__(self, info: ModuleInfo, device: Device, name: str) -> None:
        self._info = info
        self._device = device
        self._declared = {item.name: self._declare(item) for item in info.handles.values()}
        forget = weakref.finalize(self, _forget, [(self._table(name), handle) for name, handle in self._declared.items()])
        forget.atexit = False
        self._handles = self._handle_table()
        self._blocks = {
            space: Buffer.allocate(device.arena, (block.size,), np.dtype(np.uint8), f"{name} .{space}", block.align)
            for space, block in info.blocks.items()
        }
        self.bases = {space: block.address for space, block in self._blocks.items()}
        views = {space: block.array for space, block in self._blocks.items()}
        for item in info.initial(self.bases, self._handles.tolist()):
            views[item.space][item.offset : item.offset + len(item.data)] = np.frombuffer(item.data, np.uint8)

    def memory(self, surfaces: SurfaceContext) -> ModuleMemory:
        """What kernels see of the module. The table of handles is the host's, so that kernels cannot reach it."""
        bases, handles = self.bases, int(self._handles.ctypes.data)
        return ModuleMemory(bases["global"], bases["const"], self._info.blocks["const"].size, handles, surfaces.pointer)

    def variable(self, name: str) -> Buffer:
        """A variable as a buffer inside the module's block."""
        found = self._info.variables.get(name) if isinstance(name, str) else None
        if found is None:
            raise InputError(f"the module has no variable {shown(name)}{_closest(name, self._info.variables)}")
        dtype = dtype_of_type(found.type)
        shape = (*found.dims, found.vector) if found.vector > 1 else found.dims
        address = self.bases[found.space] + found.offset
        return Buffer(self._device.arena, address, shape, dtype, keeps=self._blocks[found.space])

    def bind(self, name: str, item: Bindable, index: int) -> None:
        """Bind a surface, texture or sampler to element ``index`` of a ``.surfref``, ``.texref`` or ``.samplerref``."""
        if not isinstance(name, str) or name not in self._declared:
            raise InputError(f"the module has no surface, texture or sampler {shown(name)}{_closest(name, self._declared)}")
        type, handle = self._info.handles[name].type, self._declared[name]
        kind, what = BINDABLE[type]
        if not isinstance(item, kind) or not item.belongs_to(self._table(name)):
            raise InputError(f"'{name}' can only be bound to an open {what} of the module's device")
        if isinstance(item, SurfaceObject):
            self._device.surface_table.bind(handle, item.surface, index)
        else:
            self._device.texture_table.bind(handle, item.texture if isinstance(item, TextureObject) else item.sampler, index)

    def overlapping(self, pairs: Iterable[tuple[str, str]]) -> int:
        """How many pairs of ``.surfref`` names are bound to surfaces that share memory."""
        table = self._device.surface_table
        bound = [[table.surface(self._declared[name]) for name in pair] for pair in pairs]
        return sum(one is not None and two is not None and one.overlaps(two) for one, two in bound)

    def surface_name(self, slot: int) -> str | None:
        """The ``.surfref`` (or its element ``name[k]``) that has a slot of the device's surface table."""
        for name, handle in self._declared.items():
            item = self._info.handles[name]
            index, rest = divmod(slot - (handle & MAX_SLOT), SLOT_STEP)
            if item.type == "surfref" and not rest and 0 <= index < item.count:
                return name if item.count == 1 else f"{name}[{index}]"
        return None

    def _declare(self, item: HandleInfo) -> int:
        if item.type == "surfref":
            return self._device.surface_table.declare(item.fields, item.count)
        return self._device.texture_table.declare(item.type, item.fields, item.count)

    def _table(self, name: str) -> SurfaceTable | TextureTable:
        surface = self._info.handles[name].type == "surfref"
        return self._device.surface_table if surface else self._device.texture_table

    def _handle_table(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        table = np.zeros(max(1, self._info.handle_count), np.uint64)
        for name, handle in self._declared.items():
            item = self._info.handles[name]
            for index in range(item.count):
                table[item.first + index] = handle + SLOT_STEP * index
        return table


def _closest(name: object, known: Iterable[str]) -> str:
    return closest(name, known) if isinstance(name, str) else ""


def _forget(handles: list[tuple[SurfaceTable | TextureTable, int]]) -> None:
    for table, handle in handles:
        with suppress(InputError):
            table.remove(handle)
