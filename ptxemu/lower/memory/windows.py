"""Accesses of a warp to a short pattern, such as every second or third word: what it spans is one *window* of memory, whose
elements change places in registers.

A load reads the whole window; a store writes those of its elements that are a lane's, by masks, and so needs a CPU that has them.
"""

from __future__ import annotations

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.access import Access, host_pointer
from ptxemu.lower.core.context import Context

LONGEST = 2 * LANES  # elements of a window
FEW = 4  # places that are loaded one by one


def is_short(shape: Shape, step: int) -> bool:
    """Whether a pattern of elements of ``step`` bytes is a window, in whose units all lanes are aligned."""
    low, high = shape.spread
    return high - low < LONGEST * step and all(offset % step == 0 for offset in shape.offsets)


def can_store(ctx: Context, found: Access, step: int) -> bool:
    """Whether addresses of elements are a pattern in which lanes have a place of their own each, and masks are cheap."""
    if found.shape is None or found.space == "local" or found.strong or step > 8 or not ctx.target.avx512:
        return False
    return is_short(found.shape, step) and len(set(found.shape.offsets)) == LANES


def load(ctx: Context, found: Access, bits: str, step: int) -> str:
    """Load what a pattern spans, or its few places, and shuffle."""
    assert found.shape is not None
    low, _ = found.shape.spread
    places = _places(found.shape, step)
    distinct = sorted(set(places))
    if len(distinct) <= FEW:
        return _few_places(ctx, found, bits, step, places, distinct)
    window = f"<{max(places) + 1} x {bits}>"
    value = ctx.inst(f"load {found.volatile}{window}, ptr {host_pointer(ctx, found, low)}, align {step}")
    picks = ", ".join(f"i32 {place}" for place in places)
    return ctx.inst(f"shufflevector {window} {value}, {window} poison, <{LANES} x i32> <{picks}>")


def _places(shape: Shape, step: int) -> list[int]:
    """The element of the window that each lane has."""
    low, _ = shape.spread
    return [(offset - low) // step for offset in shape.offsets]


def _few_places(ctx: Context, found: Access, bits: str, step: int, places: list[int], distinct: list[int]) -> str:
    assert found.shape is not None
    low = found.shape.spread[0]
    narrow = f"<{len(distinct)} x {bits}>"
    value = "poison"
    for index, place in enumerate(distinct):
        element = ctx.inst(f"load {found.volatile}{bits}, ptr {host_pointer(ctx, found, low + place * step)}, align {step}")
        value = ctx.inst(f"insertelement {narrow} {value}, {bits} {element}, i64 {index}")
    picks = ", ".join(f"i32 {distinct.index(place)}" for place in places)
    return ctx.inst(f"shufflevector {narrow} {value}, {narrow} poison, <{LANES} x i32> <{picks}>")


def _written(ctx: Context, found: Access, lane_of: dict[int, int], width: int) -> str:
    """A mask of the elements of a window that lanes write: ``lane_of`` has a place for each."""
    if ctx.target.deposits and list(lane_of) == sorted(lane_of):  # lanes are in order
        bits = ctx.deposited(found.mask, 0, sum(1 << place for place in lane_of))
        narrow = ctx.scalar.cast("trunc", "i64", bits, f"i{width}") if width < 64 else bits
        return ctx.inst(f"bitcast i{width} {narrow} to <{width} x i1>")
    picks = ", ".join(f"i32 {lane_of.get(place, LANES)}" for place in range(width))
    on = ctx.vector.cast("sext", "i1", found.mask, "i8")
    lanes, window = f"<{LANES} x i8>", f"<{width} x i8>"
    written = ctx.inst(f"shufflevector {lanes} {on}, {lanes} zeroinitializer, <{width} x i32> <{picks}>")
    return ctx.inst(f"icmp slt {window} {written}, zeroinitializer")


def store(ctx: Context, found: Access, bits: str, step: int, value: str) -> None:
    """Store an element of each lane that is on."""
    assert found.shape is not None
    lane_of = {place: lane for lane, place in enumerate(_places(found.shape, step))}
    width = 1 << max(lane_of).bit_length()  # of whole registers
    picks = ", ".join(f"i32 {lane_of.get(place, LANES)}" for place in range(width))
    lanes, window = f"<{LANES} x {bits}>", f"<{width} x {bits}>"
    spread = ctx.inst(f"shufflevector {lanes} {value}, {lanes} poison, <{width} x i32> <{picks}>")
    mask = _written(ctx, found, lane_of, width)
    name = f"llvm.masked.store.v{width}{bits}.p0"
    ctx.declare(name, f"declare void @{name}({window}, ptr, <{width} x i1>)")
    pointer = host_pointer(ctx, found, found.shape.spread[0])
    ctx.stmt(f"call void @{name}({window} {spread}, ptr align {step} {pointer}, <{width} x i1> {mask})")
