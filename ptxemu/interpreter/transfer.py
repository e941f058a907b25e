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


class Area:
    """An array for all lanes, seen as elements of any size."""

    def __init__(self) -> None:
        self.pointer = ffi.new("char[]", LANES * LANE_BYTES)
        whole = memoryview(ffi.buffer(self.pointer))
        self.views = {size: whole.cast("B").cast(code) for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))}  # type: ignore[call-overload]

    def get(self, size: int, index: int) -> int:
        """Element ``index`` of ``size`` bytes."""
        if size == 16:
            words = self.views[8]
            return int(words[2 * index]) | int(words[2 * index + 1]) << 64
        return int(self.views[size][index])

    def put(self, size: int, index: int, value: int) -> None:
        if size == 16:
            self.views[8][2 * index], self.views[8][2 * index + 1] = value & (1 << 64) - 1, value >> 64
        else:
            self.views[size][index] = value


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
        for lane in lanes:
            area.put(size, lane.index, read(lane))
        return area.pointer


def rows(warp: Any, number: int, size: int, lanes: list[Any], readers: list[Callable[[Any], int]]) -> Any:
    """Operands one after another, each of all lanes, in an area; its address."""
    area = warp.grid.transfer.area(number)
    for row, read in enumerate(readers):
        for lane in lanes:
            area.put(size, row * LANES + lane.index, read(lane))
    return area.pointer
