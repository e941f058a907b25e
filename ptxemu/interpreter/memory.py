"""Loads, stores, conversions of addresses, and the stack in local memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu._runtime import lib
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.transfer import Area
from ptxemu.interpreter.translate import Reader, Translator, Writer, bits_of, method, nearest
from ptxemu.ir.ops import Imm, Op, Reg, SymRef
from ptxemu.ir.types import U32, U64, ScalarType
from ptxemu.isa.table import CLUSTER_SHARED
from ptxemu.lower.core.layout import STARTS

STACK_ALIGN = 8
ADDRESSES, DATA = 0, 1  # areas


def addresses(warp: Any, group: list[Lane], address: Reader) -> tuple[int, Any]:
    """The lanes as a mask, and their addresses in memory."""
    transfer = warp.grid.transfer
    return sum(lane.bit for lane in group), transfer.fill(ADDRESSES, 8, group, address)


def load_into(t: Translator, op: Op, writers: list[Writer | None], kind: ScalarType) -> Step:
    """Elements of one type from consecutive places."""
    address, space = t.access(op, "a")
    size, count, pos = kind.bytes, len(writers), op.pos

    def step(warp: Any, group: list[Lane]) -> None:
        mask, at = addresses(warp, group, address)
        area = warp.grid.transfer.area(DATA)
        warp.grid.call("pe_lanes_load", warp, pos, space, size, count, mask, at, area.pointer)
        take(area, size, group, writers)

    return step


@method("ld")
def load(t: Translator, op: Op) -> Step:
    return load_into(t, op, t.writers(op), op.dst_types[0])


@method("st")
def store(t: Translator, op: Op) -> Step:
    kind = op.type_of("v")
    assert kind is not None
    address, space = t.access(op, "a")
    readers, size, pos = t.readers(op["v"], kind), kind.bytes, op.pos
    count = len(readers)

    def step(warp: Any, group: list[Lane]) -> None:
        mask, at = addresses(warp, group, address)
        data = lane_data(warp, DATA, group, readers, size)
        warp.grid.call("pe_lanes_store", warp, pos, space, size, count, mask, at, data)

    return step


@method("_aligned")
def aligned(t: Translator, op: Op) -> Step:
    space, below, pos = op.mods.get("space", "generic"), op["size"].bits - 1, op.pos
    address, code = t.address(op["a"], space), int(getattr(lib, f"PE_{space.upper()}"))

    def step(warp: Any, group: list[Lane]) -> None:
        wild = [lane for lane in group if address(lane) & below]
        if wild:
            mask, at = addresses(warp, wild, address)
            warp.grid.call("pe_refuse_misaligned", warp, pos, code, below + 1, mask, at)

    return step


def lane_data(warp: Any, area: int, group: list[Lane], readers: list[Reader], size: int) -> Any:
    """Elements of each lane, one lane after the other; the address of the area."""
    found, count = warp.grid.transfer.area(area), len(readers)
    elements = found.elements[size]
    for index, read in enumerate(readers):
        for lane in group:
            elements[lane.index * count + index] = read(lane)
    return found.pointer


def take(area: Area, size: int, group: list[Lane], writers: list[Writer | None]) -> None:
    """The same the other way: elements of each lane, one lane after the other, become its results."""
    elements, count = area.elements[size], len(writers)
    for index, write in enumerate(writers):
        if write is not None:
            for lane in group:
                write(lane, elements[lane.index * count + index])


@method("prefetch", "hint", "brkpt", "pmevent", "copies_done", "fence", "wgmma_order", "tmem_order")
def nothing(t: Translator, op: Op) -> Step:
    """Hints; and what orders memory, which here is in order."""
    return lambda warp, group: None


@method("createpolicy")
def createpolicy(t: Translator, op: Op) -> Step:
    """An opaque value that no access looks at."""
    return each(t, op, lambda lane: 0)


def each(t: Translator, op: Op, value: Callable[[Lane], int]) -> Step:
    """An instruction whose one result is a function of the lane."""
    write = t.result(op)

    def step(warp: Any, group: list[Lane]) -> None:
        if write is not None:
            for lane in group:
                write(lane, value(lane))

    return step


# ---------------------------------------------------------------- address spaces


def _generic(t: Translator, op: Op) -> Reader:
    source = op["a"]
    narrow = isinstance(source, Reg) and source.type.bits == 32
    return t.reader(source, U32 if narrow else U64)


def _local_base(lane: Lane) -> int:
    w = lane.warp.w
    return int(w.local_base + lane.index * w.local_size)


def _window(op: Op) -> str:
    """The state space, without its ``::cta`` refinement."""
    return op.mods["space"].partition("::")[0]


def _cvta_shared(t: Translator, op: Op) -> Step:
    """Addresses of shared memory may be those of other CTAs of the cluster; variables are the thread's own."""
    read, mask, ranked = _generic(t, op), bits_of(op.dst_types[0]), t.ranked
    if "to" in op.mods:
        return each(t, op, lambda lane: lane.warp.windows.shared(read(lane), ranked) & mask)
    if isinstance(op["a"], SymRef) and not ranked:
        return each(t, op, lambda lane: lane.warp.windows.own + read(lane) & mask)
    return each(t, op, lambda lane: lane.warp.windows.generic(read(lane)) & mask)


