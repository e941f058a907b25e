"""Asking for lines of the cache; what is not in memory is not asked for."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.lower.core.context import Context

LINE = 64  # bytes
NEAREST, NEAR = 3, 2  # caches, as LLVM numbers them. More can be under way to the second one than to the first


def ask(ctx: Context, pointer: str, offsets: Iterable[int] = (0,), near: int = NEAREST) -> None:
    """For the lines some bytes behind a pointer."""
    ctx.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    for offset in offsets:
        at = ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer
        ctx.stmt(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 {near}, i32 1)")
