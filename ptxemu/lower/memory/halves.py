"""Consecutive elements of half a warp, of which the other half is off, in blocks of one warp and where masks are slow.

So it is in blocks of 16 threads, and where a tile is as wide as half a warp and each half does something else.  In larger blocks
it is rare, and code for it would only be in the way of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.ir.block_shape import LANES, ONE_WARP, kind_of
from ptxemu.lower.core.context import Context

HALF = LANES // 2
LOW = (1 << HALF) - 1
HIGH = LOW << HALF


def serves(ctx: Context, count: int, rows: int) -> bool:
    """Whether there is code for half a warp, for ``count`` elements of a lane in so many rows: one, or one for each half."""
    return kind_of(ctx.uniformity.variant) == ONE_WARP and not ctx.target.avx512 and count == 1 and rows <= 2


def is_half(ctx: Context, mask: str) -> str:
    """i1: all lanes of one half are on, and none of the other one."""
    bits = ctx.bits_of(mask)
    low, high = (ctx.scalar.icmp("eq", f"i{LANES}", bits, str(half)) for half in (LOW, HIGH))
    return ctx.scalar.bin("or", "i1", low, high)


def load(ctx: Context, bits: str, rows: Sequence[str], mask: str) -> list[str]:
    """An element for each lane of the half that is on; the others get anything."""
    half = f"<{HALF} x {bits}>"
    value = ctx.inst(f"load {half}, ptr {_pointer(ctx, bits, rows, mask)}, align {int(bits[1:]) // 8}")
    lanes = ", ".join(f"i32 {lane % HALF}" for lane in range(LANES))
    return [ctx.inst(f"shufflevector {half} {value}, {half} poison, <{LANES} x i32> <{lanes}>")]


def store(ctx: Context, bits: str, value: str, rows: Sequence[str], mask: str) -> list[str]:
    """An element of each lane of the half that is on."""
    whole, half = f"<{LANES} x {bits}>", f"<{HALF} x {bits}>"
    low, high = (
        ctx.inst(f"shufflevector {whole} {value}, {whole} poison, <{HALF} x i32> <{_numbers(first)}>") for first in (0, HALF)
    )
    own = ctx.inst(f"select i1 {_is_high(ctx, mask)}, {half} {high}, {half} {low}")
    ctx.stmt(f"store {half} {own}, ptr {_pointer(ctx, bits, rows, mask)}, align {int(bits[1:]) // 8}")
    return []


def _is_high(ctx: Context, mask: str) -> str:
    return ctx.scalar.icmp("ne", f"i{LANES}", ctx.bits_of(mask), str(LOW))


def _pointer(ctx: Context, bits: str, rows: Sequence[str], mask: str) -> str:
    """Where the elements of the half begin: with two rows, each half has its own."""
    high = rows[1] if len(rows) > 1 else ctx.inst(f"getelementptr i8, ptr {rows[0]}, i64 {HALF * int(bits[1:]) // 8}")
    return ctx.inst(f"select i1 {_is_high(ctx, mask)}, ptr {high}, ptr {rows[0]}")


def _numbers(first: int) -> str:
    return ", ".join(f"i32 {lane}" for lane in range(first, first + HALF))
