"""Varying addresses that are expected to form a few runs (:mod:`ptxemu.analysis.runs`): where these start; do they?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from ptxemu.analysis.runs import Runs, runs_of
from ptxemu.analysis.shape import MAX_OFFSET, Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Op, Reg
from ptxemu.ir.types import B64
from ptxemu.lower.core.access import Access, Range, Span, group_addresses, pattern_test
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.literals import offsets_literal


def expected(ctx: Context, found: Access) -> Runs | None:
    """The runs that varying addresses are expected to form."""
    base = found.address.base
    if found.space == "local" or found.strong or ctx.checking or not isinstance(base, Reg):
        return None
    if found.grouped:
        width = LANES // len(ctx.firsts)
        runs = runs_of(ctx.groups[base].offsets, found.size, width)
        return runs if runs is not None and runs.width == width else None
    return ctx.runs(found.address, found.size)


def _base(ctx: Context, found: Access) -> tuple[str, str, str, int]:
    """Varying addresses as lanes of an LLVM type plus a constant, behind a key for what accesses off the same lanes share."""
    base = found.address.base
    if isinstance(base, Reg) and base.type.bits == B64.bits:
        return f"{id(base)}", "i64", ctx.vector_of(base, B64), found.address.offset
    return (found.narrow, "i32", found.narrow, 0) if found.narrow else (found.base, "i64", found.base, 0)


def first_addresses(ctx: Context, found: Access, runs: Runs) -> list[str]:
    """Of varying addresses, those of the first lane of each group, as scalars: as far as they follow from that in the middle,
    which bounds concern last."""
    if found.grouped:
        return group_addresses(ctx, found.address, found.space)
    key, kind, lanes, offset = _base(ctx, found)
    middle = runs.width // 2
    places = (f"extractelement {ctx.vector.ty(kind)} {lanes}, i64 {first + middle}" for first in runs.firsts)
    starts = [ctx.kept(f"{place} of {key}", partial(ctx.inst, place)) for place in places]
    offset -= middle * runs.step
    moved = [ctx.scalar.bin("add", kind, start, str(offset)) if offset else start for start in starts]
    return [ctx.scalar.cast("zext", kind, start, "i64") for start in moved]


def as_expected(ctx: Context, found: Access, runs: Runs, starts: list[str], all_lanes: bool) -> str:
    """i1: varying addresses form the runs, in range, in the lanes that are on; or in all, which must be on."""
    bits, on = f"i{LANES}", ctx.bits_of(found.mask)
    key, kind, lanes, _ = _base(ctx, found)
    same = ctx.kept(f"{runs} of {key}", lambda: _in_step(ctx, kind, lanes, runs))
    matter = ctx.scalar.bin("and", bits, same, on)
    good = ctx.scalar.icmp("eq", bits, matter, "-1" if all_lanes else on)
    return ctx.scalar.conjunction([good, *inside(ctx, found, runs, starts)])


def in_groups(ctx: Context, found: Access, runs: Runs, starts: list[str], all_lanes: bool) -> str:
    """i1: addresses that are kept by groups are exact and in range, and lanes are on: all, or where a group has one place, one of
    each."""
    good, bits = [_hull_inside(ctx, found, runs, starts)], f"i{LANES}"
    if all_lanes:
        good.append(ctx.scalar.icmp("eq", bits, ctx.bits_of(found.mask), "-1"))
    elif not runs.step and found.space != "shared":
        whole = (1 << runs.width) - 1
        own = (ctx.scalar.bin("and", bits, ctx.bits_of(found.mask), str(whole << first)) for first in runs.firsts)
        good += [ctx.scalar.icmp("ne", bits, lanes, "0") for lanes in own]
    return ctx.scalar.conjunction(good)


def groups_within(ctx: Context, found: Access, runs: Runs, kept: Range | None) -> str:
    """i1: addresses that are kept by groups are exact, and lie in a range, or in the window of their space."""
    assert isinstance(found.address.base, Reg)
    hull = Shape((0, (runs.width - 1) * runs.step), widenings=ctx.groups[found.address.base].widenings)
    spans = [Span(found.space, start, hull, found.size) for start in first_addresses(ctx, found, runs)]
    return ctx.scalar.conjunction([pattern_test(ctx, span, kept) for span in spans])


HullKey = tuple[Reg, str, int, int]  # base, space, size and remainder of the offset


def hulls_of(ctx: Context, ops: Iterable[Op]) -> dict[HullKey, tuple[int, int]]:
    """The least and the greatest offset of accesses off each base that is kept by groups, or whose lanes lie one distance apart:
    the first of them tests all."""
    found: dict[HullKey, tuple[int, int]] = {}
    for op in ops:
        key = _key(ctx, op) if len(op.effects.accesses) == 1 else None
        if key is None:
            continue
        offset = op.access.address.offset
        low, high = found.get(key, (offset, offset))
        if max(high, offset) - min(low, offset) <= MAX_OFFSET:
            found[key] = min(low, offset), max(high, offset)
    return found


def _key(ctx: Context, op: Op) -> HullKey | None:
    """What accesses have in common that one test covers."""
    address, space, size = op.access.address, op.access.space, op.access.bytes
    if not isinstance(address, Addr) or not isinstance(address.base, Reg) or not size:
        return None
    shape = ctx.shape(address.base)
    if not ctx.is_grouped(address.base) and (space != "shared" or shape is None or not shape.strided(size)):
        return None
    return address.base, space, size, address.offset % size


def hull_of(ctx: Context, found: Access) -> tuple[HullKey, int, int]:
    """Of an access that has one: its key, and how far others begin from it, at least and at most."""
    key, offset = _key(ctx, found.op), found.address.offset
    assert key is not None
    low, high = ctx.hulls.get(key, (offset, offset))
    return key, low - offset, high - offset


def _hull_inside(ctx: Context, found: Access, runs: Runs, starts: list[str]) -> str:
    """i1: the addresses of an access, and of others off its base, are exact and in range."""
    key, low, high = hull_of(ctx, found)
    hull = Shape((low, high + (runs.width - 1) * runs.step), widenings=ctx.groups[key[0]].widenings)
    spans = [Span(found.space, start, hull, found.size) for start in starts]
    return ctx.kept(f"hull of {key}", lambda: ctx.scalar.conjunction([pattern_test(ctx, span) for span in spans]))


def inside(ctx: Context, found: Access, runs: Runs, starts: list[str]) -> Iterator[str]:
    """i1 for each run: it is aligned and in range."""
    group = Shape(tuple(lane % runs.width * runs.step for lane in range(LANES)))
    return (pattern_test(ctx, Span(found.space, start, group, found.size)) for start in starts)


def _in_step(ctx: Context, kind: str, addresses: str, runs: Runs) -> str:
    """i32: the lanes whose address is as far from that of the middle one of their group as it is to be."""
    whole, middle = ctx.vector.ty(kind), runs.width // 2
    middles = ", ".join(f"i32 {lane // runs.width * runs.width + middle}" for lane in range(LANES))
    bases = ctx.inst(f"shufflevector {whole} {addresses}, {whole} poison, <{LANES} x i32> <{middles}>")
    steps = offsets_literal(tuple((lane % runs.width - middle) * runs.step for lane in range(LANES)), kind)
    wanted = ctx.vector.bin("add", kind, bases, steps) if runs.step else bases
    return ctx.bits_of(ctx.vector.icmp("eq", kind, addresses, wanted))


class Pieces(Struct, frozen=True):
    """The lanes, i32, that lie side by side with the one in the middle, and those that do with another one, if there are others;
    and where the first lane would be among these."""

    first: str
    second: str
    start: str


def pieces_of(ctx: Context, found: Access, runs: Runs) -> Pieces:
    """The two pieces of one run: the first or the last lane is not with the middle one if any lane is not. Accesses off one base
    share what the first of them finds."""
    key, kind, lanes, offset = _base(ctx, found)
    bits, on = f"i{LANES}", ctx.bits_of(found.mask)
    first = ctx.kept(f"{runs} of {key}", lambda: _in_step(ctx, kind, lanes, runs))
    other, begin = (f"{name} piece of {runs} of {key} in {found.mask}" for name in ("other", "start of the other"))
    if other not in ctx.known:
        whole = ctx.scalar.icmp("eq", bits, ctx.scalar.bin("and", bits, first, on), on)
        find = partial(_other_piece, ctx, kind, lanes, runs, first)
        ctx.known[other], ctx.known[begin] = ctx.when(whole, lambda: ["0", "0"], find, [bits, kind], likely=True)
    second, start = ctx.known[other], ctx.known[begin]
    moved = ctx.scalar.bin("add", kind, start, str(offset)) if offset else start
    return Pieces(first, second, ctx.scalar.cast("zext", kind, moved, "i64"))


def _other_piece(ctx: Context, kind: str, lanes: str, runs: Runs, first: str) -> list[str]:
    """The lanes that lie side by side with the first or the last one, which is not in the first piece; and where the first lane
    would be among them."""
    whole, end = ctx.vector.ty(kind), (LANES - 1) * runs.step
    ends = [ctx.inst(f"extractelement {whole} {lanes}, i64 {lane}") for lane in (0, LANES - 1)]
    begins = ctx.scalar.cast("trunc", f"i{LANES}", first, "i1")
    start = ctx.scalar.select(begins, kind, ctx.scalar.bin("sub", kind, ends[1], str(end)), ends[0])
    steps = offsets_literal(tuple(range(0, end + 1, runs.step)), kind)
    wanted = ctx.vector.bin("add", kind, ctx.splat(kind, start), steps)
    return [ctx.bits_of(ctx.vector.icmp("eq", kind, lanes, wanted)), start]


def rows_within(ctx: Context, starts: Sequence[str], size: int, kept: Range) -> str:
    """i1: rows of ``size`` bytes at these addresses lie in a range."""
    scalar, good = ctx.scalar, "true"
    room = scalar.intrinsic("usub.sat", "i64", kept.size, str(size - 1))
    for start in starts:
        offset = scalar.bin("sub", "i64", start, kept.first)
        good = scalar.bin("and", "i1", good, scalar.icmp("ult", "i64", offset, room))
    return good
