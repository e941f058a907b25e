"""Accesses of a warp to a short pattern, such as every second or third word: what it spans is one *window* of memory, whose
elements change places in registers.

A load reads the whole window; a store writes those of its elements that are a lane's, by masks where the CPU has them.  Where it
has none, elements of shared memory that are no lane's are written as they are: a CTA stays on one thread.  Two accesses that
fill each other's gaps share a window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr
from ptxemu.lower.core.access import Access, host_pointer
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.core.masks import deposited
from ptxemu.lower.memory import consecutive

LONGEST = 2 * LANES  # elements of a window
LONGEST_WHOLE = 4 * LANES  # of one outside of shared memory
LONGEST_BYTES = 512  # of one that all lanes store to: eight registers
FEW = 4  # places that are loaded one by one


def is_short(shape: Shape, step: int) -> bool:
    """Whether a pattern of elements of ``step`` bytes is a window, in whose units all lanes are aligned."""
    return _is_within(shape, step, LONGEST * step)


def _is_within(shape: Shape, step: int, bytes: int) -> bool:
    low, high = shape.spread
    return high - low < bytes and is_of_elements(shape, step)


def is_of_elements(shape: Shape, step: int) -> bool:
    """Whether lanes are a multiple of ``step`` bytes apart."""
    return all(offset % step == 0 for offset in shape.offsets)


def are_few(shape: Shape, step: int) -> bool:
    """Whether all lanes have only a few places, a multiple of ``step`` bytes apart."""
    return len(set(shape.offsets)) <= FEW and is_of_elements(shape, step)


def is_whole(ctx: Context, found: Access, step: int) -> bool:
    """Whether all lanes of a warp load from one window outside of shared memory: they are so near to each other that what lies
    between them is in pages that some lane reads from."""
    if found.shape is None or found.space in ("shared", "local") or found.strong or found.at_once or found.volatile or step > 4:
        return False
    return _is_within(found.shape, step, LONGEST_WHOLE * step)


def can_store(ctx: Context, found: Access, step: int) -> bool:
    """Whether addresses of elements are a pattern in which lanes have a place of their own each; what lies between is to stay."""
    if found.shape is None or found.space == "local" or found.strong or step > 8:
        return False
    if not ctx.target.avx512 and found.space != "shared":
        return False
    return is_short(found.shape, step) and _are_distinct(found.shape)


def _are_distinct(shape: Shape) -> bool:
    return len(set(shape.offsets)) == LANES


def can_store_all(ctx: Context, found: Access, step: int) -> bool:
    """The same of a longer window outside of shared memory, if all lanes store."""
    if found.shape is None or found.space in ("shared", "local") or found.strong or step > 8:
        return False
    longest = min(LONGEST_WHOLE * step, LONGEST_BYTES) if ctx.target.avx512 else LONGEST_WHOLE * step
    return _is_within(found.shape, step, longest) and _are_distinct(found.shape)


def load(ctx: Context, found: Access, bits: str, step: int) -> str:
    """Load what a pattern spans and shuffle; or its places, if these are few."""
    (places,), low = _places([found], step)
    if len(set(places)) <= FEW:
        return load_places(ctx, found, bits, step)
    return _shuffled(ctx, found, bits, step, [places], low)[0]


def can_load_some(ctx: Context, found: Access, step: int) -> bool:
    """Whether lanes that are off can be left out of such a window, in which others have a place of their own each."""
    return ctx.target.avx512 and found.shape is not None and is_short(found.shape, step) and _are_distinct(found.shape)


def load_some(ctx: Context, found: Access, bits: str, step: int) -> list[str]:
    """Load what the lanes that are on have of a window; the others get zeros."""
    (places,), low = _places([found], step)
    width = _whole_registers(places)
    window, on = f"<{width} x {bits}>", _of_lanes(ctx, found, [places], width)
    value = consecutive.load_masked(ctx, bits, width, host_pointer(ctx, found, low), on)
    picks = ", ".join(f"i32 {place}" for place in places)
    return [ctx.inst(f"shufflevector {window} {value}, {window} poison, <{LANES} x i32> <{picks}>")]


def _whole_registers(places: Sequence[int]) -> int:
    """The elements of a window that fills them."""
    return 1 << max(places).bit_length()


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


def load_places(ctx: Context, found: Access, bits: str, step: int) -> str:
    """Load the places of a pattern one by one, each once. Its offsets are multiples of ``step``, relative to the first."""
    (places,), low = _places([found], step)
    distinct = sorted(set(places))
    narrow = f"<{len(distinct)} x {bits}>"
    value = "poison"
    for index, place in enumerate(distinct):
        element = ctx.inst(f"load {found.volatile}{bits}, ptr {host_pointer(ctx, found, low + place * step)}, align {step}")
        value = ctx.inst(f"insertelement {narrow} {value}, {bits} {element}, i64 {index}")
    picks = ", ".join(f"i32 {distinct.index(place)}" for place in places)
    return ctx.inst(f"shufflevector {narrow} {value}, {narrow} poison, <{LANES} x i32> <{picks}>")


def _of_lanes(ctx: Context, found: Access, places: list[list[int]], width: int) -> str:
    """A mask of the elements of a window that are those of lanes that are on, at ``places`` of each access."""
    if ctx.target.deposits and all(list == sorted(list) for list in places):  # lanes are in order
        bits = "0"
        for own in places:
            written = deposited(ctx, found.mask, 0, sum(1 << place for place in own))
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
    pointer = host_pointer(ctx, found[0], low)
    if ctx.target.avx512:
        _store_under_mask(ctx, bits, step, values, places, pointer, partial(_of_lanes, ctx, found[0], places))
        return
    width = max(map(max, places)) + 1
    window, on = f"<{width} x {bits}>", ctx.vector.cast("sext", "i1", found[0].mask, bits)
    value, written = (_spread(ctx, items, bits, places, width) for items in (values, [on] * len(values)))
    old = ctx.inst(f"load {window}, ptr {pointer}, align {step}")
    mask = ctx.inst(f"icmp slt {window} {written}, zeroinitializer")
    whole = ctx.inst(f"select <{width} x i1> {mask}, {window} {value}, {window} {old}")
    ctx.stmt(f"store {consecutive.WHOLE}{window} {whole}, ptr {pointer}, align {step}")


def store_all(ctx: Context, found: Access, bits: str, step: int, value: str) -> None:
    """Store an element of each lane, where all are on."""
    if not ctx.target.avx512:
        _store_places(ctx, found, bits, step, value)
        return
    (places,), low = _places([found], step)

    def mask(width: int) -> str:
        return vector_literal("i1", [place in places for place in range(width)])

    _store_under_mask(ctx, bits, step, [value], [places], host_pointer(ctx, found, low), mask)


def _store_places(ctx: Context, found: Access, bits: str, step: int, value: str) -> None:
    """The same one by one, for CPUs without masks: what lies between may change meanwhile."""
    assert found.shape is not None
    for lane, offset in enumerate(found.shape.offsets):
        element = ctx.inst(f"extractelement <{LANES} x {bits}> {value}, i64 {lane}")
        ctx.stmt(f"store {bits} {element}, ptr {host_pointer(ctx, found, offset)}, align {step}")


def _store_under_mask(
    ctx: Context,
    bits: str,
    step: int,
    values: Sequence[str],
    places: list[list[int]],
    pointer: str,
    mask: Callable[[int], str],
) -> None:
    """``mask`` makes one of the elements of a window of that width."""
    width = _whole_registers([place for own in places for place in own])
    window, name = f"<{width} x {bits}>", f"llvm.masked.store.v{width}{bits}.p0"
    ctx.declare(name, f"declare void @{name}({window}, ptr, <{width} x i1>)")
    value = _spread(ctx, values, bits, places, width)
    ctx.stmt(f"call void @{name}({window} {value}, ptr align {step} {pointer}, <{width} x i1> {mask(width)})")


def _spread(ctx: Context, values: Sequence[str], bits: str, places: list[list[int]], width: int) -> str:
    """Values of the lanes in each access as elements of a window; zeros between those of one access."""
    source = {place: LANES * index + lane for index, own in enumerate(places) for lane, place in enumerate(own)}
    picks = ", ".join(f"i32 {source.get(place, LANES)}" for place in range(width))
    lanes, second = f"<{LANES} x {bits}>", values[1] if len(values) > 1 else "zeroinitializer"
    return ctx.inst(f"shufflevector {lanes} {values[0]}, {lanes} {second}, <{width} x i32> <{picks}>")
