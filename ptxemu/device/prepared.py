"""A kernel with a grid and a block, checked once for all its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu._runtime import ffi, lib
from ptxemu.device.arguments import places_of
from ptxemu.device.code import KernelCode
from ptxemu.device.entry import Entry
from ptxemu.device.launch_limits import Shape, check_kernel, rows_of
from ptxemu.device.module_info import KernelInfo
from ptxemu.device.module_memory import Resident

if TYPE_CHECKING:
    from ptxemu._runtime import CData


START = ffi.typeof("pe_start *")


class Prepared:
    """What launches of a kernel with one grid and one block have in common."""

    __slots__ = ("_made", "entry", "facts", "info", "places", "rows", "shape")

    def __init__(self, entry: Entry, info: KernelInfo, shape: Shape) -> None:
        self.entry, self.info, self.shape = entry, info, shape
        self.facts = lib.pe_entry_kernel(entry.pointer, info.name.encode("utf-8", "replace"))
        check_kernel(entry, self.facts, shape)
        self.rows = rows_of(info, shape)
        self.places = places_of(info)
        self._made: tuple[KernelCode, CData, CData] | None = None

    def start(self, resident: Resident, code: KernelCode) -> CData:
        """A ``pe_start`` of one launch; its arguments are missing."""
        made = self._made
        if made is None or made[0] is not code:
            native = code.facts.native()
            made = self._made = (code, native, resident.start(self.facts, self.shape, native))
        return ffi.new(START, made[2][0])
