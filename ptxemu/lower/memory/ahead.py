"""Prefetching for the next CTA, and in loops with strides.

A CTA of 32x8 threads goes through a piece of each of eight rows, one of 16x16 through shorter ones of 16 rows, and the next CTA
through the pieces to the right of them.  Such pieces are too short for the processor to see a stream in any row.  So each warp
asks for what lies behind its own piece.

In a loop with strides, a warp asks for what it reads some trips later.  Where CTAs go through it abreast, what all warps read in
a trip is a stream.  But so much is executed between the loads of one warp and those of the next that the processor does not come
to these while it waits.  So a warp asks for what others read some turns later.
"""

from __future__ import annotations

from ptxemu.analysis.strides import TRIPS
from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.prefetch import LINE, NEAR, ask

TRIPS_AHEAD = 2 * TRIPS  # in a loop with strides: two turns of a warp
MOST = 256  # bytes behind which the processor has seen the stream


def prefetch(ctx: Context, key: str, pointer: str, bytes: int) -> None:
    """Ask for as many bytes as the warp accesses from ``pointer`` on, behind them; once in a block for accesses of one ``key``.

    In wider blocks the processor sees the stream, and where warps go along rows. In loops it is not known what comes next but in
    those with strides, where it is for a later trip or warp.
    """
    if bytes > MOST or ctx.along_rows or (ctx.in_loop and not (ctx.abreast or ctx.in_strides or ctx.by_trips)):
        return

    def behind() -> list[str]:
        lines = range(bytes, 2 * bytes, LINE)
        ask(ctx, pointer, lines if len(lines) > 1 else [bytes, 2 * bytes - 1])  # one piece may be in two lines
        return []

    def emit() -> str:
        if ctx.abreast:
            if key in ctx.sure.steps and bytes > LINE:
                ask(ctx, _of_later_warp(ctx, key, pointer, bytes), range(0, bytes, LINE))
        elif ctx.in_strides:
            ask(ctx, _later(ctx, key, pointer), range(0, bytes, LINE), NEAR)
        elif ctx.by_trips:
            ask(ctx, _next_trip(ctx, pointer), range(0, bytes, LINE))
        else:
            ctx.when(_narrow(ctx), behind, None, [])
        return "done"

    ctx.kept(f"ahead {key}", emit)


def _of_later_warp(ctx: Context, key: str, pointer: str, bytes: int) -> str:
    """What a later warp reads in this trip, or in its next turn, if that comes first. Warps read side by side."""
    assert ctx.abreast is not None
    warps, trips = ctx.abreast
    across = ctx.scalar.bin("mul", "i64", warps, str(bytes))
    onward = ctx.scalar.bin("mul", "i64", trips, ctx.sure.steps[key])
    return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {ctx.scalar.bin('add', 'i64', across, onward)}")


def _later(ctx: Context, key: str, pointer: str) -> str:
    """Where a pointer will be some trips later: as it is known to go on, or as it has from the trip before to this one."""
    if key in ctx.sure.steps:
        distance = ctx.scalar.bin("mul", "i64", ctx.sure.steps[key], str(TRIPS_AHEAD))
        return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {distance}")
    last, far = ctx.alloca("i64"), ctx.alloca("i64")
    ctx.prologue.append(f"  store i64 0, ptr {last}, align 8")
    ctx.at_entry(f"store i64 0, ptr {far}, align 8")
    at = ctx.inst(f"ptrtoint ptr {pointer} to i64")
    before = ctx.inst(f"load i64, ptr {last}, align 8")
    ctx.stmt(f"store i64 {at}, ptr {last}, align 8")
    step = ctx.scalar.bin("mul", "i64", ctx.scalar.bin("sub", "i64", at, before), str(TRIPS_AHEAD))
    first = ctx.scalar.icmp("eq", "i64", before, "0")  # since the turn of the warp began: as far as that before it has gone
    ahead = ctx.scalar.select(first, "i64", ctx.inst(f"load i64, ptr {far}, align 8"), step)
    ctx.stmt(f"store i64 {ahead}, ptr {far}, align 8")
    return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {ahead}")


def _next_trip(ctx: Context, pointer: str) -> str:
    """Where a pointer will be in the next trip, if it goes on as that of the first warp has from the trip before to this one."""
    last, step = ctx.alloca("i64"), ctx.alloca("i64")
    for slot in (last, step):
        ctx.at_entry(f"store i64 0, ptr {slot}, align 8")
    at = ctx.inst(f"ptrtoint ptr {pointer} to i64")

    def measure() -> list[str]:
        before = ctx.inst(f"load i64, ptr {last}, align 8")
        begun = ctx.scalar.icmp("ne", "i64", before, "0")
        distance = ctx.scalar.select(begun, "i64", ctx.scalar.bin("sub", "i64", at, before), "0")
        ctx.stmt(f"store i64 {at}, ptr {last}, align 8")
        ctx.stmt(f"store i64 {distance}, ptr {step}, align 8")
        return []

    ctx.when(ctx.inst(f"icmp eq ptr %w, {ctx.any_warp}"), measure, None, [])
    return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {ctx.inst(f'load i64, ptr {step}, align 8')}")


def _narrow(ctx: Context) -> str:
    """i1: the rows of the block are no longer than a warp."""
    return ctx.once("narrow", f"icmp ule i32 {ctx.field('ntid[0]')}, {LANES}")
