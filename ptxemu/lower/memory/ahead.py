"""Prefetching for the next CTA.

A CTA of 32x8 threads goes through a piece of each of eight rows, and the next one through the pieces to the right of them.  Such
pieces are too short for the processor to see a stream in any row.  So each warp asks for what lies behind its own piece.
"""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.context import Context

LINE = 64  # bytes of the cache
MOST = 256  # bytes behind which the processor has seen the stream


def prefetch(ctx: Context, key: str, pointer: str, bytes: int) -> None:
    """Ask for as many bytes as the warp accesses from ``pointer`` on, behind them; once in a block for accesses of one ``key``.

    In loops it is not known what comes next, and in wider blocks the processor sees the stream.
    """
    if ctx.in_loop or bytes > MOST:
        return

    def ask() -> list[str]:
        ctx.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for offset in range(bytes, 2 * bytes, LINE):
            at = ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {offset}")
            ctx.stmt(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")
        return []

    def emit() -> str:
        ctx.when(_narrow(ctx), ask, None, [])
        return "done"

    ctx.kept(f"ahead {key}", emit)


def _narrow(ctx: Context) -> str:
    """i1: the rows of the block are no longer than a warp."""
    return ctx.once("narrow", f"icmp ule i32 {ctx.field('ntid[0]')}, {LANES}")
