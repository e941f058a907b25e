"""Trips of a loop that are run without tests, by a copy of its block.

In a loop whose addresses go on by the same distance (:mod:`ptxemu.analysis.steady`), what holds in the first and the last of some
trips holds in those between: that addresses are in memory and exact, and that all lanes go on.  Where all lanes are on, that is
tested once for the next trips, all of which but the last are known to be followed by another one.  Where it does not hold, as
before the last trips, the loop goes on with tests to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxemu.analysis.comparisons import INVERSE, MIRRORED, ORDERS, compares_two, takes_both
from ptxemu.analysis.shape import MAX_OFFSET, Shape
from ptxemu.analysis.steady import Kept, Moved, Product, Steady, Sum, Value, Widened
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg
from ptxemu.ir.types import B32, B64, ScalarType, signed
from ptxemu.lower.control.sync import poll
from ptxemu.lower.core.access import extended, pattern_test
from ptxemu.lower.core.context import ALL_ON, MASK, Context
from ptxemu.lower.core.known import SureTrips
from ptxemu.lower.core.segments import Group, Key, join

if TYPE_CHECKING:
    from ptxemu.lower.functions.function import FunctionBuilder

TRIPS, FEW = 8, 4
"""That are tested at once, and if that fails: one less is odd, so that what is aligned in the first and the last is in all."""
MOST = 96  # ops of a block, of which there are two copies then
SPACES = {"global", "generic", "shared", "const"}
EXACT = Shape((0,))
"""Of addresses whose widenings are tested apart from them."""
FARTHEST = {32: 1 << 26, 64: 1 << 57}
"""Beyond which a distance, by the bits of the value, could bring one round to where it began within some trips."""


class Comparison(Struct):
    """Of a steady value with a bound that all lanes share; lanes go on after the trips in which it holds."""

    value: Value
    spread: tuple[int, int]
    order: str
    bound: Operand
    kind: ScalarType


class Sure(Struct):
    """A loop with such trips: its latch, the accesses that are tested for some, also by the registers that they are off, with
    what these hold, and when lanes go on.

    ``exact``: widenings that do not wrap where those are tested; ``corrected``: whether some are exact only if others have not.
    """

    latch: Block
    accesses: list[Op]
    groups: dict[Key, tuple[Value, Group]]
    comparisons: list[Comparison]
    exact: set[Op]
    corrected: bool


# ---------------------------------------------------------------- which loops


def sure_loop(ctx: Context, loop: Loop) -> Sure | None:
    """A loop of one block and the way back, in which some accesses go on by the same distance, if such trips can be told."""
    header, latch = loop.header, loop.latches[0]
    if loop.blocks != {header, latch} or latch is header or latch.ops or latch.phis or len(loop.latches) > 1:
        return None
    if header.table or header.cond is None or len(header.ops) > MOST or any(_is_slow(op) for op in header.ops):
        return None
    steady = Steady(loop, ctx.shape)
    stays = (header.succs[0] is latch) != header.negated
    comparisons = _comparisons(ctx, steady, {reg: op for op in header.ops for reg in op.results}, header.cond, stays)
    accesses = [(op, value) for op in header.ops if (value := _address(ctx, steady, op)) is not None]
    inside = set(header.ops)
    accesses = [(op, value) for op, value in accesses if inside.isdisjoint(_corrections(ctx, op) - _widenings(value))]
    if not comparisons or not accesses:
        return None
    values = [value for _, value in accesses] + [comparison.value for comparison in comparisons]
    corrected = any(_corrections(ctx, op) - inside for op, _ in accesses)
    return Sure(latch, [op for op, _ in accesses], _grouped(ctx, accesses), comparisons, _widenings(*values), corrected)


def _grouped(ctx: Context, accesses: Iterable[tuple[Op, Value]]) -> dict[Key, tuple[Value, Group]]:
    """Accesses by space and by the register that they are off, with what that holds."""
    values: dict[Key, Value] = {}
    groups: dict[Key, Group] = {}
    for op, value in accesses:
        address, size, shape = op.access.address, op.access.bytes, ctx.shape(op.access.address)
        assert isinstance(address, Addr) and isinstance(address.base, Reg) and shape is not None and size is not None
        key = op.access.space, address.base
        values[key] = value
        join(groups, key, shape, address.offset, size)
    return {key: (values[key], group) for key, group in groups.items()}


def _is_slow(op: Op) -> bool:
    """Whether what an op does takes so long, or depends so much on others, that tests do not matter."""
    return bool(op.effects.waits or op.effects.arrives or op.effects.meets or op.call is not None)


def _address(ctx: Context, steady: Steady, op: Op) -> Value | None:
    """Where a plain access begins, if that is steady and can be tested for all lanes at once."""
    if len(op.effects.accesses) != 1 or op.guard is not None or op.effects.accesses[0].kind == "update":
        return None
    address, space, size = op.access.address, op.access.space, op.access.bytes
    if not isinstance(address, Addr) or not isinstance(address.base, Reg) or space not in SPACES or not size:
        return None
    shape = ctx.shape(address)
    if shape is None or ctx.is_grouped(address.base) or abs(address.offset) > MAX_OFFSET:
        return None
    if any((offset + address.offset) % size for offset in shape.offsets):
        return None
    return steady.value(address.base, address.base.type.bits)


def _corrections(ctx: Context, op: Op) -> set[Op]:
    """The widenings that an access is exact without."""
    shape = ctx.shape(op.access.address)
    return {by for by, _ in shape.widenings} if shape is not None else set()


def _widenings(*values: Value) -> set[Op]:
    """The ops in values that widen."""
    seen, work = set(values), list(values)
    while work:
        parts = [part for part in _parts(work.pop()) if part not in seen]
        seen.update(parts)
        work += parts
    return {value.op for value in seen if isinstance(value, Widened)}


def _parts(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Sum):
        return value.a, value.b
    if isinstance(value, Product):
        return value.a, value.factor
    return (value.a,) if isinstance(value, Widened) else ()


def _comparisons(ctx: Context, steady: Steady, made: Mapping[Reg, Op], operand: Operand, wanted: bool) -> list[Comparison]:
    """Those that hold together only where a predicate has the wanted value; none if nothing tells that."""
    op = made.get(operand) if isinstance(operand, Reg) else None
    if op is None or op.guard is not None or any(op.negs):
        return []
    if compares_two(op):
        found = _comparison(ctx, steady, op, wanted)
        return [] if found is None else [found]
    if takes_both(op, wanted):
        both = [_comparisons(ctx, steady, made, source, wanted) for source in op.srcs]
        return both[0] + both[1] if all(both) else []
    return []


def _comparison(ctx: Context, steady: Steady, op: Op, wanted: bool) -> Comparison | None:
    kind, order, a, b = op.type_of("a"), op.mods["cmp"], op["a"], op["b"]
    order = ORDERS.get(order, order)
    if kind is None or kind.kind not in "usb":
        return None
    if steady.kept(b, kind.bits) is None:
        a, b, order = b, a, MIRRORED.get(order, order)
    order = order if wanted else {**INVERSE, "eq": "ne"}.get(order, "")
    value, shape = steady.value(a, kind.bits), ctx.shape(a)
    if value is None or shape is None or shape.widenings or steady.kept(b, kind.bits) is None or order not in (*INVERSE, "ne"):
        return None
    return Comparison(value, shape.spread, order, b, kind)


# ---------------------------------------------------------------- the test


class Course(Struct):
    """A value in the coming trip, as the base of all lanes, and by how much it is further in each trip from there."""

    first: str
    step: str


class Tests:
    """The code that tells whether so many ``trips`` from here on are sure. All values are those at the beginning of the first."""

    def __init__(self, ctx: Context, sure: Sure, trips: int) -> None:
        self.ctx = ctx
        self.trips = trips
        self.scalar = ctx.scalar
        self.sure = sure
        self.good: dict[str, None] = {}
        self.steps: dict[str, str] = {}
        self._courses: dict[Value, Course] = {}

    def all(self) -> str:
        """i1: all of them pass."""
        for (space, base), (value, group) in self.sure.groups.items():
            self._accesses(space, base, value, group)
        for comparison in self.sure.comparisons:
            self._compare(comparison)
        if self.sure.corrected:
            self.good[self.scalar.bin("xor", "i1", self.ctx.wrapped(), "true")] = None
        return self.scalar.conjunction(list(self.good))

    # -- values

    def _course(self, value: Value) -> Course:
        if value not in self._courses:
            self._courses[value] = self._made(value)
        return self._courses[value]

    def _made(self, value: Value) -> Course:
        kind, t = B64 if value.bits == 64 else B32, f"i{value.bits}"
        if isinstance(value, Kept):
            operand = value.operand
            return Course(_wrapped(operand.bits, t) if isinstance(operand, Imm) else self.ctx.scalar_of(operand, kind), "0")
        if isinstance(value, Moved):
            step = "0"
            for part, minus in value.steps:
                step = self._sum(t, step, self._course(part).first, minus)
            return Course(self.ctx.scalar_of(value.phi.dst, kind), step)
        if isinstance(value, Sum):
            a, b = self._course(value.a), self._course(value.b)
            return Course(self._sum(t, a.first, b.first, value.minus), self._sum(t, a.step, b.step, value.minus))
        if isinstance(value, Product):
            a, factor = self._course(value.a), self._course(value.factor).first
            return Course(self._product(t, a.first, factor), self._product(t, a.step, factor))
        assert isinstance(value, Widened)
        return self._widened(value)

    def _sum(self, t: str, a: str, b: str, minus: bool) -> str:
        if b == "0":
            return a
        if _is_number(a) and _is_number(b):
            return _wrapped(int(a) - int(b) if minus else int(a) + int(b), t)
        return self.scalar.bin("sub" if minus else "add", t, a, b)

    def _product(self, t: str, a: str, b: str) -> str:
        if _is_number(a) and _is_number(b):
            return _wrapped(int(a) * int(b), t)
        return self.scalar.bin("mul", t, a, b)

    def _widened(self, value: Widened) -> Course:
        """Tests that all lanes are exact in the first and in the last trip."""
        course, extend = self._course(value.a), "sext" if value.signed else "zext"
        first = (
            course.first if _is_number(course.first) and value.signed else self.scalar.cast(extend, "i32", course.first, "i64")
        )
        step = course.step if _is_number(course.step) else self.scalar.cast("sext", "i32", course.step, "i64")
        wide, least = Course(first, step), -(1 << 31) if value.signed else 0
        low, high = value.spread
        places = {(first, offset) for offset in (low, high) if offset}  # the base of the first is exact
        if step != "0":
            places |= {(self._last(wide), offset) for offset in (low, high)}
        for place, offset in sorted(places):
            above = self._sum("i64", place, str(offset - least), False)
            self._require(self.scalar.icmp("ult", "i64", above, str(1 << 32)))
        return wide

    def _extended(self, course: Course, signed: bool) -> Course:
        """One of 32 bits as 64."""
        first, step = course.first, course.step
        if not (_is_number(first) and signed):
            first = self.scalar.cast("sext" if signed else "zext", "i32", first, "i64")
        return Course(first, step if _is_number(step) else self.scalar.cast("sext", "i32", step, "i64"))

    def _last(self, course: Course) -> str:
        """An i64 in the last of the trips."""
        distance = self._product("i64", course.step, str(self.trips - 1))
        return self._sum("i64", course.first, distance, False)

    def _require(self, good: str) -> None:
        self.good[good] = None

    # -- accesses

    def _accesses(self, space: str, base: Reg, value: Value, group: Group) -> None:
        """They are aligned and in range in the first and in the last trip, and come from one to the other without a way round."""
        ctx, kind = self.ctx, B64 if value.bits == 64 else B32
        course = self._course(value) if kind is B64 else self._extended(self._course(value), signed=False)
        self._near(course.step, kind)
        self.steps[base.name] = course.step
        for place in dict.fromkeys((course.first, self._last(course) if course.step != "0" else course.first)):
            whole = (
                place if kind is B64 else extended(ctx, ctx.scalar, ctx.scalar.cast("trunc", "i64", place, "i32"), kind, space)
            )
            self._require(pattern_test(ctx, group.span(space, whole, EXACT)))

    def _near(self, step: str, kind: ScalarType) -> None:
        """Tests that no trip before the last leads far away, from where the others lead back."""
        far = FARTHEST[kind.bits]
        if not _is_number(step) or abs(int(step)) >= far:
            self._require(self.scalar.icmp("ult", "i64", self._sum("i64", step, str(far), False), str(2 * far)))

    # -- comparisons

    def _compare(self, comparison: Comparison) -> None:
        """It holds in all lanes from the first trip to the last but one, as it does in these, where no value has wrapped."""
        kind, order, t = comparison.kind, comparison.order, f"i{comparison.kind.bits}"
        wide, extend = f"i{2 * kind.bits}", "zext" if kind.kind == "u" else "sext"
        course = self._course(comparison.value)
        first, bound = (
            self.scalar.cast(extend, t, one, wide) for one in (course.first, self.ctx.scalar_of(comparison.bound, kind))
        )
        step = self.scalar.cast("sext", t, course.step, wide)
        last = self.scalar.bin("add", wide, first, self.scalar.bin("mul", wide, step, str(self.trips - 2)))
        low, high = self._ends(wide, first, last, step, comparison.spread)
        least = 0 if kind.kind == "u" else -(1 << kind.bits - 1)
        if order not in ("gt", "ge"):  # what is greater than the bound has not wrapped, nor has what is less
            self._require(self.scalar.icmp("sge", wide, low, str(least)))
        if order not in ("lt", "le"):
            self._require(self.scalar.icmp("slt", wide, high, str(least + (1 << kind.bits))))
        if order != "ne":
            self._require(self.scalar.icmp(f"s{order}", wide, high if order in ("lt", "le") else low, bound))
            return
        below, above = self.scalar.icmp("slt", wide, high, bound), self.scalar.icmp("sgt", wide, low, bound)
        self._require(self.scalar.bin("or", "i1", below, above))

    def _ends(self, t: str, first: str, last: str, step: str, spread: tuple[int, int]) -> tuple[str, str]:
        """The least and the greatest that a lane has from the first trip to the last."""
        falls = self.scalar.icmp("slt", t, step, "0")
        low, high = (self.scalar.select(falls, t, *ends) for ends in ((last, first), (first, last)))
        return self.scalar.bin("add", t, low, str(spread[0])), self.scalar.bin("add", t, high, str(spread[1]))


def _is_number(value: str) -> bool:
    return value.lstrip("-").isdecimal()


def _wrapped(number: int, t: str) -> str:
    """As a signed number of an LLVM type."""
    return str(signed(number, int(t[1:])))


# ---------------------------------------------------------------- the trips


def write(builder: FunctionBuilder, block: Block, sure: Sure) -> None:
    """At the header of a loop: the test, and the trips; goes on where it fails."""
    ctx, name = builder.ctx, builder.name(block)
    mask = ctx.inst(f"load {MASK}, ptr {builder.arriving(block)}, align 4")
    everyone = ctx.scalar.icmp("eq", f"i{LANES}", ctx.inst(f"bitcast {MASK} {mask} to i{LANES}"), "-1")
    builder.take_phis(block)
    count = ctx.alloca("i32")
    steps = _test(ctx, sure, TRIPS, everyone, count, (f"{name}.sure", f"{name}.few"))
    ctx.start(f"{name}.few")
    _test(ctx, sure, FEW, everyone, count, (f"{name}.sure", f"{name}.care"))
    ctx.start(f"{name}.sure")
    ctx.forget()
    ctx.active, ctx.active_bits = ALL_ON, "-1"
    builder.take_phis(block)
    ctx.sure = SureTrips(sure.exact, steps)
    builder.trusting(block, set(sure.accesses))
    builder.hand_over(sure.latch, block, ALL_ON)
    ctx.sure = SureTrips()
    left = ctx.scalar.bin("sub", "i32", ctx.inst(f"load i32, ptr {count}, align 4"), "1")
    ctx.stmt(f"store i32 {left}, ptr {count}, align 4")
    ctx.stmt(f"br i1 {ctx.scalar.icmp('eq', 'i32', left, '0')}, label %{name}.over, label %{name}.sure")
    ctx.start(f"{name}.over")
    stay = _all_stay(ctx, block, sure.latch)
    ctx.stmt(f"br i1 {stay}, label %{name}.on, label %{name}.leave")
    saved = ctx.remembered()
    ctx.start(f"{name}.on")
    poll(ctx)
    builder.after_trips(sure.latch)
    ctx.jump(name)
    ctx.remember(saved)
    ctx.start(f"{name}.leave")
    builder.leave(block)
    ctx.start(f"{name}.care")


def _test(ctx: Context, sure: Sure, trips: int, everyone: str, count: str, ways: tuple[str, str]) -> dict[str, str]:
    """Go on with so many trips if they are sure, which is noted; by how far addresses go on in one."""
    tests = Tests(ctx, sure, trips)
    good = ctx.scalar.bin("and", "i1", everyone, tests.all())
    ctx.stmt(f"store i32 {trips}, ptr {count}, align 4")
    ctx.stmt(f"br i1 {good}, label %{ways[0]}, label %{ways[1]}")
    return tests.steps


def _all_stay(ctx: Context, block: Block, latch: Block) -> str:
    """i1: all lanes go on with a loop, as its condition says."""
    assert block.cond is not None
    negated = block.negated == (block.succs[0] is latch)
    if ctx.is_uniform(block.cond):
        return ctx.predicate(block.cond, negated, False)
    stay = ctx.predicate(block.cond, negated, True)
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.inst(f"bitcast {MASK} {stay} to i{LANES}"), "-1")
