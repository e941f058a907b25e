"""Memory through which lanes hand operands over to functions of the runtime and take results from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.device.launch import SYMBOLS
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op

LANE_BYTES = 128  # the most that an operand of one lane takes
OWN = ("pe_lanes_load", "pe_lanes_store", "pe_lanes_fault", "pe_lanes_arrive", "pe_lanes_mbarrier_deadlock")


def site(struct: str, instruction: Op, /, **fields: object) -> Any:
    """What is constant about an instruction: a struct of the runtime with these fields, the others zero."""
    return ffi.new(f"pe_{struct}_site *", {"pos": instruction.pos, **fields})


class _Pairs:
    """Words of 64 bits as elements of 128."""

    def __init__(self, words: Any) -> None:
        self._words = words

    def __getitem__(self, index: int) -> int:
        return int(self._words[2 * index]) | int(self._words[2 * index + 1]) << 64

    def __setitem__(self, index: int, value: int) -> None:
        self._words[2 * index], self._words[2 * index + 1] = value & (1 << 64) - 1, value >> 64


class Area:
    """An array for all lanes. ``elements[size]`` are the integers in it, of 1 to 16 bytes."""

    def __init__(self) -> None:
        self.pointer = ffi.new("char[]", LANES * LANE_BYTES)
        whole = memoryview(ffi.buffer(self.pointer)).cast("B")
        self.elements: dict[int, Any] = {1: whole, 2: whole.cast("H"), 4: whole.cast("I"), 8: whole.cast("Q")}
        self.elements[16] = _Pairs(self.elements[8])


class Transfer:
    """Areas for one call at a time, and the functions that can be called, by name."""

    def __init__(self) -> None:
        self.areas: list[Area] = []
        self.functions: dict[str, Any] = {name: ffi.cast("void (*)(void)", address) for name, address in SYMBOLS.items()}
        self.functions |= {name: ffi.cast("void (*)(void)", ffi.addressof(lib, name)) for name in OWN}

    def area(self, number: int) -> Area:
        while len(self.areas) <= number:
            self.areas.append(Area())
        return self.areas[number]

    def fill(self, number: int, size: int, lanes: list[Any], read: Callable[[Any], int]) -> Any:
        """One element of each lane; the address of the area."""
        area = self.area(number)
        elements = area.elements[size]
        for lane in lanes:
            elements[lane.index] = read(lane)
        return area.pointer


def rows(warp: Any, number: int, size: int, lanes: list[Any], readers: list[Callable[[Any], int]]) -> Any:
    """Operands one after another, each of all lanes, in an area; its address."""
    area = warp.grid.transfer.area(number)
    elements = area.elements[size]
    for row, read in enumerate(readers):
        for lane in lanes:
            elements[row * LANES + lane.index] = read(lane)
    return area.pointer
