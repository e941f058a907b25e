"""Sums in a worker's own copy of the array that a kernel adds to, its *twin* (csrc/memory/twin.h).

The runtime makes it at the first sum, if it makes one. From then on code finds it through the record of the warp.
"""

from __future__ import annotations

from ptxemu._runtime import ffi
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import leaves_stamps
from ptxemu.ir.ops import Op, Operand
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import Access, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import outside
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


def _has_all(ctx: Context, kind: ScalarType, addresses: str) -> str:
    """i1: the twin has the words at the addresses of all lanes, on or off."""
    end = _field(ctx, "sums", kind.bytes // 8)
    return updates.are_words(ctx, "i64", _offsets(ctx, addresses), end, kind.bytes)


def add(ctx: Context, op: Op, kind: ScalarType, addresses: str, operand: Operand) -> None:
    """Add to the words at the addresses of all lanes, which the twin has, and leave their stamps, if code leaves such."""
    beside = _stamp(ctx, op, kind) if leaves_stamps(ctx.unit.observed) else None
    offsets = ctx.vector.cast("trunc", "i64", _offsets(ctx, addresses), "i32")
    updates.loop(ctx, offsets, _field(ctx, "twin"), op.mods["op"], kind, operand, beside)


def may_add(ctx: Context, op: Op, kind: ScalarType, addresses: str) -> str:
    """i1: that can be done."""
    whole = _has_all(ctx, kind, addresses)
    if not leaves_stamps(ctx.unit.observed):
        return whole
    return ctx.scalar.bin("and", "i1", whole, SumStamps(ctx, op).may_be_left())


def _stamp(ctx: Context, op: Op, kind: ScalarType) -> updates.Beside:
    """What leaves the stamp of a lane beside its word."""
    return SumStamps(ctx, op).leaving(_field(ctx, "stamps", kind.bytes // 8), STAMP_BYTES // kind.bytes)


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