@method("cvta")
def cvta(t: Translator, op: Op) -> Step:
    """Shared and local addresses are offsets in their windows; the others are generic already, but perhaps in 32 bits."""
    space = _window(op)
    if space == "shared":
        return _cvta_shared(t, op)
    read, sign, mask = _generic(t, op), -1 if "to" in op.mods else 1, bits_of(op.dst_types[0])
    if space == "local":
        return each(t, op, lambda lane: read(lane) + sign * _local_base(lane) & mask)
    if space in STARTS and "to" not in op.mods and not isinstance(op["a"], SymRef):
        return each(t, op, lambda lane: _unshortened(lane.warp.w, STARTS[space], read(lane)))
    return each(t, op, lambda lane: read(lane) & mask)


def _unshortened(w: Any, start: str, address: int) -> int:
    return address if address >> 32 else nearest(getattr(w, start), address)


@method("isspacep")
def isspacep(t: Translator, op: Op) -> Step:
    read, space = _generic(t, op), _window(op)
    own = space == "shared" and op.mods["space"] != CLUSTER_SHARED

    def ranges(lane: Lane) -> dict[str, tuple[int, int]]:
        w = lane.warp.w
        return {
            "local": (w.local_base, w.local_size * 32), "const": (w.const_base, w.const_size),
            "param": (w.param_base, w.param_size),
        }  # fmt: skip

    def inside(lane: Lane) -> int:
        address, windows = read(lane), lane.warp.windows
        if own:
            return int(0 <= address - windows.own < windows.size)
        found = {name for name, (base, size) in ranges(lane).items() if 0 <= address - base < size}
        if windows.within(address):
            found.add("shared")
        return int(space in found if space != "global" else found <= {"param"})

    return each(t, op, inside)


# ---------------------------------------------------------------- the stack


@method("stacksave")
def stacksave(t: Translator, op: Op) -> Step:
    return each(t, op, lambda lane: lane.stack & bits_of(op.dst_types[0]))


@method("stackrestore")
def stackrestore(t: Translator, op: Op) -> Step:
    read = t.operand(op, "a")

    def step(warp: Any, group: list[Lane]) -> None:
        for lane in group:
            lane.stack = read(lane)

    return step


@method("alloca")
def alloca(t: Translator, op: Op) -> Step:
    """The next aligned bytes; a fault if the thread has not so many."""
    size, write = t.operand(op, "a"), t.result(op)
    align = op["immAlign"].bits if isinstance(op["immAlign"], Imm) else STACK_ALIGN

    def step(warp: Any, group: list[Lane]) -> None:
        starts = {lane: -(-lane.stack // align) * align for lane in group}
        full = sum(lane.bit for lane in group if starts[lane] + size(lane) > warp.w.local_size)
        if full:
            overflow(warp, op.pos, full)
        for lane, start in starts.items():
            lane.stack = start + size(lane)
            if write is not None:
                write(lane, start)

    return step


def overflow(warp: Any, pos: int, lanes: int) -> None:
    """No room on the stack of some lanes."""
    warp.w.pos = pos
    warp.grid.call("pe_stack_overflow", warp, lanes)
