"""Handles of the device's surfaces, textures and samplers: slots of a table, with generation tags."""

from __future__ import annotations

from itertools import count

from ptxemu.text.errors import InputError, shown

MAX_SLOT = 0xFFFFF
SLOT_STEP = 8  # slots from one element of an array to the next
_serials = count()  # one for all tables, so that a handle of one is never taken for one of another


class Slots:
    """Which slots of a table are in use.

    A handle is 64 bits: a slot (bits 19:0, never 0) and a generation tag (bits 63:32, never 0).  Element k of an array
    has the handle ``base + 8 * k``.  ``what`` is what messages call an element.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._next = 1
        self._free: dict[int, list[int]] = {}  # first slots of freed arrays, by element count
        self._arrays: dict[int, int] = {}  # live handle: element count

    def take(self, elements: int) -> int:
        """The handle of an array of so many elements."""
        if elements < 1:
            raise InputError(f"an array of {self.what}s needs at least one element")
        span = SLOT_STEP * (elements - 1) + 1
        if self._free.get(elements):
            first = self._free[elements].pop()
        elif self._next + span - 1 <= MAX_SLOT:
            first = self._next
            self._next += span
        else:
            raise InputError(f"the {self.what} table is full: {MAX_SLOT} slots")
        handle = first | (next(_serials) % 0xFFFFFFFF + 1) << 32
        self._arrays[handle] = elements
        return handle

    def slots(self, handle: int) -> range:
        """The slots of a handle's elements."""
        try:
            elements = self._arrays[handle]
        except KeyError:
            raise InputError(f"0x{handle:x} is not a {self.what} handle of this device") from None
        first = handle & MAX_SLOT
        return range(first, first + SLOT_STEP * elements, SLOT_STEP)

    def slot(self, handle: int, index: int) -> int:
        """The slot of one element."""
        slots = self.slots(handle)
        if not isinstance(index, int) or not 0 <= index < len(slots):
            raise InputError(f"{self.what} handle 0x{handle:x} has no element {shown(index)}")
        return slots[index]

    def release(self, handle: int) -> range:
        """Forget a handle; its slots, which the table must clear."""
        slots = self.slots(handle)
        del self._arrays[handle]
        self._free.setdefault(len(slots), []).append(slots[0])
        return slots
