"""Accesses of a warp to a short pattern, such as every second or third word: what it spans is one *window* of memory, whose
elements change places in registers.

A load reads the whole window; a store writes those of its elements that are a lane's, by masks, and so needs a CPU that has them.
Two accesses that fill each other's gaps share a window.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr
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
    (places,), low = _places([found], step)
    distinct = sorted(set(places))
    if len(distinct) <= FEW:
        return _few_places(ctx, found, bits, step, places, distinct)
    return _shuffled(ctx, found, bits, step, [places], low)[0]


def load_both(ctx: Context, found: Sequence[Access], bits: str, step: int) -> list[str]:
    """Load what two patterns off one base span, once."""
    return _shuffled(ctx, found[0], bits, step, *_places(found, step))


def _shuffled(ctx: Context, found: Access, bits: str, step: int, places: list[list[int]], low: int) -> list[str]:
    """A window that begins ``low`` bytes from the base of an access, as the values at some lists of places."""
    window = f"<{max(map(max, places)) + 1} x {bits}>"
    value = ctx.inst(f"load {found.volatile}{window}, ptr {host_pointer(ctx, found, low)}, align {step}")
    picks = [", ".join(f"i32 {place}" for place in list) for list in places]
    return [ctx.inst(f"shufflevector {window} {value}, {window} poison, <{LANES} x i32> <{pick}>") for pick in picks]


def _places(found: Sequence[Access], step: int) -> tuple[list[list[int]], int]:
    """The elements of the window that the lanes have in each access, and where it begins, relative to the first one's base."""
    shape = found[0].shape
    assert shape is not None
    offsets = offsets_of([item.address for item in found], shape)
    low = min(map(min, offsets))
    return [[(offset - low) // step for offset in own] for own in offsets], low


def offsets_of(addresses: Sequence[Addr], shape: Shape) -> list[list[int]]:
    """For each of some addresses off one base register, the offsets of all lanes, relative to the base of the first address."""
    return [[address.offset - addresses[0].offset + offset for offset in shape.offsets] for address in addresses]


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


def _written(ctx: Context, found: Access, places: list[list[int]], width: int) -> str:
    """A mask of the elements of a window that lanes write, at ``places`` of each access."""
    if ctx.target.deposits and all(list == sorted(list) for list in places):  # lanes are in order
        bits = "0"
        for own in places:
            written = ctx.deposited(found.mask, 0, sum(1 << place for place in own))
            bits = written if bits == "0" else ctx.scalar.bin("or", "i64", bits, written)
        narrow = ctx.scalar.cast("trunc", "i64", bits, f"i{width}") if width < 64 else bits
        return ctx.inst(f"bitcast i{width} {narrow} to <{width} x i1>")
    lane_of = {place: lane for own in places for lane, place in enumerate(own)}
    picks = ", ".join(f"i32 {lane_of.get(place, LANES)}" for place in range(width))
    on = ctx.vector.cast("sext", "i1", found.mask, "i8")
    lanes, window = f"<{LANES} x i8>", f"<{width} x i8>"
    written = ctx.inst(f"shufflevector {lanes} {on}, {lanes} zeroinitializer, <{width} x i32> <{picks}>")
    return ctx.inst(f"icmp slt {window} {written}, zeroinitializer")


def store(ctx: Context, found: Sequence[Access], bits: str, step: int, values: Sequence[str]) -> None:
    """Store an element of each lane that is on, for one access or for two off one base."""
    places, low = _places(found, step)
    width = 1 << max(map(max, places)).bit_length()  # of whole registers
    source = {place: LANES * index + lane for index, own in enumerate(places) for lane, place in enumerate(own)}
    picks = ", ".join(f"i32 {source[place]}" if place in source else "i32 poison" for place in range(width))
    lanes, window = f"<{LANES} x {bits}>", f"<{width} x {bits}>"
    second = values[1] if len(values) > 1 else "poison"
    spread = ctx.inst(f"shufflevector {lanes} {values[0]}, {lanes} {second}, <{width} x i32> <{picks}>")
    mask = _written(ctx, found[0], places, width)
    name = f"llvm.masked.store.v{width}{bits}.p0"
    ctx.declare(name, f"declare void @{name}({window}, ptr, <{width} x i1>)")
    pointer = host_pointer(ctx, found[0], low)
    ctx.stmt(f"call void @{name}({window} {spread}, ptr align {step} {pointer}, <{width} x i1> {mask})")
