"""A module in device memory: its variables, and the table of its surface, texture and sampler handles."""

from __future__ import annotations

import errno
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from ptxemu._runtime import ffi, lib
from ptxemu.device.buffer import Buffer
from ptxemu.device.children import Child, collected
from ptxemu.device.device import Device
from ptxemu.device.entry import Entry
from ptxemu.device.handle_slots import MAX_SLOT, SLOT_STEP
from ptxemu.device.launch_limits import Shape
from ptxemu.device.module_info import CONST, GLOBAL, ModuleInfo
from ptxemu.device.scalars import dtype_of_type
from ptxemu.device.surface import SurfaceTable
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.device.texture import TextureTable
from ptxemu.device.texture_object import SamplerObject, TextureObject
from ptxemu.text.errors import InputError, UnsupportedError, shown
from ptxemu.text.suggestions import closest

if TYPE_CHECKING:
    from ptxemu._runtime import CData

Bindable = SurfaceObject | TextureObject | SamplerObject
BINDABLE: dict[str, tuple[type[Bindable], str]] = {
    "surfref": (SurfaceObject, "surface"),
    "texref": (TextureObject, "texture"),
    "samplerref": (SamplerObject, "sampler"),
}


class Resident:
    """The global and constant blocks of a module on one device, initialised once."""

    def __init__(self, info: ModuleInfo, entry: Entry, device: Device, name: str) -> None:
        self._info = info
        self._device = device
        self.module = _create(entry, device, name)
        self.bases = {space: int(lib.pe_module_block(self.module, number)) for number, space in enumerate((GLOBAL, CONST))}
        self._handles = lib.pe_module_handles(self.module)
        self._launches = int(lib.pe_children_list(self.module))
        self._declared = {item.name: int(self._handles[item.first]) for item in info.handles.values()}
        self._bound = [(self._table(name), handle) for name, handle in self._declared.items()]
        self._finalizer = weakref.finalize(self, _release, self._bound, self.module, weakref.ref(device.arena.handle))
        self._finalizer.atexit = False

    def start(self, kernel: CData, shape: Shape, code: CData) -> CData:
        """A ``pe_start`` for launches of a kernel, with what its code says (a ``pe_code_facts``)."""
        facts = {"module": self.module, "kernel": kernel, "facts": code, "grid": shape.grid, "block": shape.block}
        return ffi.new("pe_start *", facts)

    def launched(self, grid_id: int) -> list[Child]:
        """What the kernel of a launch that has ended has launched."""
        return collected(self.module, self._device.arena.handle, self._launches, grid_id) if self._launches else []

    @property
    def launches(self) -> bool:
        """Whether its kernels launch kernels."""
        return self._launches != 0

    def handle(self, name: str) -> int:
        """The handle of an opaque variable, or of its first element."""
        return self._declared[name]

    def variable(self, name: str) -> Buffer:
        """A variable as a buffer inside the module's block."""
        found = self._info.variables.get(name) if isinstance(name, str) else None
        if found is None:
            raise InputError(f"the module has no variable {shown(name)}{_closest(name, self._info.variables)}")
        dtype = dtype_of_type(found.type)
        shape = (*found.dims, found.vector) if found.vector > 1 else found.dims
        address = self.bases[found.space] + found.offset
        return Buffer(self._device.arena, address, shape, dtype, keeps=self)

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

    def _table(self, name: str) -> SurfaceTable | TextureTable:
        surface = self._info.handles[name].type == "surfref"
        return self._device.surface_table if surface else self._device.texture_table


def _closest(name: object, known: Iterable[str]) -> str:
    return closest(name, known) if isinstance(name, str) else ""


def _create(entry: Entry, device: Device, name: str) -> CData:
    """A ``pe_module``, which its owner releases."""
    made, problem = ffi.new("pe_module **"), ffi.new("char **")
    text = name.encode("utf-8", "replace").replace(b"\0", b"?")
    error = lib.pe_module_create(device.native(), entry.pointer, text, made, problem)
    if error:
        raise (UnsupportedError if error == errno.ENOTSUP else InputError)(ffi.string(problem[0]).decode())
    return made[0]


def _release(bound: list[tuple[SurfaceTable | TextureTable, int]], module: CData, memory: Callable[[], CData]) -> None:
    """``memory`` gives the arena that the module lies in, or None if it is gone."""
    arena = memory()
    if arena is None:
        lib.pe_module_orphan(module)
    for table, handle in bound:
        with suppress(InputError):
            table.remove(handle)
    lib.pe_module_release(module)
