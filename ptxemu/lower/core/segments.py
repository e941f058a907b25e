"""Testing many accesses at once.

Address arithmetic like ``[%r1+64]``, ``[%r1+128]`` ... makes runs of accesses off a few base registers.  A *segment* is a run of
ops whose bases are known where it starts: one test for each base covers all its accesses.  If all tests pass, a version of the
segment without tests runs; else one in which the runtime checks each access by itself.

In a block that does no more than compute and access memory, what addresses are made of comes first, where it can.  Then one test
says that all lanes are on and all accesses in memory.  If it fails, as at the ends of arrays, each access is tested by itself.
The same test may say of indexes that bounds leave them as they are, so that addresses are patterns (assumptions.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ptxemu.analysis.assumed import Assumed
from ptxemu.analysis.shape import MAX_OFFSET, Shape
from ptxemu.ir.graph import reads
from ptxemu.ir.ops import Addr, Op, Operand, Reg
from ptxemu.isa import effects
from ptxemu.lower.core import margins
from ptxemu.lower.core.access import Span, pattern_test, scalar_base
from ptxemu.lower.core.assumptions import Assumptions, assumptions_of
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.reach import covers

LONGEST = 128  # ops of a segment
MOST = 512  # the same of one in which indexes are kept within bounds, which gains more
WORTH = 4  # tests that must be saved for the second version of the code to pay
KEPT = 2  # bases that are patterns if bounds leave indexes as they are, for this to be tested
BASES = 3  # off which a block must access memory to have one test: off one or two, accesses share tests as they are
NOTHING = Assumptions()
ShapeOf = Callable[[Operand], Shape | None]
Key = tuple[str, Reg]
Candidate = tuple[Key, Shape, int, int]
"""The base of an access, its shape, the constant offset and the size."""


class Group(Struct):
    """Accesses off one base: byte range [low, high) relative to it, and the largest access size."""

    low: int
    high: int
    size: int

    @property
    def start(self) -> int:
        """Not behind the first byte, and aligned exactly when the base is."""
        return self.low & -self.size

    def span(self, space: str, base: str, shape: Shape) -> Span:
        """All of it, from a base on that varies over the lanes as a shape does."""
        return Span(space, base, Shape((self.start, self.high - self.size), 0, None, shape.widenings), self.size)


class Segment(Struct):
    """``trusted``: the accesses that the tests of ``groups`` cover; ``full``: the version without tests is for all lanes only,
    and for what is ``assumed``."""

    ops: list[Op] = []
    groups: dict[Key, Group] = {}
    trusted: set[Op] = set()
    full: bool = False
    assumed: Assumptions = NOTHING

    @property
    def versioned(self) -> bool:
        return self.full or len(self.trusted) - len(self.groups) >= WORTH


def cut_full(ctx: Context, ops: list[Op]) -> list[Segment]:
    """The same as :func:`cut`, or the ops that addresses are made of, and the others in one segment for all lanes."""
    candidates = _candidates(ops, ctx.shape, ctx)
    segments = _runs(ctx, ops, candidates)
    if ctx.unit.observed or len(ops) > MOST or not all(map(_is_simple, ops)):
        return segments
    free = _free(ops)
    assumed = Assumed(ctx.shape, () if ctx.groups else free)
    shared = len(ops) > LONGEST or any(segment.versioned for segment in segments)
    if shared and not assumed.kept:
        return segments
    if assumed.kept:
        candidates = _candidates(ops, assumed.shape, ctx)
    first, rest = _whole(ops, free, candidates, assumed)
    if sum(base in rest.assumed.shapes for _, base in rest.groups) >= KEPT:
        return [first, rest]
    return segments if shared or len(rest.groups) < BASES else [first, rest]


def _whole(ops: list[Op], free: list[Op], candidates: list[Candidate | None], assumed: Assumed) -> tuple[Segment, Segment]:
    """What comes first, and all others with one test. What is assumed is no certain part of what comes first."""
    accesses = {op: found for op, found in zip(ops, candidates) if op.guard is None and found is not None}
    makers = _makers(free, {base for (_, base), *_ in accesses.values()})
    uncertain = [op for op in makers if not assumed.shapes.keys().isdisjoint(op.dsts)]
    first = set(makers).difference(uncertain)
    rest = Segment([op for op in ops if op not in first], full=True, assumed=assumptions_of(assumed, uncertain))
    made = {dst for op in rest.ops for dst in op.dsts}.difference(rest.assumed.shapes)
    for op, found in accesses.items():
        if found[0][1] not in made:
            join(rest.groups, *found)
            rest.trusted.add(op)
    return Segment([op for op in ops if op in first]), rest


def _is_simple(op: Op) -> bool:
    """Whether an op is pure, or accesses memory and no more, so that it is little code."""
    return op.effects.pure or (len(op.effects.accesses) == 1 and _moves(op.effects.accesses[0]))


def _free(ops: list[Op]) -> list[Op]:
    """The ops that could come first: all but those that follow from ops that must keep their place."""
    fixed: set[Reg | None] = set()
    free: list[Op] = []
    for op in ops:
        if op.effects.pure and op.guard is None and fixed.isdisjoint(reads(op)):
            free.append(op)
        else:
            fixed.update(op.dsts)
    return free


def _makers(ops: list[Op], wanted: set[Reg]) -> list[Op]:
    """The ops that some registers follow from."""
    found: list[Op] = []
    needed: set[Reg | None] = {*wanted}
    for op in reversed(ops):
        if not needed.isdisjoint(op.dsts):
            found.append(op)
            needed.update(reads(op))
    return found[::-1]


def cut(ctx: Context, ops: list[Op]) -> list[Segment]:
    """Cut a block's ops into segments."""
    return _runs(ctx, ops, _candidates(ops, ctx.shape, ctx))


