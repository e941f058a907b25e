"""Lines of the cache that lanes hold: in a loop in which each lane walks along a row of its own, a trip takes a part of the line
at which the lane is, and later trips take the rest.

Rows are often a large power of two apart, so that the lines of all lanes belong to a few sets of the cache, which do not hold
them until the next trip.  Where all lanes are at the beginning of a line, a trip copies the lines, and the trips that follow
take their parts from the copy.
"""

from __future__ import annotations

from ptxemu.analysis.walks import Walk
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Reg
from ptxemu.lower.core.access import Access, address_of, outside_memory, pointer_of
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.known import Lines
from ptxemu.lower.core.prefetch import LINE
from ptxemu.lower.core.telling import untold_range
from ptxemu.lower.memory import patterns

PART = 16
"""Bytes that are taken of a line at once."""


def begin(ctx: Context, walk: Walk) -> dict[Reg, Lines]:
    """Before a loop: no lines are held. Those that may be, by the registers that hold where lanes are."""
    found = {}
    for reg, step in walk.steps.items():
        if step % PART == 0 and LINE % step == 0:
            found[reg] = lines = Lines(ctx.alloca("i64"), ctx.alloca("i64"), ctx.alloca(f"[{LANES * LINE} x i8]"))
            ctx.stmt(f"store i64 0, ptr {lines.bytes}, align 8")
    return found


def _lines(ctx: Context, found: Access) -> Lines | None:
    address = found.address
    return ctx.held.get(address.base) if isinstance(address, Addr) and isinstance(address.base, Reg) else None


def held(ctx: Context, found: Access, addresses: str) -> str | None:
    """i1: all lanes are on, and hold what is at their addresses, if need be from now on. None where lanes hold no lines."""
    lines = _lines(ctx, found)
    if lines is None:
        return None
    first = address_of(ctx, addresses, 0)
    bytes = ctx.inst(f"load i64, ptr {lines.bytes}, align 8")
    full = patterns.full(ctx, found.mask)
    there = ctx.scalar.bin("and", "i1", full, ctx.scalar.icmp("ult", "i64", _offset(ctx, lines, first), bytes))

    def take() -> list[str]:
        ready = ctx.scalar.bin("and", "i1", full, _are_there(ctx, found, addresses))

        def copy() -> list[str]:
            _copy(ctx, lines, addresses)
            ctx.stmt(f"store i64 {first}, ptr {lines.start}, align 8")
            ctx.stmt(f"store i64 {LINE - PART + 1}, ptr {lines.bytes}, align 8")
            return []

        ctx.when(ready, copy, None, [], likely=True)
        return [ready]

    return ctx.when(there, lambda: ["true"], take, ["i1"], likely=True)[0]


def _are_there(ctx: Context, found: Access, addresses: str) -> str:
    """i1: lines that are in memory begin at all addresses, and nobody need be told of them."""
    return ctx.scalar.icmp("eq", f"i{LANES}", outside_memory(ctx, addresses, LINE, untold_range(ctx, found.op)), "0")


def part(ctx: Context, found: Access, addresses: str) -> str:
    """A pointer to what the first lane holds of what is at its address; that of the next lane is a line behind. All have gone on
    by as much since they hold it."""
    lines = _lines(ctx, found)
    assert lines is not None
    return ctx.inst(f"getelementptr i8, ptr {lines.copy}, i64 {_offset(ctx, lines, address_of(ctx, addresses, 0))}")


def of_lane(ctx: Context, first: str, lane: int) -> str:
    """That of a lane, from that of the first."""
    return ctx.inst(f"getelementptr i8, ptr {first}, i64 {lane * LINE}")


def _offset(ctx: Context, lines: Lines, first: str) -> str:
    """How far the first lane is in its line."""
    return ctx.scalar.bin("sub", "i64", first, ctx.inst(f"load i64, ptr {lines.start}, align 8"))


def _copy(ctx: Context, lines: Lines, addresses: str) -> None:
    line = f"<{LINE} x i8>"
    for lane in range(LANES):
        whole = ctx.inst(f"load {line}, ptr {pointer_of(ctx, addresses, lane)}, align {LINE}")
        ctx.stmt(f"store {line} {whole}, ptr {of_lane(ctx, lines.copy, lane)}, align {LINE}")
