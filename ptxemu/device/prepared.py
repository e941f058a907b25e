"""A kernel with a grid and a block, checked once for all its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxemu._runtime import ffi, lib
from ptxemu.device.arguments import places_of
from ptxemu.device.code import KernelCode
from ptxemu.device.entry import Entry
from ptxemu.device.launch_limits import Extent, Shape, check_kernel, rows_of
from ptxemu.device.module_info import KernelInfo
from ptxemu.device.module_memory import Resident

if TYPE_CHECKING:
    from ptxemu._runtime import CData


CONFIG = ffi.typeof("pe_config *")
Terms = tuple[int, bool, Extent]
"""Of a launch: dynamic shared memory in bytes, whether it is cooperative, and the extents of clusters."""


class Prepared:
    """What launches of a kernel with one grid and one block have in common."""

    __slots__ = ("_made", "entry", "facts", "final", "info", "places", "rows", "shape")

    def __init__(self, entry: Entry, info: KernelInfo, shape: Shape) -> None:
        self.entry, self.info, self.shape = entry, info, shape
        self.facts = lib.pe_entry_kernel(entry.pointer, info.name.encode("utf-8", "replace"))
        check_kernel(entry, self.facts, shape)
        self.rows = rows_of(info, shape)
        self.places = places_of(info)
        self.final: Any = None  # the engine, and code that could be no better
        self._made: tuple[KernelCode, Terms, CData] | None = None

    def config(self, resident: Resident, code: KernelCode, terms: Terms) -> CData:
        """A ``pe_config`` of one launch; its arguments, its surfaces and the address of its code are missing."""
        made = self._made
        if made is None or made[0] is not code or made[1] != terms:
            made = self._made = (code, terms, self._first(resident, code, terms))
        return ffi.new(CONFIG, made[2][0])

    def _first(self, resident: Resident, code: KernelCode, terms: Terms) -> CData:
        native = code.facts.native()
        start, config = resident.start(self.facts, self.shape, native), ffi.new(CONFIG)
        start.dynamic_shared, start.cooperative, start.cluster = terms
        start.joins = True
        lib.pe_start_config(start, config)
        return config