def _runs(ctx: Context, ops: list[Op], candidates: list[Candidate | None]) -> list[Segment]:
    segments = [Segment()]
    defined: set[Reg] = set()
    left = Counter(found[0] for found in candidates if found is not None)  # accesses off each base that are to come
    for op, found in zip(ops, candidates):
        current = segments[-1]
        worth = found is not None and (current.versioned or left[found[0]] > WORTH)
        spoiled = found is not None and found[0][1] in defined and worth and not ctx.in_one_lane
        if spoiled or len(current.ops) >= LONGEST:
            current = Segment()
            segments.append(current)
            defined = set()
        if found is not None:
            left[found[0]] -= 1
            if found[0][1] not in defined:
                join(current.groups, *found)
                current.trusted.add(op)
        current.ops.append(op)
        defined.update(dst for dst in op.dsts if dst is not None)
    return segments


def _candidates(ops: list[Op], shape_of: ShapeOf, ctx: Context) -> list[Candidate | None]:
    return [_candidate(op, shape_of, ctx) for op in ops]


def _candidate(op: Op, shape_of: ShapeOf, ctx: Context) -> Candidate | None:
    """An access whose test can be shared."""
    if len(op.effects.accesses) != 1 or not _moves(op.effects.accesses[0]):
        return None
    address, space, size = op.access.address, op.access.space, op.access.bytes
    assert isinstance(address, Addr) and size is not None
    shape = shape_of(address.base)
    if not isinstance(address.base, Reg) or shape is None or space not in ("shared", "global", "generic", "const"):
        return None
    aligned = all((offset + address.offset) % size == 0 for offset in shape.offsets)
    if not aligned or abs(address.offset) > MAX_OFFSET or (space == "shared" and _by_ends(ctx, op, shape, size)):
        return None
    return (space, address.base), shape, address.offset, size


def _by_ends(ctx: Context, op: Op, shape: Shape, size: int) -> bool:
    """Whether an access is tested by the first and the last lane that are on (lower/memory/strided.py)."""
    kind = op.dst_types[0] if op.dsts else op.type_of("v")
    return kind is not None and kind.bytes == size and ctx.target.gathers_near(kind.bits) and shape.strided(size)


def _moves(access: effects.Access) -> bool:
    """Whether an access only moves registers to or from memory."""
    return access.kind != "update" and bool(access.data)


def join(groups: dict[Key, Group], key: Key, shape: Shape, offset: int, size: int) -> None:
    """Add an access to those off its base."""
    low, high = shape.spread
    group = groups.setdefault(key, Group(offset + low, offset + high + size, size))
    group.low = min(group.low, offset + low)
    group.high = max(group.high, offset + high + size)
    group.size = max(group.size, size)


def test(ctx: Context, segment: Segment) -> str:
    """i1: every access of every group is aligned and in range."""
    return ctx.scalar.conjunction([_test(ctx, key, group) for key, group in segment.groups.items()])


def test_of_those_on(ctx: Context, segment: Segment) -> str:
    """i1: the same of the lanes that are on, where others may access the margins of shared memory."""
    good = test(ctx, segment)
    if ctx.unit.observed or ctx.in_one_lane or not any(map(partial(_have_margins, ctx), segment.groups)):
        return good

    def look_closer() -> list[str]:
        return [ctx.scalar.conjunction([_test(ctx, key, group, closer=True) for key, group in segment.groups.items()])]

    return ctx.when(good, lambda: ["true"], look_closer, ["i1"], likely=True)[0]


def _have_margins(ctx: Context, key: Key) -> bool:
    space, base = key
    lanes = ctx.shape(base)
    return base not in ctx.reaches and lanes is not None and margins.serve(space, lanes)


def _test(ctx: Context, key: Key, group: Group, closer: bool = False) -> str:
    space, base = key
    start = scalar_base(ctx, base, space)
    if base in ctx.reaches:
        first = ctx.scalar.bin("add", "i64", start, str(group.start))
        return covers(ctx, ctx.reaches[base], first, group.high - group.start, group.size)
    shape = ctx.shape(base)
    assert shape is not None
    span = group.span(space, start, shape)
    return margins.hold_others(ctx, span, shape) if closer and _have_margins(ctx, key) else pattern_test(ctx, span)


def escaping(segments: list[Segment]) -> set[Reg]:
    """Registers that a versioned segment defines and other ops of the block read."""
    makers: dict[Reg, Segment] = {}
    found: set[Reg] = set()
    for segment in segments:
        for op in segment.ops:
            found.update(reg for reg in reads(op) if makers.get(reg, segment) is not segment)
            if segment.versioned:
                makers.update((dst, segment) for dst in op.dsts if dst is not None)
    return found


__all__ = ["Group", "Key", "Segment", "cut", "cut_full", "escaping", "join", "test", "test_of_those_on"]
