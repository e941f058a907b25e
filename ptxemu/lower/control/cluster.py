"""Clusters: addresses in the shared memory of other CTAs, and the barrier of all threads in two halves."""

from __future__ import annotations

from ptxemu.ir.distributed import FIRST, NO_ADDRESS, OFFSETS
from ptxemu.ir.ops import Op, Reg, SymRef
from ptxemu.ir.types import B32, B64, U32
from ptxemu.lower.core.access import access, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.distributed import Windows
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.special import symbol_value


def source_address(ctx: Context, op: Op, vector: bool) -> str:
    """The operand ``a`` as i64; 32-bit sources are addresses in a window."""
    source = op["a"]
    if isinstance(source, SymRef):
        value = symbol_value(ctx, source)
        return ctx.splat("i64", value) if vector else value
    kind = B32 if isinstance(source, Reg) and source.type.bits == 32 else B64
    value = ctx.vector_of(source, kind) if vector else ctx.scalar_of(source, kind)
    return (ctx.vector if vector else ctx.scalar).cast("zext", kind.llvm, value, "i64")


def _in_window(op: Op) -> bool:
    """Whether the address is one of ``.shared::cluster``; those of 32 bits are."""
    return "space" in op.mods or op.type() is U32


@effect("mapa")
def mapa(ctx: Context, op: Op) -> None:
    """mapa: the same place in the shared memory of another CTA; an access faults if there is no such CTA.

    A cluster of one CTA has addresses in its own window alone.
    """
    dst = op["d"]
    if dst is None:
        return
    vector = not ctx.is_scalar(dst)
    windows, kind = Windows(ctx, vector), op.type()
    e, address = windows.e, source_address(ctx, op, vector)
    rank = e.cast("zext", "i32", ctx.vector_of(op["rank"], U32) if vector else ctx.scalar_of(op["rank"], U32), "i64")
    if not _in_window(op):
        ctx.define(op, 0, windows.moved(address, rank))
        return
    lone = e.icmp("eq", "i64", windows.count(), e.int(64, 1))
    ranked = e.bin("add", "i64", rank, e.int(64, FIRST))
    named = windows.named(ranked, e.bin("and", "i64", address, e.int(64, OFFSETS)))
    own = e.icmp("eq", "i64", windows.rank_field(address), e.int(64, 0))
    held = e.bin("or", "i1", own, e.icmp("ult", "i64", windows.rank_in(address), windows.count()))
    good = e.bin("and", "i1", held, e.icmp("ult", "i64", rank, windows.count()))
    value = e.select(good, "i64", e.select(lone, "i64", address, named), e.int(64, NO_ADDRESS))
    ctx.define(op, 0, e.cast("trunc", "i64", value, f"i{kind.bits}"))


@effect("getctarank")
def getctarank(ctx: Context, op: Op) -> None:
    """getctarank: the rank of the CTA whose shared memory has the address; the thread's own for addresses elsewhere."""
    dst = op["d"]
    if dst is None:
        return
    vector = not ctx.is_scalar(dst)
    windows = Windows(ctx, vector)
    e, address = windows.e, source_address(ctx, op, vector)
    if _in_window(op):
        rank = windows.rank_in(address)
        foreign = e.icmp("ult", "i64", rank, windows.count())
    else:
        offset = windows.offset(address)
        foreign, rank = windows.holds(offset), windows.rank_of(offset)
    ctx.define(op, 0, e.cast("trunc", "i64", e.select(foreign, "i64", rank, windows.own_rank()), "i32"))


def _call(ctx: Context, op: Op, function: str, *arguments: tuple[str, str]) -> None:
    mask = ("i32", ctx.bits_of(ctx.mask_of(op)))
    ctx.call("void", function, ("ptr", "%w"), ("i32", ctx.position(op)), mask, *arguments)


@effect("cluster_arrive")
def cluster_arrive(ctx: Context, op: Op) -> None:
    """barrier.cluster.arrive (PTX ISA "barrier.cluster")."""
    _call(ctx, op, "pe_cluster_arrive", ("i32", str(int(op.mods.get("sem") == "relaxed"))))


@effect("cluster_wait")
def cluster_wait(ctx: Context, op: Op) -> None:
    """barrier.cluster.wait: until all threads of the cluster that have not exited have arrived."""
    _call(ctx, op, "pe_cluster_wait")


@effect("cluster_cancel", size=60)
def cluster_cancel(ctx: Context, op: Op) -> None:
    """clusterlaunchcontrol.try_cancel: at once; csrc/sync/cancel.c has the semantics."""
    mask = ctx.mask_of(op)
    target, told = access(ctx, op, "a", mask), access(ctx, op, "m", mask)
    lanes = [("ptr", ctx.spill("i64", vector_addresses(ctx, found))) for found in (target, told)]
    site = ctx.site(op, "pe_cancel_site", space=target.space_code, multicast=int("multicast" in op.mods))
    ctx.call("void", "pe_cluster_cancel", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(target.mask)), *lanes)


@elementwise("cancel_query")
def cancel_query(e: Emitter, op: Op, response: str) -> str | tuple[str, ...]:
    """clusterlaunchcontrol.query_cancel: the words of a response are x, y and z, and whether there was a cluster."""
    words = [e.bin("lshr", "i128", response, e.splat("i128", str(32 * index))) for index in range(4)]
    *axes, cancelled = (e.cast("trunc", "i128", word, "i32") for word in words)
    if "is_canceled" in op.mods:
        return e.icmp("ne", "i32", cancelled, e.int(32, 0))
    if "axis" in op.mods:
        return axes["xyz".index(op.mods["axis"][-1])]
    return (*axes, cancelled)
