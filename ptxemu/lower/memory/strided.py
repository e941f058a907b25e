"""Accesses of shared memory whose lanes lie one distance apart, farther than in a window (:mod:`ptxemu.lower.memory.windows`), as
on a column or a diagonal of a tile.

Where lanes are off, they would often go beyond the memory: only the first and the last lane that are on are tested. So are, in
the end, those of other patterns with equal steps, as at the border of an array whose neighbours are loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Reg
from ptxemu.lower.core.access import Access, Span, is_half, pattern_test
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import gather_near, scatter_near
from ptxemu.lower.core.literals import offsets_literal
from ptxemu.lower.core.runs import hull_of
from ptxemu.lower.memory.patterns import Made


def serves(ctx: Context, found: Access, step: int) -> bool:
    """Whether an access to one element of ``step`` bytes in each lane is one of these, and may be made so."""
    return _has_ends(ctx, found, step) and found.shape is not None and found.shape.strided(step)


def test(ctx: Context, found: Access) -> str:
    """i1: the lanes that are on are aligned and in range, in this access and in others off its base."""
    key, low, high = hull_of(ctx, found)
    return ctx.kept(f"ends of {key} in {found.mask}", partial(_ends_inside, ctx, found, (low, high)))


def at_border(ctx: Context, found: Sequence[Access], step: int, inside: Made, otherwise: Made, types: Sequence[str] = ()) -> Made:
    """``inside`` where the lanes that are on are aligned and in range, of accesses to one element of ``step`` bytes in each lane,
    at equal distances; ``otherwise`` of others, and where somebody is to be told of them."""
    if ctx.unit.observed or any(item.strong or not _has_ends(ctx, item, step) for item in found):
        return otherwise

    def choose() -> list[str]:
        test = ctx.scalar.conjunction([_ends_inside(ctx, item, (0, 0)) for item in found])
        return ctx.when(test, inside, otherwise, types, likely=True)

    return choose


def _has_ends(ctx: Context, found: Access, step: int) -> bool:
    """Whether lanes lie one distance apart, so that two of them tell of all, and gather elements of ``step`` bytes."""
    if found.space != "shared" or found.shape is None or found.safe or found.at_once or ctx.checking:
        return False
    return ctx.target.gathers_near(8 * step) and found.shape.stride != 0


def _ends_inside(ctx: Context, found: Access, hull: tuple[int, int]) -> str:
    assert found.shape is not None
    bits, lanes = f"i{LANES}", ctx.bits_of(found.mask)
    leading = ctx.scalar.intrinsic("ctlz", bits, lanes, extra="i1 false")
    ends = ctx.scalar.intrinsic("cttz", bits, lanes, extra="i1 false"), ctx.scalar.bin("sub", bits, str(LANES - 1), leading)
    of_all = Shape(hull, widenings=found.shape.widenings)
    spans = (Span(found.space, _of_lane(ctx, found, end), of_all, found.size) for end in ends)
    return ctx.scalar.conjunction([pattern_test(ctx, span) for span in spans])


def load(ctx: Context, found: Access, bits: str) -> str:
    """An element of each lane that is on."""
    pointer = ctx.inst(f"inttoptr i64 {_start(ctx, found)} to ptr")
    return gather_near(ctx, bits, pointer, _offsets(found), found.mask)


def store(ctx: Context, found: Access, bits: str, value: str) -> None:
    """The same of a value for each lane."""
    scatter_near(ctx, bits, _start(ctx, found), _offsets(found), value, found.mask)


def _offsets(found: Access) -> str:
    assert found.shape is not None
    return offsets_literal(found.shape.offsets, "i32")


def _base(ctx: Context, found: Access) -> str:
    """What offsets are relative to, which lies before the memory where the first lanes are off: sums of 32 bits wrap."""
    base = found.address.base
    if not isinstance(base, Reg) or base.type.bits != 32 or is_half(base, found.space):
        return found.base
    return ctx.scalar.cast("sext", "i32", ctx.scalar.cast("trunc", "i64", found.base, "i32"), "i64")


def _of_lane(ctx: Context, found: Access, lane: str) -> str:
    """The address of a lane, an i32."""
    assert found.shape is not None
    first = found.shape.offsets[0]
    distance = ctx.scalar.bin("mul", "i64", ctx.scalar.cast("sext", f"i{LANES}", lane, "i64"), str(found.shape.stride))
    offset = ctx.scalar.bin("add", "i64", distance, str(first)) if first else distance
    return ctx.scalar.bin("add", "i64", _base(ctx, found), offset)


def _start(ctx: Context, found: Access) -> str:
    """The host address that offsets are relative to."""
    return ctx.scalar.bin("add", "i64", _base(ctx, found), ctx.field("shared_base"))
