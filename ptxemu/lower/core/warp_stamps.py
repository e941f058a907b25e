"""What compiled code knows of the stamps of a warp, its ``pe_stamping`` (csrc/check/stamp.h)."""

from __future__ import annotations

from ptxemu._runtime import ffi
from ptxemu.lower.core.context import Context

STATE = ffi.typeof("pe_stamping")
FIELDS = dict(STATE.fields)


def state(ctx: Context, field: str) -> str:
    """A field of the warp's ``pe_stamping``."""
    offset = ctx.once("stamping.first", f"mul i32 {ctx.field('warpid')}, {ffi.sizeof(STATE)}")
    offset = ctx.once("stamping.offset", f"zext i32 {offset} to i64")
    state = ctx.once("stamping", f"add i64 {ctx.field('watch')}, {offset}")
    return ctx.inst(f"load i64, ptr {pointer(ctx, state, FIELDS[field].offset)}, align 8")


def pointer(ctx: Context, start: str, offset: int) -> str:
    return ctx.inst(f"inttoptr i64 {ctx.scalar.bin('add', 'i64', start, str(offset))} to ptr")
