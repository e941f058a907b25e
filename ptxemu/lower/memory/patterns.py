"""Accesses whose addresses form a pattern: by vector instructions if all of it is in memory, else lane by lane.

In device memory accesses off one register share a test of the place that it holds: what is less than 2 GiB from there is in
memory, too, or in the margins around it, which nobody can touch. Where all lanes are on and addresses are exact, one comparison
is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Reg
from ptxemu.ir.types import B64
from ptxemu.lower.core.access import NOTED, Access, arena_limit, is_below, pattern_test, scalar_base
from ptxemu.lower.core.context import Context

Made = Callable[[], list[str]]
"""Emits an access and returns the values loaded."""
FARTHEST = 1 << 30
"""Bytes from what a register holds to what is accessed, without what lanes are apart."""


class Ways(NamedTuple):
    """How vector instructions make an access if all lanes are on, and ``partly`` if some are; None: in the same way."""

    whole: Made
    partly: Made | None = None


def access(ctx: Context, found: Access, ways: Ways, lanes: Made, types: Sequence[str], *, all_lanes: bool) -> list[str]:
    """Values of some LLVM types. ``lanes`` makes it lane by lane, which is done where lanes are off, too, with ``all_lanes``."""
    if ways.partly is not None and _has_anchor(found):
        return ctx.when(
            _anchored(ctx, found), ways.whole, partial(_if_ready, ctx, found, ways.partly, lanes, types), types, likely=True
        )
    return _if_ready(ctx, found, partial(by_lanes_on, ctx, found, ways, types), lanes, types, all_lanes)


def by_lanes_on(ctx: Context, found: Access, ways: Ways, types: Sequence[str]) -> list[str]:
    """An access to what is in memory. Masked accesses are slow even where the CPU has them, and masks mostly full."""
    return ctx.when(full(ctx, found.mask), ways.whole, ways.partly, types, likely=True) if ways.partly else ways.whole()


def full(ctx: Context, mask: str) -> str:
    """i1: every lane is on."""
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(mask), "-1")


def _if_ready(ctx: Context, found: Access, ready: Made, lanes: Made, types: Sequence[str], all_lanes: bool = False) -> list[str]:
    """The access if it is in memory, and all lanes are on if they have to be."""
    needed = [] if found.safe else [_is_in_memory(ctx, found)]
    if all_lanes:
        needed.append(full(ctx, found.mask))
    return ctx.when(ctx.scalar.conjunction(needed), ready, lanes, types, likely=True) if needed else ready()


def _is_in_memory(ctx: Context, found: Access) -> str:
    """i1: all of a pattern is, which is known of what need not be told."""
    if not found.admitted:
        return pattern_test(ctx, found.span)
    return ctx.when(found.admitted, lambda: ["true"], lambda: [pattern_test(ctx, found.span)], ["i1"], likely=True)[0]


def _has_anchor(found: Access) -> bool:
    """Whether accesses off its register share a test."""
    base = found.address.base
    if found.space not in NOTED or found.safe or found.admitted or not isinstance(base, Reg):
        return False
    return base.type.bits == B64.bits and abs(found.address.offset) <= FARTHEST


def _anchored(ctx: Context, found: Access) -> str:
    """i1: the place that the register holds is in memory and the access aligned, all lanes are on and no address has wrapped."""
    assert found.shape is not None and isinstance(found.address.base, Reg)
    corrections, rest = found.shape.widenings, found.address.offset % found.size
    limit = ctx.kept(f"limit of {found.size} in {found.mask} {corrections}", partial(_limit_if_whole, ctx, found))
    place = scalar_base(ctx, found.address.base, found.space)
    place = ctx.scalar.bin("add", "i64", place, str(rest)) if rest else place
    return ctx.kept(f"{place} below {limit}", lambda: is_below(ctx, found.space, place, limit, found.size))


def _limit_if_whole(ctx: Context, found: Access) -> str:
    """The limit of places, in units of the size; 0 if a lane is off, or a widening has wrapped that matters."""
    assert found.shape is not None
    whole = full(ctx, found.mask)
    if found.shape.widenings:
        whole = ctx.scalar.bin("and", "i1", whole, ctx.scalar.bin("xor", "i1", ctx.wrapped(), "true"))
    return ctx.scalar.select(whole, "i64", arena_limit(ctx, found.size), "0")
