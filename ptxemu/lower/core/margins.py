"""Patterns of shared memory that go beyond its ends in lanes that are off, as where a block has fewer threads than a warp, or
leaves out the border of a tile.

The memory has margins that nobody else has (PE_WINDOW_MARGIN). Vector instructions may read there, and write what they have read.
"""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.access import WINDOWS, Span, is_below
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.literals import offsets_literal

FARTHEST = lib.PE_WINDOW_MARGIN // 2
"""Bytes from the first lane to the last one, and as many from there to what vector instructions access."""


def serve(space: str, lanes: Shape) -> bool:
    """Whether lanes that are off are in a margin if others are in memory."""
    first, last = lanes.spread
    return space == "shared" and last - first < FARTHEST


def hold_others(ctx: Context, span: Span, lanes: Shape) -> str:
    """i1: all accesses of the lanes that are on are aligned and in memory, and those of the others there or in a margin.

    ``span``: from the first access of the first lane to the last one of the last; ``lanes``: how far these are apart.
    """
    (low, high), (first, last) = span.shape.spread, lanes.spread
    start = ctx.scalar.bin("add", "i64", span.base, str(low)) if low else span.base
    room = ctx.scalar.intrinsic("usub.sat", "i64", ctx.field(WINDOWS["shared"]), str(high - low - (last - first) + span.size - 1))
    good = [_is_near(ctx, start, span.size), _are_in_memory(ctx, start, [offset - first for offset in lanes.offsets], room)]
    return ctx.scalar.conjunction([*good, *([ctx.scalar.bin("xor", "i1", ctx.wrapped(), "true")] if lanes.widenings else [])])


def _is_near(ctx: Context, start: str, size: int) -> str:
    """i1: an address is aligned, in memory or in a margin."""
    scalar = ctx.scalar
    both = scalar.bin("add", "i64", ctx.field(WINDOWS["shared"]), str(FARTHEST))
    limit = scalar.bin("lshr", "i64", both, str(size.bit_length() - 1))
    return is_below(ctx, "shared", scalar.bin("add", "i64", start, str(FARTHEST)), limit, size)


def _are_in_memory(ctx: Context, start: str, distances: list[int], room: str) -> str:
    """i1: the lanes that are on are so far behind a start that it is less than ``room``."""
    scalar, bits = ctx.scalar, f"i{LANES}"
    first, limit = (ctx.splat("i32", scalar.cast("trunc", "i64", value, "i32")) for value in (start, room))
    places = ctx.vector.bin("add", "i32", first, offsets_literal(tuple(distances), "i32"))
    inside = ctx.bits_of(ctx.vector.icmp("ult", "i32", places, limit))
    on = ctx.bits_of(ctx.active)
    return scalar.icmp("eq", bits, scalar.bin("and", bits, inside, on), on)
