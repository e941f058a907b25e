"""Handles of the device's surfaces, textures and samplers: slots of a table, with generation tags (``csrc/surface/slots.h``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu._runtime import lib
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from ptxemu._runtime import CData

MAX_SLOT = lib.PE_MAX_SLOT
SLOT_STEP = lib.PE_SLOT_STEP  # slots from one element of an array to the next
MAX_ELEMENTS = 1 << 32


class Slots:
    """Which slots of a table are in use. ``what`` is what messages call an element, and the functions of the runtime its table.

    A handle is 64 bits: a slot (bits 19:0, never 0) and a generation tag (bits 63:32, never 0).  Element k of an array
    has the handle ``base + 8 * k``.
    """

    def __init__(self, what: str, table: CData) -> None:
        self.what = what
        self._table = table
        self._take: Callable[[CData, int], int] = getattr(lib, f"pe_{what}_table_take")
        self._elements: Callable[[CData, int], int] = getattr(lib, f"pe_{what}_table_elements")
        self._retire: Callable[[CData, int], None] = getattr(lib, f"pe_{what}_table_retire")

    def take(self, elements: int) -> int:
        """The handle of an array of so many elements."""
        if elements < 1:
            raise InputError(f"an array of {self.what}s needs at least one element")
        handle = self._take(self._table, elements) if elements < MAX_ELEMENTS else 0
        if not handle:
            raise InputError(f"the {self.what} table is full: {MAX_SLOT} slots")
        return handle

    def slots(self, handle: int) -> range:
        """The slots of a handle's elements."""
        elements = self._elements(self._table, handle) if 0 <= handle < 2**64 else 0
        if not elements:
            raise InputError(f"0x{handle:x} is not a {self.what} handle of this device")
        first = handle & MAX_SLOT
        return range(first, first + SLOT_STEP * elements, SLOT_STEP)

    def slot(self, handle: int, index: int) -> int:
        """The slot of one element."""
        slots = self.slots(handle)
        if not isinstance(index, int) or not 0 <= index < len(slots):
            raise InputError(f"{self.what} handle 0x{handle:x} has no element {shown(index)}")
        return slots[index]

    def release(self, handle: int) -> range:
        """Forget a handle; the slots, which are unused now."""
        slots = self.slots(handle)
        self._retire(self._table, handle)
        return slots
