"""Accesses whose addresses form a pattern: by vector instructions if all of it is in memory, else lane by lane.

In device memory accesses off one register share a test of the place that it holds: what is less than 2 GiB from there is in
memory, too, or in the margins around it, which nobody can touch. Where all lanes are on and addresses are exact, one comparison
is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import tells_order
from ptxemu.ir.ops import Reg
from ptxemu.ir.types import B64
from ptxemu.lower.core.access import NOTED, Access, Range, arena_limit, is_below, pattern_test, scalar_base
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.telling import is_plain_read, untold_range

Made = Callable[[], list[str]]
"""Emits an access and returns the values loaded."""
FARTHEST = 1 << 30
"""Bytes from what a register holds to what is accessed, without what lanes are apart."""


class Ways(NamedTuple):
    """How vector instructions make an access if all lanes are on, and ``partly`` if some are; None: in the same way."""

    whole: Made
    partly: Made | None = None


def access(ctx: Context, found: Access, ways: Ways, lanes: Made, types: Sequence[str], all_lanes: bool) -> list[str]:
    """Values of some LLVM types. ``lanes`` makes it lane by lane, which is done where lanes are off, too, with ``all_lanes``."""
    needed = [] if found.safe else [_is_in_memory(ctx, found)]
    if all_lanes:
        needed.append(full(ctx, found.mask))
    ready = partial(by_lanes_on, ctx, found, ways, types)
    return ctx.when(ctx.scalar.conjunction(needed), ready, lanes, types, likely=True) if needed else ready()


def by_lanes_on(ctx: Context, found: Access, ways: Ways, types: Sequence[str]) -> list[str]:
    """An access to what is in memory. Masked accesses are slow even where the CPU has them, and masks mostly full."""
    return ctx.when(full(ctx, found.mask), ways.whole, ways.partly, types, likely=True) if ways.partly else ways.whole()


def full(ctx: Context, mask: str) -> str:
    """i1: every lane is on."""
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(mask), "-1")


def _is_in_memory(ctx: Context, found: Access) -> str:
    """i1: all of a pattern is, which is known of what need not be told."""
    if not found.admitted:
        return pattern_test(ctx, found.span)
    return ctx.when(found.admitted, lambda: ["true"], lambda: [pattern_test(ctx, found.span)], ["i1"], likely=True)[0]


def whole_test(ctx: Context, found: Access) -> str:
    """i1: all lanes are on, no address has wrapped, and the access is in device memory, by one comparison. Where accesses are
    told, nobody need be told of this one. "": there is no such test."""
    base, observed = found.address.base, ctx.unit.observed
    if found.space not in NOTED or found.safe or ctx.checking or not isinstance(base, Reg) or base.type.bits != B64.bits:
        return ""
    if tells_order(observed) and (observed == "all" or not is_plain_read(found)):
        return ""
    untold = untold_range(ctx, found.op)
    if untold is not None:
        return _untold(ctx, found, untold)
    return _anchored(ctx, found) if abs(found.address.offset) <= FARTHEST else ""


def _untold(ctx: Context, found: Access, untold: Range) -> str:
    within = Range(untold.first, ctx.scalar.select(_is_whole(ctx, found), "i64", untold.size, "0"))
    assert found.shape is not None
    return pattern_test(ctx, replace(found.span, shape=Shape(found.shape.offsets)), within)


def _anchored(ctx: Context, found: Access) -> str:
    """The place that the register holds is in memory, and the access aligned."""
    assert found.shape is not None and isinstance(found.address.base, Reg)
    rest, size = found.address.offset % found.size, found.size
    whole = _is_whole(ctx, found)
    limit = ctx.kept(f"limit of {size} if {whole}", lambda: ctx.scalar.select(whole, "i64", arena_limit(ctx, size), "0"))
    place = scalar_base(ctx, found.address.base, found.space)
    place = ctx.scalar.bin("add", "i64", place, str(rest)) if rest else place
    return ctx.kept(f"{place} below {limit}", lambda: is_below(ctx, found.space, place, limit, size))


def _is_whole(ctx: Context, found: Access) -> str:
    """i1: no lane is off, and no widening has wrapped that matters."""
    assert found.shape is not None
    corrections = found.shape.widenings

    def test() -> str:
        on = full(ctx, found.mask)
        return ctx.scalar.bin("and", "i1", on, ctx.scalar.bin("xor", "i1", ctx.wrapped(), "true")) if corrections else on

    return ctx.kept(f"whole {found.mask} {corrections}", test)
