"""Varying addresses that are expected to form a few runs (:mod:`ptxemu.analysis.runs`): where these start; do they?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from ptxemu.analysis.runs import Runs, runs_of
from ptxemu.analysis.shape import MAX_OFFSET, Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Imm, Op, Reg
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
    return ctx.expected.of(found.address, found.size)


class Lanes(Struct, frozen=True):
    """Varying addresses: a vector, empty where it is not asked for, plus what lanes share, scalars and a number, all of one type.

    ``key``: what accesses off the same lanes have in common; ``moved``: the op that knows how they lie, if a loop moves them on.
    """

    key: str
    kind: str
    vector: str
    shared: list[str] = []
    offset: int = 0
    moved: Op | None = None

    def address(self, ctx: Context, lane: str, behind: int = 0) -> str:
        """i64: the address that belongs to a number of ``kind``, or one some bytes behind."""
        scalar, offset = ctx.scalar, self.offset + behind
        for value in [*self.shared, *([str(offset)] if offset else [])]:
            lane = scalar.bin("add", self.kind, lane, value)
        return scalar.cast("zext", self.kind, lane, "i64")

    def lane(self, ctx: Context, lane: int) -> str:
        """What the vector has of a lane."""
        return ctx.kept(f"{lane} of {self.key}", lambda: _element(ctx, self.kind, self.vector, lane))

    def known(self, ctx: Context, name: str) -> str:
        """What ops before the loop have found out."""
        assert self.moved is not None
        kind = self.moved.type_of(name)
        assert kind is not None
        return ctx.scalar_of(self.moved[name], kind)


def _element(ctx: Context, kind: str, vector: str, lane: int) -> str:
    return ctx.inst(f"extractelement {ctx.vector.ty(kind)} {vector}, i64 {lane}")


def _lanes(ctx: Context, found: Access, runs: Runs) -> Lanes:
    base, offset = found.address.base, found.address.offset
    if not isinstance(base, Reg) or base.type.bits != B64.bits:
        return Lanes(found.narrow, "i32", found.narrow) if found.narrow else Lanes(found.base, "i64", found.base)
    start, added = _apart(ctx, base)
    shared = [ctx.scalar_of(operand, B64) for operand in added]
    moved = ctx.expected.moved(start)
    if moved is not None and runs == Runs(LANES, _distance(moved)) and all(map(ctx.is_there, moved.srcs)):
        return Lanes(f"{id(start)}", "i64", "", [*shared, ctx.scalar_of(moved["by"], B64)], offset, moved)
    return Lanes(f"{id(start)}", "i64", ctx.vector_of(start, B64), shared, offset)


def _apart(ctx: Context, address: Reg) -> tuple[Reg, list[Reg | Imm]]:
    """A varying address as another one, to which operands that all lanes share are added, as far as code can read these here."""
    added: list[Reg | Imm] = []
    while (found := ctx.expected.apart(address)) is not None and all(map(ctx.is_there, found)):
        address = found[0]
        added.append(found[1])
    return address, added


def _distance(moved: Op) -> int:
    """How far apart the lanes are expected of which an op knows."""
    distance = moved["step"]
    assert isinstance(distance, Imm)
    return distance.bits


def first_addresses(ctx: Context, found: Access, runs: Runs) -> list[str]:
    """Of varying addresses, those of the first lane of each group, as scalars: as far as they follow from that in the middle,
    which bounds concern last."""
    if found.grouped:
        return group_addresses(ctx, found.address, found.space)
    base, middle = _lanes(ctx, found, runs), runs.width // 2
    if base.moved is not None:
        return [base.address(ctx, base.known(ctx, "middle"), -middle * runs.step)]
    return [base.address(ctx, base.lane(ctx, first + middle), -middle * runs.step) for first in runs.firsts]


def as_expected(ctx: Context, found: Access, runs: Runs, starts: list[str], all_lanes: bool) -> str:
    """i1: varying addresses form the runs, in range, in the lanes that are on; or in all, which must be on."""
    bits, on = f"i{LANES}", ctx.bits_of(found.mask)
    matter = ctx.scalar.bin("and", bits, _with_the_middle(ctx, _lanes(ctx, found, runs), runs), on)
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


def _with_the_middle(ctx: Context, base: Lanes, runs: Runs) -> str:
    """i32: the lanes that are as far from the middle one of their group as they are to be."""
    if base.moved is not None:
        return base.known(ctx, "first")
    return ctx.kept(f"{runs} of {base.key}", lambda: in_step(ctx, base.kind, base.vector, runs))


def in_step(ctx: Context, kind: str, lanes: str, runs: Runs) -> str:
    """i32: the lanes whose number is as far from that of the middle one of their group as it is to be."""
    whole, middle = ctx.vector.ty(kind), runs.width // 2
    middles = ", ".join(f"i32 {lane // runs.width * runs.width + middle}" for lane in range(LANES))
    bases = ctx.inst(f"shufflevector {whole} {lanes}, {whole} poison, <{LANES} x i32> <{middles}>")
    steps = offsets_literal(tuple((lane % runs.width - middle) * runs.step for lane in range(LANES)), kind)
    wanted = ctx.vector.bin("add", kind, bases, steps) if runs.step else bases
    return ctx.bits_of(ctx.vector.icmp("eq", kind, lanes, wanted))


def line_start(ctx: Context, kind: str, lanes: str, first: str, step: int) -> str:
    """Where the first lane would be in the line of the first or the last one, that which is not among ``first``, an i32."""
    low, high = (_element(ctx, kind, lanes, lane) for lane in (0, LANES - 1))
    begins = ctx.scalar.cast("trunc", f"i{LANES}", first, "i1")
    return ctx.scalar.select(begins, kind, ctx.scalar.bin("sub", kind, high, str((LANES - 1) * step)), low)


def in_line(ctx: Context, kind: str, lanes: str, start: str, step: int) -> str:
    """i32: the lanes that lie in a line which begins somewhere."""
    steps = offsets_literal(tuple(range(0, LANES * step, step)), kind)
    wanted = ctx.vector.bin("add", kind, ctx.splat(kind, start), steps)
    return ctx.bits_of(ctx.vector.icmp("eq", kind, lanes, wanted))


class Pieces(Struct, frozen=True):
    """The lanes, i32, that lie side by side with the one in the middle, and those that do with another one, if there are others;
    and where the first lane would be among these. ``moved``: a loop moves them on."""

    first: str
    second: str
    start: str
    moved: bool = False


def pieces_of(ctx: Context, found: Access, runs: Runs) -> Pieces:
    """The two pieces of one run: the first or the last lane is not with the middle one if any lane is not. Accesses off one base
    share what the first of them finds."""
    base = _lanes(ctx, found, runs)
    first = _with_the_middle(ctx, base, runs)
    if base.moved is not None:
        return Pieces(first, base.known(ctx, "others"), base.address(ctx, base.known(ctx, "start")), moved=True)
    bits, on = f"i{LANES}", ctx.bits_of(found.mask)
    other, begin = (f"{name} piece of {runs} of {base.key} in {found.mask}" for name in ("other", "start of the other"))
    if other not in ctx.known:
        whole = ctx.scalar.icmp("eq", bits, ctx.scalar.bin("and", bits, first, on), on)
        find = partial(_other_piece, ctx, base, runs, first)
        ctx.known[other], ctx.known[begin] = ctx.when(whole, lambda: ["0", "0"], find, [bits, base.kind], likely=True)
    return Pieces(first, ctx.known[other], base.address(ctx, ctx.known[begin]))


def _other_piece(ctx: Context, base: Lanes, runs: Runs, first: str) -> list[str]:
    start = line_start(ctx, base.kind, base.vector, first, runs.step)
    return [in_line(ctx, base.kind, base.vector, start, runs.step), start]


def rows_within(ctx: Context, starts: Sequence[str], size: int, kept: Range) -> str:
    """i1: rows of ``size`` bytes at these addresses lie in a range."""
    scalar, good = ctx.scalar, "true"
    room = scalar.intrinsic("usub.sat", "i64", kept.size, str(size - 1))
    for start in starts:
        offset = scalar.bin("sub", "i64", start, kept.first)
        good = scalar.bin("and", "i1", good, scalar.icmp("ult", "i64", offset, room))
    return good
