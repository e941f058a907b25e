"""Accesses of a whole warp to consecutive elements: lane i has ``count`` of them at ``pointer + i * count * size``.

In place of one pointer there may be several, one for each of as many equal groups of lanes.

Elements change places register by register of the target, in stages of two registers each: shuffles of all the warp's elements
at once cost LLVM 10 to 30 ms apiece.  A value here is one vector of ``iN`` for each of the ``count`` elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.masks import deposited
from ptxemu.lower.core.prefetch import LINE, ask

WHOLE = "volatile "  # or LLVM makes a masked store of one that keeps some elements, which many CPUs execute in microcode


def load(ctx: Context, bits: str, count: int, pointer: str | Sequence[str], volatile: str = "", mask: str = "") -> list[str]:
    """Load for every lane, or for those of ``mask``; the others get zeros."""
    word, words = words_of(bits, count)
    if word != bits:
        return split(ctx, load(ctx, word, words, pointer, volatile, mask), word, bits)
    pointers = [pointer] if isinstance(pointer, str) else pointer
    width, chunks = chunk_lanes(ctx, bits, count, len(pointers)), []
    for first in range(0, LANES, width):
        registers = [_load(ctx, bits, place, volatile, mask) for place in _places(ctx, bits, count, width, pointers, first)]
        chunks.append(_unweave(ctx, registers, width, bits))
    return [_joined(ctx, [chunk[index] for chunk in chunks], bits) for index in range(count)]


def weave(ctx: Context, values: list[str], bits: str, groups: int = 1) -> list[str]:
    """Values as registers in memory order, to be stored through as many pointers as there are groups of lanes."""
    word, _ = words_of(bits, len(values))
    if word != bits:
        return weave(ctx, merged(ctx, values, bits, word), word, groups)
    width = chunk_lanes(ctx, bits, len(values), groups)
    pieces = [_pieces(ctx, value, width, bits) for value in values]
    return [register for chunk in zip(*pieces) for register in _weave(ctx, list(chunk), width, bits)]


def store(
    ctx: Context,
    bits: str,
    registers: list[str],
    count: int,
    pointer: str | Sequence[str],
    volatile: str = "",
    mask: str = "",
    blend: bool = False,
) -> list[str]:
    """Store for every lane, or for those of ``mask``, what :func:`weave` made of ``count`` values.

    ``blend``: nobody else may write meanwhile, so that elements of lanes that are off may be written as they are.
    """
    bits, count = words_of(bits, count)
    pointers = [pointer] if isinstance(pointer, str) else pointer
    width = chunk_lanes(ctx, bits, count, len(pointers))
    places = [place for first in range(0, LANES, width) for place in _places(ctx, bits, count, width, pointers, first)]
    for register, place in zip(registers, places):
        if blend and mask:
            register = _blended(ctx, bits, register, place, mask)
        _store(ctx, bits, register, place, WHOLE if blend else volatile, "" if blend else mask)
    return []


def load_rows(ctx: Context, bits: str, pointers: Sequence[str], mask: str) -> list[str]:
    """Load an element for each lane of ``mask`` out of line, as CPUs have no masked loads of some sizes; the others get zeros."""
    value = ctx.spill(bits, "zeroinitializer")
    for pointer, own, lanes in _rows(ctx, bits, value, pointers, mask):
        ctx.call("void", f"pe_load_row_{bits[1:]}", ("ptr", pointer), (f"i{LANES}", lanes), ("ptr", own))
    return [ctx.inst(f"load <{LANES} x {bits}>, ptr {value}, align 64")]


def store_rows(ctx: Context, bits: str, value: str, pointers: Sequence[str], mask: str) -> list[str]:
    """Store an element of each lane of ``mask`` out of line, as many CPUs execute masked stores in microcode."""
    for pointer, own, lanes in _rows(ctx, bits, ctx.in_memory(bits, value), pointers, mask):
        ctx.call("void", f"pe_store_row_{bits[1:]}", ("ptr", pointer), ("ptr", own), (f"i{LANES}", lanes))
    return []


def _rows(ctx: Context, bits: str, values: str, pointers: Sequence[str], mask: str) -> Iterator[tuple[str, str, str]]:
    """Of each group of lanes: where its row begins, where its values do, and which of its lanes are on."""
    width, size = LANES // len(pointers), int(bits[1:]) // 8
    on = ctx.bits_of(mask)
    for group, pointer in enumerate(pointers):
        own = ctx.inst(f"getelementptr i8, ptr {values}, i64 {group * width * size}")
        lanes = ctx.scalar.bin("lshr", f"i{LANES}", on, str(group * width)) if group else on
        yield pointer, own, ctx.scalar.bin("and", f"i{LANES}", lanes, str((1 << width) - 1))


def words_of(bits: str, count: int) -> tuple[str, int]:
    """Narrow elements of a lane are moved as words of up to 32 bits: the type and number of these."""
    whole = int(bits[1:]) * count
    word = max(int(bits[1:]), min(32, whole))
    return f"i{word}", whole // word


def split(ctx: Context, words: Sequence[str], wide: str, bits: str) -> list[str]:
    """The elements of words."""
    return [part for word in words for part in _split(ctx, word, wide, bits)]


def merged(ctx: Context, values: Sequence[str], bits: str, wide: str) -> list[str]:
    """Words of elements."""
    step = int(wide[1:]) // int(bits[1:])
    return [_merged(ctx, values[first : first + step], wide, bits) for first in range(0, len(values), step)]


def _split(ctx: Context, word: str, wide: str, bits: str) -> list[str]:
    size = int(bits[1:])
    shifts = range(0, int(wide[1:]), size)
    shifted = [ctx.vector.bin("lshr", wide, word, ctx.vector.int(int(wide[1:]), shift)) if shift else word for shift in shifts]
    return [ctx.vector.cast("trunc", wide, value, bits) for value in shifted]


def _merged(ctx: Context, parts: Sequence[str], wide: str, bits: str) -> str:
    whole = ctx.vector.cast("zext", bits, parts[0], wide)
    for index, part in enumerate(parts[1:], 1):
        value = ctx.vector.cast("zext", bits, part, wide)
        shifted = ctx.vector.bin("shl", wide, value, ctx.vector.int(int(wide[1:]), index * int(bits[1:])))
        whole = ctx.vector.bin("or", wide, whole, shifted)
    return whole


def chunk_lanes(ctx: Context, bits: str, count: int, groups: int = 1) -> int:
    """How many lanes of a group are moved together: as many as fill registers, or all where no element changes places."""
    most = LANES // groups
    return most if count == 1 else min(most, 8 * ctx.target.vector_bytes // int(bits[1:]))


class _Place:
    """One register in memory: a pointer, and the lane that each of its elements belongs to."""

    def __init__(self, pointer: str, lanes: list[int]) -> None:
        self.pointer = pointer
        self.lanes = lanes

    def mask(self, ctx: Context, mask: str) -> str:
        if self.lanes == list(range(LANES)):
            return mask
        width, times = len(self.lanes), self.lanes.count(self.lanes[0])
        if ctx.target.deposits and times > 1:
            firsts = deposited(ctx, mask, self.lanes[0], sum(1 << place for place in range(0, width, times)))
            whole = ctx.scalar.bin("mul", "i64", firsts, str((1 << times) - 1))
            return ctx.inst(f"bitcast i{width} {ctx.scalar.cast('trunc', 'i64', whole, f'i{width}')} to <{width} x i1>")
        picks = ", ".join(f"i32 {lane}" for lane in self.lanes)
        return ctx.inst(f"shufflevector {MASK} {mask}, {MASK} poison, <{width} x i32> <{picks}>")


def _places(ctx: Context, bits: str, count: int, width: int, pointers: Sequence[str], first: int) -> list[_Place]:
    """The ``count`` registers that hold the elements of the ``width`` lanes from ``first`` on."""
    group, lane = divmod(first, LANES // len(pointers))
    found, size = [], int(bits[1:]) // 8
    for index in range(count):
        element = lane * count + index * width
        offset = f"getelementptr i8, ptr {pointers[group]}, i64 {element * size}"
        at = ctx.inst(offset) if element else pointers[group]
        found.append(_Place(at, [first + (index * width + step) // count for step in range(width)]))
    return found


def _load(ctx: Context, bits: str, place: _Place, volatile: str, mask: str) -> str:
    width, align = len(place.lanes), int(bits[1:]) // 8
    whole = f"<{width} x {bits}>"
    if not mask:
        return ctx.inst(f"load {volatile}{whole}, ptr {place.pointer}, align {align}")
    if ctx.target.overlooks_masked:
        ask(ctx, place.pointer, range(0, width * align, LINE))
    return load_masked(ctx, bits, width, place.pointer, place.mask(ctx, mask))


def load_masked(ctx: Context, bits: str, width: int, pointer: str, mask: str) -> str:
    """The elements at a pointer of which a mask has the bits set; zeros in place of the others."""
    whole, name = f"<{width} x {bits}>", f"llvm.masked.load.v{width}{bits}.p0"
    ctx.declare(name, f"declare {whole} @{name}(ptr, <{width} x i1>, {whole})")
    arguments = f"ptr align {int(bits[1:]) // 8} {pointer}, <{width} x i1> {mask}, {whole} zeroinitializer"
    return ctx.inst(f"call {whole} @{name}({arguments})")


def _store(ctx: Context, bits: str, value: str, place: _Place, volatile: str, mask: str) -> None:
    width, align = len(place.lanes), int(bits[1:]) // 8
    whole = f"<{width} x {bits}>"
    if not mask:
        ctx.stmt(f"store {volatile}{whole} {value}, ptr {place.pointer}, align {align}")
        return
    name = f"llvm.masked.store.v{width}{bits}.p0"
    ctx.declare(name, f"declare void @{name}({whole}, ptr, <{width} x i1>)")
    arguments = f"{whole} {value}, ptr align {align} {place.pointer}, <{width} x i1> {place.mask(ctx, mask)}"
    ctx.stmt(f"call void @{name}({arguments})")


def _blended(ctx: Context, bits: str, value: str, place: _Place, mask: str) -> str:
    """What is in memory, with the elements of lanes that are on replaced."""
    whole, on = f"<{len(place.lanes)} x {bits}>", place.mask(ctx, mask)
    return ctx.inst(f"select <{len(place.lanes)} x i1> {on}, {whole} {value}, {whole} {_load(ctx, bits, place, '', '')}")


# ---------------------------------------------------------------- changing places


def _weave(ctx: Context, registers: list[str], width: int, bits: str) -> list[str]:
    """Element k of every lane in register k, to memory order: each stage joins registers that are half the list apart."""
    count = len(registers)
    low = [half + step for step in range(width // 2) for half in (0, width)]
    high = [pick + width // 2 for pick in low]
    for _ in range(count.bit_length() - 1):
        pairs = zip(registers[: count // 2], registers[count // 2 :])
        registers = [_shuffle(ctx, a, b, picks, width, bits) for a, b in pairs for picks in (low, high)]
    return registers


def _unweave(ctx: Context, registers: list[str], width: int, bits: str) -> list[str]:
    """The reverse of :func:`_weave`."""
    count = len(registers)
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(registers[::2], registers[1::2]))
        registers = [_shuffle(ctx, a, b, range(odd, 2 * width, 2), width, bits) for odd in (0, 1) for a, b in pairs]
    return registers


def _pieces(ctx: Context, value: str, width: int, bits: str) -> list[str]:
    """A vector of the warp, ``width`` lanes at a time."""
    if width == LANES:
        return [value]
    return [_shuffle(ctx, value, "poison", range(first, first + width), LANES, bits) for first in range(0, LANES, width)]


def _joined(ctx: Context, parts: list[str], bits: str) -> str:
    """Registers as one vector of the warp."""
    while len(parts) > 1:
        width = LANES // len(parts)
        pairs = zip(parts[::2], parts[1::2])
        parts = [_shuffle(ctx, a, b, range(2 * width), width, bits) for a, b in pairs]
    return parts[0]


def _shuffle(ctx: Context, a: str, b: str, picks: range | list[int], width: int, bits: str) -> str:
    whole, chosen = f"<{width} x {bits}>", ", ".join(f"i32 {pick}" for pick in picks)
    return ctx.inst(f"shufflevector {whole} {a}, {whole} {b}, <{len(picks)} x i32> <{chosen}>")
