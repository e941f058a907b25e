"""Sums in a worker's own copy of the array that a kernel adds to, its *twin* (csrc/memory/twin.h).

The runtime makes it at the first sum, if it makes one. From then on code finds it through the record of the warp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from ptxemu._runtime import ffi
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import leaves_stamps
from ptxemu.ir.ops import Op, Operand
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import Access, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import outside
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.core.sum_stamps import STAMP_BYTES, SumStamps
from ptxemu.lower.memory import updates


def _field(ctx: Context, name: str, index: int = 0) -> str:
    """A field of the worker's pe_apart, which the runtime may have changed."""
    offset = ffi.offsetof("pe_apart", name) + 8 * index
    place = ctx.inst(f"getelementptr i8, ptr {ctx.field('apart')}, i64 {offset}")
    return ctx.inst(f"load i64, ptr {place}, align 8")


def _offsets(ctx: Context, addresses: str) -> str:
    """Of places in the twin, as i64, from the addresses of all lanes."""
    return ctx.vector.bin("sub", "i64", addresses, ctx.splat("i64", _field(ctx, "first")))


def _end(ctx: Context, kind: ScalarType) -> str:
    return _field(ctx, "sums", kind.bytes // 8)


class Sums(Struct, frozen=True):
    """What the lanes of a mask add, to words at addresses, a vector of i64."""

    op: Op
    kind: ScalarType
    addresses: str
    mask: str
    operand: Operand


def add(ctx: Context, sums: Sums, ready: str, otherwise: Callable[[], Sequence[str]]) -> None:
    """Add in the twin; ``otherwise`` if ``ready``, an i1, is false, if the twin has not all words, or if all lanes add to one."""
    fine = ctx.scalar.conjunction([ready, _may_add(ctx, sums), _are_apart(ctx, sums)])
    ctx.when(fine, partial(_add, ctx, sums), otherwise, [], likely=True)


def _may_add(ctx: Context, sums: Sums) -> str:
    """i1: the twin has the words of all lanes that are on, and stamps may be left if all lanes are to leave some."""
    offsets = ctx.vector.select(sums.mask, "i64", _offsets(ctx, sums.addresses), "zeroinitializer")
    whole = updates.are_words(ctx, "i64", offsets, _end(ctx, sums.kind), sums.kind.bytes)
    if not leaves_stamps(ctx.unit.observed):
        return whole
    full = ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(sums.mask), "-1")
    return ctx.scalar.conjunction([whole, full, SumStamps(ctx, sums.op).may_be_left()])


def _are_apart(ctx: Context, sums: Sums) -> str:
    """i1: some lanes are on, and not all add to one word, as the first two tell or, where one of these is off, the last two."""
    bits = ctx.bits_of(sums.mask)
    addresses = ctx.inst(f"freeze <{LANES} x i64> {sums.addresses}")  # those of lanes that are off may be poison
    first, last = (_are_one(ctx, addresses, bits, lane) for lane in (0, LANES - 2))
    one = ctx.scalar.select(_are_on(ctx, bits, 0), "i1", first, last)
    return ctx.scalar.bin("and", "i1", ctx.any(sums.mask), ctx.scalar.bin("xor", "i1", one, "true"))


def _are_one(ctx: Context, addresses: str, bits: str, lane: int) -> str:
    """i1: a lane and the next one are on and have one address."""
    pair = (ctx.inst(f"extractelement <{LANES} x i64> {addresses}, i32 {lane + number}") for number in range(2))
    return ctx.scalar.bin("and", "i1", ctx.scalar.icmp("eq", "i64", *pair), _are_on(ctx, bits, lane))


def _are_on(ctx: Context, bits: str, lane: int) -> str:
    both = str(3 << lane)
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.scalar.bin("and", f"i{LANES}", bits, both), both)


def _add(ctx: Context, sums: Sums) -> list[str]:
    """What lanes add that are off goes to waste."""
    size = sums.kind.bytes
    beside = _stamp(ctx, sums) if leaves_stamps(ctx.unit.observed) else None
    end = ctx.splat("i32", ctx.scalar.cast("trunc", "i64", _end(ctx, sums.kind), "i32"))
    waste = ctx.vector.bin("add", "i32", end, vector_literal("i32", range(0, LANES * size, size)))
    offsets = ctx.vector.cast("trunc", "i64", _offsets(ctx, sums.addresses), "i32")
    places = ctx.vector.select(sums.mask, "i32", offsets, waste)
    updates.loop(ctx, places, _field(ctx, "twin"), sums.op.mods["op"], sums.kind, sums.operand, beside)
    return []


def _stamp(ctx: Context, sums: Sums) -> updates.Beside:
    """What leaves the stamp of a lane beside its word."""
    size = sums.kind.bytes
    return SumStamps(ctx, sums.op).leaving(_field(ctx, "stamps", size // 8), STAMP_BYTES // size)


def settle(ctx: Context, found: Access) -> None:
    """Before a load or store that may be to memory of which there is a twin: what the worker has added to that comes there first,
    if so, and the worker goes on without a twin."""
    if ctx.strays is None or found.op not in ctx.strays:
        return

    def ask() -> list[str]:
        ctx.call("void", "pe_twin_settle", ("ptr", "%w"), attributes="cold")
        return []

    ctx.when(_strays(ctx, found), ask, None, [], likely=False)


def _strays(ctx: Context, found: Access) -> str:
    """i1: the access touches memory of the twin. Of a pattern, lanes that are off may make it so."""
    first, bytes = _field(ctx, "first"), _field(ctx, "bytes")
    if found.shape is None:
        start = ctx.scalar.bin("sub", "i64", first, str(found.size - 1))
        room = ctx.scalar.bin("add", "i64", bytes, str(found.size - 1))
        apart = outside(ctx, vector_addresses(ctx, found), start, room, 0)
        inside = ctx.scalar.bin("and", f"i{LANES}", ctx.bits_of(found.mask), ctx.scalar.bin("xor", f"i{LANES}", apart, "-1"))
        return ctx.scalar.icmp("ne", f"i{LANES}", inside, "0")
    low, high = found.shape.spread
    span = high - low + found.size - 1
    last = ctx.scalar.bin("add", "i64", found.base, str(low + span))
    room = ctx.scalar.bin("add", "i64", bytes, str(span))
    inside = ctx.scalar.icmp("ult", "i64", ctx.scalar.bin("sub", "i64", last, first), room)
    return ctx.scalar.bin("or", "i1", inside, ctx.wrapped()) if found.shape.widenings else inside
