"""Kernels as one function for all warps of a CTA, without a stack for each.

The function is called for the first warp.  Where a warp has come to its end or to a barrier of the whole CTA, control goes
to the next warp, and behind the last one to the first again, until all have exited.  So a barrier is a jump: every warp
that has not exited has come to one when its turn comes round.

In loops that go through memory in strides, warps give way after some trips, so that they stay together
(:mod:`ptxemu.analysis.strides`).  While some are in such a loop, those that have come to a barrier have no turn.

What a warp needs when its turn comes again is in the *record* of the warp (:mod:`ptxemu.analysis.survivors`).  So the values of
all warps share the slots of the function.  A register goes to its place in the record when it is written, and stays there for
all barriers that it outlives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptxemu._runtime import lib
from ptxemu.analysis.common import common_ops
from ptxemu.analysis.masks import representatives
from ptxemu.analysis.strides import TRIPS, bases_of, strided
from ptxemu.analysis.survivors import Point, Survivor, Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES, ONE_WARP, kind_of
from ptxemu.ir.convergence import is_grid_barrier, is_plain_barrier
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.observed import tells_order
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.scratch import bytes_of
from ptxemu.lower.core.segments import Segment
from ptxemu.lower.core.target import Target
from ptxemu.lower.functions import records
from ptxemu.lower.functions.function import FunctionBuilder
from ptxemu.lower.functions.lane_loops import lane_loops
from ptxemu.lower.functions.one_op import lower

WARPS = 32  # of a CTA at most
MOST_BARRIERS = 64  # in the text: LLVM takes the number of barriers times that of values, at each of which all of them meet
LARGEST_RECORD = 4096  # bytes of values; there is one for each warp in the function's frame, all of which is touched
OF_A_WARP = {"local_base", "active", "warpid", "pos", "space", "exited"}  # fields that differ between the warps of a CTA
NUMBERS = 16  # of barriers
MOST_AHEAD = 2  # loads of a trip, beyond which enough is under way without reading ahead
REGISTERS = re.compile(r"%[\w.]+")  # of LLVM
DEFINITION = re.compile(r"  (%[\w.]+) = ")
MOST_COMMON = 64  # ops that are executed once for all warps, though they may be in a part of the kernel that is not run
FEW = 1  # places in the text where a warp gives way
BEGIN, OVER = 0, -1  # places where a warp is; others are numbers of points, from 1 on, in loops from IN_LOOPS on
IN_LOOPS = 1 << 16


def survivors_of(graphs: Sequence[Graph], uniformity: Uniformity, target: Target, together: bool) -> Survivors | None:
    """What outlives the turns of warps in a kernel, ``graphs[0]`` with its device functions; None if it cannot be looped.

    In one that can, warps wait for each other at most where a jump does it, in few places, and need little behind them.  Where a
    CTA is one warp, barriers are no such places, unless somebody is to be told that all warps have come together.
    """
    kernel, *functions = graphs
    if any(graph.spins for graph in graphs):
        return None
    if any(_may_wait(op) for graph in functions for block in graph.blocks for op in block.ops):
        return None
    waits = [op for block in kernel.blocks for op in block.ops if _may_wait(op)]
    if not all(map(is_jump, waits)):
        return None
    if kind_of(uniformity.variant) == ONE_WARP and not together:
        waits = []
    if len(waits) > MOST_BARRIERS or len({op["a"].bits for op in waits}) > 1:
        return None
    tables = any(block.table for block in kernel.blocks)
    if waits and tables:
        return None
    loops = [] if tables else _strided(kernel, uniformity, target)
    homes = representatives(uniformity.linear)
    for chosen in [loops, []] if 0 < len(loops) <= MOST_BARRIERS - len(waits) else [[]]:
        survivors = Survivors(uniformity.linear, homes, set(waits).__contains__, chosen)
        if records.size(survivors, uniformity) <= LARGEST_RECORD:
            return survivors
    return None


def _strided(kernel: Graph, uniformity: Uniformity, target: Target) -> list[Loop]:
    """The loops in which warps give way."""
    found = strided(kernel, uniformity)
    regions = lane_loops(kernel, uniformity, target).values() if found else ()
    lane_by_lane = {header for region in regions for header in region.headers}
    return [loop for loop in found if loop.header not in lane_by_lane and not any(map(_waits, loop.blocks))]


def _waits(block: Block) -> bool:
    return any(map(_may_wait, block.ops))


def _may_wait(op: Op) -> bool:
    """Whether warps may wait at an op for others, or it counts threads for those that do."""
    return bool(op.effects.waits or op.effects.arrives) or is_grid_barrier(op)


def is_jump(op: Op) -> bool:
    """A barrier of the whole CTA, behind which all that are to come have had their turn."""
    return is_plain_barrier(op) and op["a"].bits < NUMBERS


class LoopedContext(Context):
    """``%w`` is the warp whose turn it is; what all warps of the CTA have in common is read once, from the first."""

    any_warp = "%first"
    own_fields = OF_A_WARP

    def __init__(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(uniformity, layout, unit)
        self.head: list[str] = []  # before the first turn
        self.common: set[str] = set()  # what is known there
        self.few_turns = True  # so that registers are worth more than what it costs to compute something again
        self.recorded: dict[Reg, int] = {}  # offsets in the record of registers that are stored there when they are written
        self.flag: int | None = None  # the offset of that of wrapped widenings

    def bind(self, reg: Reg, value: str) -> None:
        super().bind(reg, value)
        if reg in self.recorded and self.outlives_block(reg):
            records.store(self, self.full_type(reg), value, self.recorded[reg])

    def set_wrapped(self) -> None:
        super().set_wrapped()
        if self.flag is not None:
            records.store(self, "i1", "true", self.flag)

    def once(self, key: str, text: str) -> str:
        """Scalars that follow from what all warps have in common are computed before the first turn, if there are many turns."""
        used = REGISTERS.findall(text)
        if key in self._fields or self.few_turns or "<" in text or not self.common.issuperset(used):
            return super().once(key, text)
        self._fields[key] = name = f"%cta.{self.fresh('k')[1:]}"
        self.common.add(name)
        self.head.append(f"  {name} = {text}")
        return name

    def at_entry(self, text: str) -> None:
        self.head.append("  " + text)

    def before_turns(self, op: Op) -> bool:
        """Emit an op before the first turn, for all warps, if it is straight code that depends on nothing of a warp."""
        start = len(self.lines)
        lower(self, op)
        found, self.lines[start:] = self.lines[start:], []
        values = {reg: self.names[reg] for reg in op.results}
        self.forget()
        made = {match[1] for match in map(DEFINITION.match, found) if match}
        used = {name for line in found for name in REGISTERS.findall(line)}
        if len(made) < len(found) or not used - made <= self.common:
            return False
        self.head += found
        self.common |= made
        self.common_values |= values
        return True

    def vary(self, name: str, value: str) -> None:
        """A field of the warp structure has a value of its own in each turn."""
        self._fields[name] = value

    def field(self, name: str) -> str:
        if name in self._fields or name in self.own_fields:
            return super().field(name)
        offset, kind = self.layout.warp_field(name)
        pointer, value = self.fresh("p"), f"%cta.{name.replace('[', '.').replace(']', '')}"
        self.head.append(f"  {pointer} = getelementptr i8, ptr %first, i64 {offset}")
        self.head.append(f"  {value} = load {kind}, ptr {pointer}, align 4, !invariant.load !2")
        self._fields[name] = value
        self.common.add(value)
        return value


class LoopedBuilder(FunctionBuilder):
    """The turns of warps around a function's blocks."""

    ctx: LoopedContext

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, survivors: Survivors) -> None:
        super().__init__(graph, uniformity, layout, unit)
        self.survivors = survivors
        self.common: set[Op] = set()  # ops before the first turn
        self.record = 0  # bytes of a warp's record
        self.places: dict[Reg, int] = {}  # of registers in it
        self.registers_end = 0
        self.beginning: list[str] = []  # what a warp does before its first block
        self.round_end = ""  # the label of the block behind which the first warp has its turn again
        self.resumed: list[tuple[int, str]] = []  # places where turns begin, and their labels
        self.ctx.few_turns = len(survivors.block_of) <= FEW
        self.in_loops, self.turns = bool(survivors.loops), survivors.loops.values()
        waiting = set(survivors.barriers.values())
        self.by_trips = [loop for loop in strided(graph, uniformity) if not waiting.isdisjoint(loop.blocks)] if waiting else []
        self.asking = [loop for loop in survivors.loops.values() if len(bases_of(uniformity, loop)) <= MOST_AHEAD]
        self.held = bool(survivors.loops and survivors.barriers)  # whether warps at barriers may have to pass up their turn

    def _context(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> Context:
        return LoopedContext(uniformity, layout, unit)

    # -- preparation

    def _prepare(self) -> None:
        self._begin_with_common()
        self._find_lane_loops()
        self.segments = self._segmented()
        self._find_shared_values()
        self.ctx.shared_regs |= self.survivors.registers
        self.leads = self._leads()
        self.entries = self._entries()
        self._make_slots()
        self._make_record()

    def _begin_with_common(self) -> None:
        """Before the first turn, what all warps have in common, which is not in their records, if there are many turns."""
        ctx = self.ctx
        if ctx.few_turns or ctx.unit.observed:
            return
        for op in common_ops(self.order, ctx.uniformity, ctx.common_values):
            if len(self.common) < MOST_COMMON and ctx.before_turns(op):
                self.common.add(op)
        self.survivors = self.survivors.without(ctx.common_values)

    def _body(self, block: Block) -> list[Op]:
        return [op for op in super()._body(block) if op not in self.common]

    def _make_record(self) -> None:
        """A place for each register that outlives a barrier, behind the corrections."""
        self.places, self.record = records.places(self.survivors, self.ctx.uniformity, self.record)
        if self.ctx.widenings and self.survivors.block_of:
            self.ctx.flag, self.record = self.record, self.record + 1
            self.beginning += ["  %wrapped = " + records.at(self.record - 1), "  store i1 false, ptr %wrapped, align 1"]
        self.registers_end = self.record
        self.ctx.recorded = {reg: self.places[reg] for reg in self.places if reg not in self.survivors.often_written}

    def _cut(self, ops: list[Op]) -> list[Segment]:
        """Barriers are segments of their own."""
        found: list[Segment] = []
        run: list[Op] = []
        for op in ops:
            if is_jump(op):
                found += [*super()._cut(run), Segment([op])]
                run = []
            else:
                run.append(op)
        return found + super()._cut(run)

    def _corrections(self) -> str:
        """In the record, as they are read so rarely that copies would not pay."""
        if not self.survivors.block_of:
            return super()._corrections()
        self.record = -(-len(self.ctx.widenings) * bytes_of("i64") // records.ALIGN) * records.ALIGN
        return self.ctx.once("corrections", records.at(0))

    def _note_loop(self, block: Block) -> None:
        super()._note_loop(block)
        self.ctx.in_strides = any(block in loop.blocks for loop in self.asking)
        self.ctx.by_trips = any(block in loop.blocks for loop in self.by_trips)

    # -- barriers

    def _segment(self, segment: Segment) -> None:
        if len(segment.ops) == 1 and is_jump(op := segment.ops[0]):
            self._tell(op)
            if op in self.survivors.barriers:
                self._barrier(op)
        else:
            super()._segment(segment)

    def _barrier(self, op: Op) -> None:
        ctx, block = self.ctx, self.survivors.barriers[op]
        ctx.settle()
        self._give_way(op, len(self.resumed) + 1)
        ctx.forget()
        ctx.active = ctx.inst(f"load {MASK}, ptr {self.running[self.mask_home[block]]}, align 64")

    def _again(self, latch: Block) -> None:
        """Go round again, after some trips only when all other warps have had their turn."""
        if latch not in self.survivors.loops:
            super()._again(latch)
            return
        ctx, rest = self.ctx, self.ctx.new_label("rest")
        trips = ctx.scalar.bin("add", "i32", ctx.inst("load i32, ptr %trips, align 4"), "1")
        ctx.stmt(f"store i32 {trips}, ptr %trips, align 4")
        enough = ctx.scalar.icmp("eq", "i32", trips, str(TRIPS))
        ctx.stmt(f"br i1 {enough}, label %{rest}, label %{self._next_trip(latch)}")
        ctx.start(rest)
        self.after_trips(latch)
        super()._again(latch)

    def after_trips(self, latch: Block) -> None:
        """In a loop with strides, the other warps have their turn."""
        if latch in self.survivors.loops:
            if self.held:
                self.ctx.stmt("store i32 1, ptr %behind, align 4")
            self._give_way(latch, IN_LOOPS + len(self.resumed))

    def _give_way(self, point: Point, number: int) -> None:
        """The turn of the next warp; goes on when that of this one comes again."""
        ctx, found = self.ctx, self.survivors.of(point)
        registers = [(ctx.full_type(reg), ctx.slot(reg), self.places[reg]) for reg in found.registers]
        changing = self._changing(found)
        written = [place for place, reg in zip(registers, found.registers) if reg not in ctx.recorded]
        for kind, slot, offset in [*written, *changing]:
            records.store(ctx, kind, ctx.inst(f"load {kind}, ptr {slot}, align 64"), offset)
        ctx.stmt(f"store i32 {number}, ptr %place, align 4")
        ctx.jump("next")
        label = f"resume{len(self.resumed) + 1}"
        self.resumed.append((number, label))
        ctx.start(label)
        flag = [("i1", ctx.wrapped_slot(), ctx.flag)] if ctx.flag is not None else []
        for kind, slot, offset in [*registers, *flag, *changing]:
            ctx.stmt(f"store {kind} {records.load(ctx, kind, offset)}, ptr {slot}, align 64")

    def _tell(self, op: Op) -> None:
        """Where somebody watches barriers, say who arrives."""
        ctx, number = self.ctx, op["a"]
        assert isinstance(number, Imm)
        mask = ctx.bits_of(ctx.active)
        watched = self._watched(mask) if ctx.unit.observed else ctx.field("watched")
        watched = ctx.scalar.icmp("ne", "i32", watched, "0")

        def tell() -> list[str]:
            ctx.call(
                "void", "pe_barrier_watched", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(number.bits)), ("i32", mask),
                attributes="cold",
            )  # fmt: skip
            return []

        ctx.when(watched, tell, None, [], likely=False)

    def _tell_together(self) -> None:
        """Where all warps have come to a barrier, and somebody puts accesses in an order, say so."""
        ctx = self.ctx
        if not self.survivors.barriers or not tells_order(ctx.unit.observed):
            return
        behind = ctx.scalar.icmp("ne", "i32", "%some.stay.behind", "0") if self.held else "false"

        def tell() -> list[str]:
            ctx.call("void", "pe_barrier_together", ("ptr", "%first"), ("ptr", "%places"))
            return []

        ctx.when(ctx.scalar.bin("or", "i1", "%all.over", behind), list, tell, [], likely=False)

    def _watched(self, mask: str) -> str:
        """i32: what somebody watches of a barrier that these lanes come to. A membermask may have changed it."""
        ctx, (offset, _) = self.ctx, self.ctx.layout.warp_field("watched")
        whole = ctx.scalar.icmp("eq", f"i{LANES}", mask, "-1")
        told = ctx.inst(f"select i1 {whole}, i32 {lib.PE_WATCH_ALL}, i32 {lib.PE_WATCH_ALL | lib.PE_WATCH_PARTS}")
        place = ctx.inst(f"getelementptr i8, ptr %w, i64 {offset}")
        return ctx.scalar.bin("and", "i32", ctx.inst(f"load i32, ptr {place}, align 4"), told)

    def _changing(self, found: Survivor) -> list[tuple[str, str, int]]:
        """What may change between barriers and is stored at each: types, slots, offsets in the record, behind the registers."""
        slots = [(self.ctx.full_type(phi.dst), self.phis[phi]) for phi in found.phis]
        slots += [(MASK, self.waiting[block]) for block in found.waiting]
        slots += [(MASK, self.running[block]) for block in found.running]
        places = []
        end = self.registers_end
        for kind, slot in slots:
            end = -(-end // records.alignment(kind)) * records.alignment(kind)
            places.append((kind, slot, end))
            end += bytes_of(kind)
        self.record = max(self.record, end)
        return places

    # -- turns

    def _leave(self) -> None:
        """A warp has exited; the next one has its turn."""
        ctx = self.ctx
        if self.resumed:
            ctx.stmt(f"store i32 {OVER}, ptr %place, align 4")
            left = ctx.scalar.bin("sub", "i32", ctx.inst("load i32, ptr %left, align 4"), "1")
            ctx.stmt(f"store i32 {left}, ptr %left, align 4")
        self._follow()
        ctx.stmt(f"br i1 %round.over, label %{'round' if self.resumed else 'return'}, label %turn")
        if self.resumed:
            ctx.start("round")
            if self.held:
                ctx.stmt("%some.stay.behind = load i32, ptr %behind, align 4")
                ctx.stmt("store i32 %some.stay.behind, ptr %only.behind, align 4")
                ctx.stmt("store i32 0, ptr %behind, align 4")
            ctx.stmt("%some.left = load i32, ptr %left, align 4")
            ctx.stmt("%all.over = icmp eq i32 %some.left, 0")
            self._tell_together()
            self.round_end = ctx.label
            ctx.stmt("br i1 %all.over, label %return, label %turn")
        ctx.start("return")
        ctx.stmt("ret void")

    def _follow(self) -> None:
        """The next warp in memory, and whether there is none."""
        ctx = self.ctx
        ctx.jump("next")
        ctx.start("next")
        stride = ctx.scalar.cast("zext", "i32", ctx.field("warp_stride"), "i64")
        ctx.stmt(f"%following.w = getelementptr i8, ptr %w, i64 {stride}")
        ctx.stmt("%round.over = icmp eq ptr %following.w, %end")

    def _assemble(self, symbol: str) -> str:
        ctx = self.ctx
        first = f"b{self.linear.structure.index[self.order[0]]}"
        parts = [f"define void @{symbol}(ptr noalias %first) {ctx.unit.attributes} {{\nentry:"]
        parts += [*ctx.all_allocas(), *self._memory()]
        running, warps, stride = (ctx.field(name) for name in ("running", "warps", "warp_stride"))
        parts += [*ctx.head, *self._bounds(warps, stride), "  br label %turn", "turn:", *self._turn()]
        parts += [f"  store atomic ptr %w, ptr {running} monotonic, align 8"]
        parts += [*self._place(), *ctx.prologue, *self._nothing_known(), *self._dispatch(), *self.beginning]
        parts += [f"  br label %{first}", *ctx.lines]
        return "\n".join([*parts, "}"])

    def _memory(self) -> list[str]:
        """The records of all warps, and where each of them is."""
        if not self.resumed:
            return []
        return [
            f"  %places = alloca [{WARPS} x i32], align 64",
            f"  %records = alloca [{WARPS} x [{self._record_bytes()} x i8]], align 64",
            "  %left = alloca i32",
            f"  store <{WARPS} x i32> zeroinitializer, ptr %places, align 64",
            *(["  %trips = alloca i32"] if self.in_loops else []),
            *(self._of_rounds() if self.held else []),
        ]

    def _of_rounds(self) -> list[str]:
        """Whether warps have given way in a loop in this round, and whether only such have their turn in it."""
        names = ("%behind", "%only.behind")
        return [f"  {name} = alloca i32" for name in names] + [f"  store i32 0, ptr {name}, align 4" for name in names]

    def _record_bytes(self) -> int:
        return max(-(-self.record // records.ALIGN), 1) * records.ALIGN

    def _bounds(self, warps: str, stride: str) -> list[str]:
        lines = [f"  %cta.bytes = mul i32 {warps}, {stride}", "  %cta.bytes.wide = zext i32 %cta.bytes to i64"]
        lines += ["  %end = getelementptr i8, ptr %first, i64 %cta.bytes.wide"]
        return [*lines, f"  store i32 {warps}, ptr %left, align 4"] if self.resumed else lines

    def _turn(self) -> list[str]:
        """Whose turn it is, and its record."""
        if not self.resumed:
            return ["  %w = phi ptr [ %first, %entry ], [ %following.w, %next ]"]
        values = [("ptr", "w", "%first"), ("i64", "number", "0"), ("ptr", "record", "%records")]
        return [
            f"  %{name} = phi {kind} [ {first}, %entry ], [ %following.{name}, %next ], [ {first}, %{self.round_end} ]"
            for kind, name, first in values
        ]

    def _place(self) -> list[str]:
        """Where the warp is, and the number and the record of the next one."""
        if not self.resumed:
            return []
        return [
            "  %place = getelementptr i32, ptr %places, i64 %number",
            "  %following.number = add nuw i64 %number, 1",
            f"  %following.record = getelementptr i8, ptr %record, i64 {self._record_bytes()}",
        ]

    def _nothing_known(self) -> list[str]:
        """Values of one warp are none of the next one's."""
        ctx = self.ctx
        lines = [f"  store {ctx.full_type(reg)} undef, ptr {slot}, align 64" for reg, slot in ctx.slots.items()]
        masks = [slot for block, slot in self.running.items() if block is not self.order[0]]
        return lines + [f"  store {MASK} undef, ptr {slot}, align 64" for slot in masks]

    def _dispatch(self) -> list[str]:
        if not self.resumed:
            return []
        targets = " ".join(f"i32 {number}, label %{label}" for number, label in self.resumed)
        return [
            *(["  store i32 0, ptr %trips, align 4"] if self.in_loops else []),
            f"  {'%at' if not self.held else '%stopped.at'} = load i32, ptr %place, align 4",
            *(self._hold() if self.held else []),
            f"  switch i32 %at, label %next [ i32 {BEGIN}, label %begin {targets} ]",
            "begin:",
        ]

    def _hold(self) -> list[str]:
        """Warps at barriers pass up their turn as long as others have not come to one."""
        return [
            "  %only.some = load i32, ptr %only.behind, align 4",
            "  %some.behind = icmp ne i32 %only.some, 0",
            f"  %at.barrier = icmp ult i32 %stopped.at, {IN_LOOPS}",
            "  %passed.up = and i1 %some.behind, %at.barrier",
            f"  %at = select i1 %passed.up, i32 {OVER}, i32 %stopped.at",
        ]
