"""Stamps of accesses, which compiled code leaves for an observer (csrc/check/stamp.h): who has last written, and who
has last read, each word of memory.

What finds only stamps that do not matter is not told. The numbers below are compared as the checker itself compares them
(csrc/check/race_runs.h), so that it is told of no more and no less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from hashlib import blake2s
from itertools import combinations
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ptxemu._runtime import lib
from ptxemu.analysis.runs import Runs
from ptxemu.analysis.written import Way
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.lower.core.access import Access, Range, pattern_test
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.core.masks import expanded
from ptxemu.lower.core.runs import as_expected, first_addresses, in_groups, rows_within
from ptxemu.lower.core.shared_log import Log
from ptxemu.lower.core.site import site_literal, site_type
from ptxemu.lower.core.warp_stamps import FIELDS, pointer, state
from ptxemu.lower.core.word_groups import NOBODY, SEVERAL, VECTOR, WORD_BYTES, Group, lanes_of, scattered, windows

MOST_WORDS = 64  # whose stamps are compared by compiled code
MANY_WORDS = 8  # whose stamps a function looks at
MOST_GROUPS = 8  # in which they lie
NEAR = 4  # words from one to the next where words between them are blended
LANE = 1 << lib.PE_STAMP_LANE_AT  # between the stamps of neighbours
OTHERS = 1 << lib.PE_STAMP_ROW_AT  # stamps that differ by as much are not of one thread
BYTES = 0xF << lib.PE_STAMP_BYTES_AT  # all of a word
WARPS = 31 << lib.PE_STAMP_WARP_AT
SPLIT = ((1 << lib.PE_PERIOD_BITS) - 2) << lib.PE_STAMP_PERIOD_AT  # this and greater ones are no stamps of one access each
BESIDE = (LANES - 1 | SEVERAL) * LANE | OTHERS  # in which stamps of a warp differ at one time
SITE = (1 << lib.PE_SITE_BITS) - 1
STRONG = 1 << (lib.PE_SITE_BITS + 1)
POSITION_HASH = 0x9E3779B1 - (1 << 32)  # 2**32 / the golden ratio, as an i32: neighbouring positions get numbers far apart


Table: TypeAlias = dict[str, str]


class Stamping(Struct):
    """The test of one access whose lanes lie in groups; ``fits`` makes an i1, whether they do."""

    ctx: Context
    op: Op
    mask: str
    writes: bool
    shared: bool
    groups: Sequence[Group]
    fits: Callable[[], str]
    partly: bool = False  # lanes may be missing
    one: bool = False  # all words are those of the first lane that is there
    site: str = ""  # the number of the op's, an i64
    own: Table = {}
    now: str = ""

    def passes(self) -> str:
        """i1: nothing is to be told of the access; its stamps are left, then."""
        words = sum(group.words for group in self.groups)
        if not 0 < words <= MOST_WORDS:
            return "false"
        self.site = site_number(self.ctx, self.op)
        fits = self.ctx.scalar.bin("and", "i1", is_numbered(self.ctx, self.op, self.site), self.fits())
        return self._when(fits, partial(self._own_behind_others, self._own if words < MANY_WORDS else self._own_by_call))

    # ---------------------------------------------------------------- steps

    def _own_behind_others(self, own: Callable[[], str]) -> str:
        """Those of accesses that are listed come first."""
        if self.shared:
            Log(self.ctx).flush()
        return own()

    def _own_by_call(self) -> str:
        """The same by a function that accesses of such words share: there are hundreds of instructions for each."""
        ctx = self.ctx
        firsts = {group.start: group.offset for group in reversed(self.groups)}
        names = {start: f"%start{number}" for number, start in enumerate(firsts)}
        groups = [replace(group, start=names[group.start], offset=group.offset - firsts[group.start]) for group in self.groups]
        kind = repr((self.writes, self.shared, self.partly, groups))
        name = f"stamps.{blake2s(kind.encode(), digest_size=8).hexdigest()}"
        if name not in ctx.helpers:
            ctx.helpers[name] = self._function(name, groups, list(names.values()))
        starts = "".join(f", i64 {ctx.scalar.bin('add', 'i64', start, str(offset))}" for start, offset in firsts.items())
        mask = ctx.bits_of(self.mask) if self.partly else "-1"
        return ctx.inst(f"call i1 @{name}(ptr %w, i64 {self.site}, i32 {mask}{starts})")

    def _function(self, name: str, groups: Sequence[Group], starts: Sequence[str]) -> str:
        """Its text."""
        ctx = Context(self.ctx.uniformity, self.ctx.layout, self.ctx.unit)
        ctx.label = "body"
        mask = expanded(ctx.target, ctx.inst, "%mask") if self.partly else ""
        ctx.stmt(f"ret i1 {replace(self, ctx=ctx, mask=mask, groups=groups, site='%site')._own()}")
        parameters = ", ".join(["ptr noalias %w", "i64 %site", "i32 %mask", *(f"i64 {start}" for start in starts)])
        head = f'define internal i1 @{name}({parameters}) noinline nounwind "probe-stack"="inline-asm" {{'
        return "\n".join([head, "entry:", *ctx.prologue, "  br label %body", "body:", *ctx.lines, "}"])

    def _own(self) -> str:
        """Leave the stamps of the access where they may be left."""
        self.now = self._now()
        own, others = ("writes", "reads") if self.writes else ("reads", "writes")
        self.own = self._table(own)
        ready = [self._kept(), *([self._harmless(self.own)] if self.writes else []), self._apart_from(others)]
        return self._when(self._all(ready), self._leave)

    def _apart_from(self, others: str) -> str:
        """i1: no stamp of accesses of the other kind matters."""
        if not (self.shared and self.writes):
            return self._harmless(self._table(others))
        unread = Log(self.ctx).is_past("read")
        return self.ctx.when(unread, lambda: ["true"], lambda: [self._harmless(self._table(others))], ["i1"], likely=True)[0]

    def _leave(self) -> str:
        if self.shared:
            Log(self.ctx).note("written" if self.writes else "read")
        if self.writes or self.shared:
            self._store()
        else:
            stay = self._all(self._are_of_other_ctas(piece) for piece in self._pieces())
            self.ctx.when(stay, list, self._store, [])
        return "true"

    def _store(self) -> Sequence[str]:
        for group in self._pieces():
            if group.anywhere:
                self._scatter(group)
                continue
            stamps, at, there = self._left(group), self._at(self.own, group), self._there(group)
            if there and self.ctx.target.avx512:
                self._masked_store(group, stamps, at, there)
                continue
            if there:  # a CTA stays on one thread
                before = f"{group.type} {self._load(self.own, group)}"
                stamps = self.ctx.inst(f"select {_flags(group)} {there}, {group.type} {stamps}, {before}")
            whole = "volatile " if there else ""  # LLVM makes no masked store of it, which many CPUs execute in microcode
            self.ctx.stmt(f"store {whole}{group.type} {stamps}, ptr {at}, align 8")
        return []

    def _masked_store(self, group: Group, stamps: str, at: str, there: str) -> None:
        flags, name = _flags(group), f"llvm.masked.store.v{group.words}i64.p0"
        self.ctx.declare(name, f"declare void @{name}({group.type}, ptr, {flags})")
        self.ctx.stmt(f"call void @{name}({group.type} {stamps}, ptr align 8 {at}, {flags} {there})")

    def _kept(self) -> str:
        """i1: stamps are kept of all words."""
        ends = [self._at(self.own, group, last) for group in self.groups for last in {0, group.last}]
        return self._all(self.ctx.scalar.icmp("ne", "i64", self.ctx.inst(f"load i64, ptr {end}, align 8"), "0") for end in ends)

    # ---------------------------------------------------------------- numbers

    def _harmless(self, table: Table) -> str:
        """i1: of the stamps in a table none matters. The highest bit of a stamp is clear, so that a difference has it set if the
        first is less: there are no comparisons as unsigned numbers on CPUs without AVX-512."""
        found: dict[int, str] = {}
        for piece in self._pieces():
            good, words = self._signs(piece, self._load(table, piece)), piece.words
            found[words] = self.ctx.inst(f"and {piece.type} {found[words]}, {good}") if words in found else good
        return self._all(self.ctx.scalar.icmp("slt", "i64", self._joined(words, good), "0") for words, good in found.items())

    def _signs(self, piece: Group, before: str) -> str:
        """Of each stamp, the highest bit: set if it does not matter."""
        ctx, t = self.ctx, piece.type
        good = ctx.inst(f"sub {t} {before}, {self._spread(piece, self._state('floor' if self.shared else 'ancient'))}")
        differ = ctx.inst(f"xor {t} {before}, {self._stamps(piece)}")
        mine = ctx.inst(f"sub {t} {differ}, {_constants([OTHERS] * piece.words)}")
        good = ctx.inst(f"or {t} {good}, {mine}")
        if not self.shared:
            since = ctx.inst(f"sub {t} {before}, {self._spread(piece, self._state('first'))}")
            rest = ctx.inst(f"sub {t} {since}, {self._spread(piece, self._state('span'))}")
            later = ctx.inst(f"xor {t} {since}, {_constants([-1] * piece.words)}")
            within = ctx.inst(f"and {t} {rest}, {later}")
            good = ctx.inst(f"or {t} {good}, {within}")
        if not (there := self._there(piece)):
            return good
        present = ctx.inst(f"sext {_flags(piece)} {there} to {t}")
        absent = ctx.inst(f"xor {t} {present}, {_constants([-1] * piece.words)}")
        return ctx.inst(f"or {t} {good}, {absent}")

    def _joined(self, words: int, values: str) -> str:
        """The bits that all have."""
        return self.ctx.call("i64", f"llvm.vector.reduce.and.v{words}i64", (f"<{words} x i64>", values))

    def _pieces(self) -> list[Group]:
        """The words, a vector at a time."""
        return [piece for group in self.groups for piece in group.pieces()]

    def _are_of_other_ctas(self, group: Group) -> str:
        """i1: the reads of other CTAs are there, and may stay."""
        ctx, t = self.ctx, group.type
        before = self._load(self.own, group)
        good = ctx.inst(f"icmp uge {t} {before}, {self._spread(group, self._state('least'))}")
        since = ctx.inst(f"sub {t} {before}, {self._spread(group, self._state('begin'))}")
        theirs = ctx.inst(f"icmp uge {t} {since}, {self._spread(group, self._state('length'))}")
        told = ctx.inst(f"and {t} {before}, {_constants([STRONG | BYTES] * group.words)}")
        plain = ctx.inst(f"icmp eq {t} {told}, {_constants([BYTES] * group.words)}")
        return self._every(group, good, theirs, plain)

    def _every(self, group: Group, *flags: str) -> str:
        """i1: all flags are set for all words of lanes that are there."""
        t, there = _flags(group), self._there(group)
        good = reduce(lambda a, b: self.ctx.inst(f"and {t} {a}, {b}"), flags)
        number = f"i{group.words}"
        if there:
            absent = self.ctx.inst(f"xor {t} {there}, splat (i1 true)")
            good = self.ctx.inst(f"or {t} {good}, {absent}")
        return self.ctx.scalar.icmp("eq", number, self.ctx.inst(f"bitcast {t} {good} to {number}"), "-1")

    def _there(self, group: Group) -> str:
        """The flags of words of lanes that are there; empty, if all are."""
        if not self.partly:
            return ""
        if group.lanes == tuple(range(LANES)):
            return self.mask
        chosen = ", ".join("i32 poison" if lane == NOBODY else f"i32 {lane}" for lane in group.lanes)
        there = self.ctx.inst(f"shufflevector {MASK} {self.mask}, {MASK} poison, <{group.words} x i32> <{chosen}>")
        if NOBODY not in group.lanes:
            return there
        # LLVM makes a shift of a shuffle with zeros, and other lanes' flags come in.
        owned = vector_literal("i1", [lane != NOBODY for lane in group.lanes])
        return self.ctx.inst(f"and {_flags(group)} {there}, {owned}")

    def _now(self) -> str:
        """The stamp of the access in lane 0; of one address, that of the last lane that is there, maybe as one of several."""
        ctx = self.ctx
        now = ctx.scalar.bin("or", "i64", self._state("now"), str(BYTES))
        now = ctx.scalar.bin("or", "i64", now, self.site)
        if not self.one:
            return now
        after = ctx.scalar.intrinsic("ctlz", f"i{LANES}", ctx.bits_of(self.mask), extra="i1 true")
        lane = ctx.scalar.cast("zext", "i32", ctx.scalar.bin("sub", "i32", str(LANES - 1), after), "i64")
        several = ctx.inst(f"select i1 {_one_there(ctx, self.mask)}, i64 0, i64 {SEVERAL}")
        lane = ctx.scalar.bin("or", "i64", lane, several)
        return ctx.scalar.bin("or", "i64", now, ctx.scalar.bin("shl", "i64", lane, str(lib.PE_STAMP_LANE_AT)))

    def _stamps(self, group: Group) -> str:
        lanes = [max(lane, 0) * LANE for lane in group.lanes]  # SEVERAL comes to its bit
        return self.ctx.inst(f"or {group.type} {self._spread(group, self.now)}, {_constants(lanes)}")

    def _left(self, group: Group) -> str:
        """What it leaves: a read behind one of its warp at the same time says that there are several (pe_stamp_behind)."""
        stamps = self._stamps(group)
        if self.writes:
            return stamps
        ctx, t = self.ctx, group.type
        before = self._load(self.own, group)
        differ = ctx.inst(f"xor {t} {before}, {stamps}")
        lanes = ctx.inst(f"and {t} {differ}, {_constants([BESIDE] * group.words)}")
        rest = ctx.inst(f"and {t} {differ}, {_constants([~BESIDE & ~SITE] * group.words)}")
        others = ctx.inst(f"icmp ne {t} {lanes}, zeroinitializer")
        beside = ctx.inst(f"and {_flags(group)} {ctx.inst(f'icmp eq {t} {rest}, zeroinitializer')}, {others}")
        several = _constants([SEVERAL * LANE] * group.words)
        left = ctx.inst(f"or {t} {stamps}, {ctx.inst(f'select {_flags(group)} {beside}, {t} {several}, {t} zeroinitializer')}")
        if not self.shared:
            return left
        return ctx.inst(f"select {_flags(group)} {self._are_of_other_warps(group, before, differ)}, {t} {before}, {t} {left}")

    def _are_of_other_warps(self, group: Group, before: str, differ: str) -> str:
        """Flags of reads that stay, of warps that this one has not met since (pe_read_stays)."""
        ctx, t = self.ctx, group.type
        since = ctx.inst(f"icmp sge {t} {before}, {self._spread(group, self._state('floor'))}")
        whole = ctx.inst(f"icmp slt {t} {before}, {_constants([SPLIT] * group.words)}")
        told = ctx.inst(f"and {t} {before}, {_constants([STRONG | BYTES | OTHERS] * group.words)}")
        plain = ctx.inst(f"icmp eq {t} {told}, {_constants([BYTES] * group.words)}")
        warps = ctx.inst(f"and {t} {differ}, {_constants([WARPS] * group.words)}")
        other = ctx.inst(f"icmp ne {t} {warps}, zeroinitializer")
        return reduce(lambda a, b: ctx.inst(f"and {_flags(group)} {a}, {b}"), (since, whole, plain, other))

    # ---------------------------------------------------------------- places

    def _state(self, field: str) -> str:
        return state(self.ctx, field)

    def _table(self, name: str) -> Table:
        """Where the stamps of addresses are that groups start at, of which there are 8 bytes for 4."""
        scalar, table = self.ctx.scalar, {}
        for start in {group.start: None for group in self.groups}:
            base = scalar.bin("add", "i64", start, self.ctx.field("shared_base")) if self.shared else start
            table[start] = scalar.bin("add", "i64", self._state(name), scalar.bin("shl", "i64", base, "1"))
        return table

    def _at(self, table: Table, group: Group, word: int = 0) -> str:
        place = group.anywhere[word] if group.anywhere else WORD_BYTES * word
        return self._pointer(table[group.start], 2 * (group.offset + place))

    def _load(self, table: Table, group: Group) -> str:
        """The stamps of a group."""
        ctx, t = self.ctx, group.type
        if not group.anywhere:
            return ctx.inst(f"load {t}, ptr {self._at(table, group)}, align 8")
        found = "poison"
        for word in range(group.words):
            one = ctx.inst(f"load i64, ptr {self._at(table, group, word)}, align 8")
            found = ctx.inst(f"insertelement {t} {found}, i64 {one}, i64 {word}")
        return found

    def _scatter(self, group: Group) -> None:
        stamps = self._left(group)
        for word in range(group.words):
            one = self.ctx.inst(f"extractelement {group.type} {stamps}, i64 {word}")
            self.ctx.stmt(f"store i64 {one}, ptr {self._at(self.own, group, word)}, align 8")

    def _pointer(self, start: str, offset: int) -> str:
        return pointer(self.ctx, start, offset)

    def _spread(self, group: Group, value: str) -> str:
        first = self.ctx.inst(f"insertelement {group.type} poison, i64 {value}, i64 0")
        return self.ctx.inst(f"shufflevector {group.type} {first}, {group.type} poison, <{group.words} x i32> zeroinitializer")

    # ---------------------------------------------------------------- conditions

    def _all(self, conditions: Iterable[str]) -> str:
        return reduce(lambda a, b: self.ctx.scalar.bin("and", "i1", a, b), conditions)

    def _when(self, condition: str, then: Callable[[], str]) -> str:
        return self.ctx.when(condition, lambda: [then()], lambda: ["false"], ["i1"], likely=True)[0]


def is_numbered(ctx: Context, op: Op, site: str) -> str:
    """i1: the instruction has its number."""
    known = pointer(ctx, ctx.scalar.bin("add", "i64", state(ctx, "sites"), ctx.scalar.bin("shl", "i64", site, "2")), 0)
    position = ctx.scalar.bin("add", "i32", ctx.position(op), "1")
    return ctx.scalar.icmp("eq", "i32", ctx.inst(f"load i32, ptr {known}, align 4"), position)


def leave_ways(ctx: Context, ways: Sequence[Way] | None) -> None:
    """Let the checker know by what the kernel may write, if that is known: all other memory stays as it is while it runs."""
    places = [(way, number) for way in ways or () for number in range(len(way.params))]
    if ways is None or len(places) > lib.PE_MOST_WAYS:
        return
    by = {True: int(lib.PE_BY_SURFACE), False: int(lib.PE_BY_POINTER)}
    entries = [
        {"by": by[way.surface], "other": int(number + 1 < len(way.params)), "offset": way.params[number]}
        for way, number in places
    ]
    entries += [{"by": 0, "other": 0, "offset": 0}] * (int(lib.PE_MOST_WAYS) - len(entries))
    literal = site_literal("pe_ways", {"count": len(places), "way": entries})
    constant = ctx.constant(f"{site_type('pe_ways')} {literal}")
    watch, place, pointer = ctx.field("watch"), ctx.fresh("k"), ctx.fresh("k")
    ctx.at_entry(f"{place} = add i64 {watch}, {FIELDS['written'].offset}")
    ctx.at_entry(f"{pointer} = inttoptr i64 {place} to ptr")
    ctx.at_entry(f"store ptr {constant}, ptr {pointer}, align 8")


def of_pattern(ctx: Context, found: Access) -> Stamping | None:
    """That of an access of whole words at addresses that are a base plus constants; None if it has to be told."""
    if found.space not in ("shared", "global") or found.strong or found.shape is None:
        return None
    writes, offsets, count = bool(found.kind & lib.PE_WRITE), found.shape.offsets, found.size // WORD_BYTES
    if found.shape.uniform:
        groups = [Group(found.base, offsets[0], (0,) * count)]
        return _stamping(ctx, found, groups, partial(_fits, ctx, found, _one_there if writes else _any_there), one=True)
    lanes = lanes_of(offsets, count)
    apart = len(lanes) == LANES * count
    masked, blended = apart and ctx.target.avx512, apart and ctx.target.avx2 and found.space == "shared"
    partly = masked or blended
    near, unit = (VECTOR, VECTOR) if masked else (NEAR if blended else 1, 1)  # blended words must be the CTA's own
    groups = [Group(found.base, first, lanes) for first, lanes in windows(lanes, near, unit)]
    if writes and not apart:
        return None
    if len(groups) > MOST_GROUPS:
        group = scattered(found.base, lanes)
        return _stamping(ctx, found, [group], partial(_fits, ctx, found, _all_there)) if group is not None else None
    return _stamping(ctx, found, groups, partial(_fits, ctx, found, _some_there if partly else _all_there), partly=partly)


def of_runs(ctx: Context, found: Access, runs: Runs) -> Stamping | None:
    """That of an access whose addresses are expected to form runs."""
    writes = bool(found.kind & lib.PE_WRITE)
    if found.space not in ("shared", "global") or found.strong or (writes and not runs.step):
        return None
    starts, count = first_addresses(ctx, found, runs), found.size // WORD_BYTES
    last = runs.width - 1
    each = [range(first, first + last + 1) if runs.step or not last else [first + last + SEVERAL] for first in runs.firsts]
    groups = [
        Group(start, 0, tuple(lane for lane in lanes for _ in range(count))) for start, lanes in zip(starts, each, strict=True)
    ]

    def fits() -> str:
        test = in_groups if found.grouped else as_expected
        good = test(ctx, found, runs, starts, all_lanes=True)
        return _apart(ctx, groups, good) if writes else good

    return _stamping(ctx, found, groups, fits)


def of_rows(ctx: Context, op: Op, mask: str, writes: bool, starts: Sequence[str], size: int) -> Stamping:
    """That of texels of ``size`` bytes in rows that start at these addresses, the same number of lanes in each."""
    width = LANES // len(starts)
    count = 0 if size % WORD_BYTES else size // WORD_BYTES
    groups = [
        Group(start, 0, tuple(number * width + word // count for word in range(width * count)))
        for number, start in enumerate(starts)
    ]

    def fits() -> str:
        arena = Range(ctx.field("arena_base"), ctx.field("arena_size"))
        good = ctx.scalar.bin("and", "i1", _all_there(ctx, mask), rows_within(ctx, starts, width * size, arena))
        return _apart(ctx, groups, good) if writes else good

    return Stamping(ctx, op, mask, writes, False, groups, fits)


def _stamping(
    ctx: Context, found: Access, groups: Sequence[Group], fits: Callable[[], str], *, partly: bool = False, one: bool = False
) -> Stamping:
    writes = bool(found.kind & lib.PE_WRITE)
    return Stamping(ctx, found.op, found.mask, writes, found.space == "shared", groups, fits, partly, one)


def _fits(ctx: Context, found: Access, are_there: Callable[[Context, str], str]) -> str:
    """i1: all words are in memory, and the lanes that must be there are."""
    there = are_there(ctx, found.mask)
    if found.safe:
        return there
    whole = None if found.space == "shared" else Range(ctx.field("arena_base"), ctx.field("arena_size"))
    return ctx.scalar.bin("and", "i1", there, pattern_test(ctx, found.span, whole))


def _some_there(ctx: Context, mask: str) -> str:
    """i1."""
    return "true"


def _any_there(ctx: Context, mask: str) -> str:
    """i1."""
    return ctx.scalar.icmp("ne", f"i{LANES}", ctx.bits_of(mask), "0")


def _one_there(ctx: Context, mask: str) -> str:
    """i1: just one."""
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.scalar.intrinsic("ctpop", f"i{LANES}", ctx.bits_of(mask)), "1")


def _all_there(ctx: Context, mask: str) -> str:
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(mask), "-1")


def _apart(ctx: Context, groups: Sequence[Group], good: str) -> str:
    """i1: ``good``, and groups have no word in common."""
    scalar, reach = ctx.scalar, groups[0].words * WORD_BYTES
    for one, other in combinations([group.start for group in groups], 2):
        distance = scalar.bin("add", "i64", scalar.bin("sub", "i64", one, other), str(reach - 1))
        good = scalar.bin("and", "i1", good, scalar.icmp("uge", "i64", distance, str(2 * reach - 1)))
    return good


def _constants(values: Sequence[int]) -> str:
    return vector_literal("i64", values)


def _flags(group: Group) -> str:
    """The type of one for each word."""
    return group.type.replace("i64", "i1")


def site_number(ctx: Context, op: Op) -> str:
    """i64: the number that the checker gives an instruction, unless another one has it."""
    number = ctx.scalar.bin("mul", "i32", ctx.position(op), str(POSITION_HASH))
    return ctx.scalar.cast("zext", "i32", ctx.scalar.bin("lshr", "i32", number, str(32 - int(lib.PE_SITE_BITS))), "i64")
