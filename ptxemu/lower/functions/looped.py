"""Kernels as one function for all warps of a CTA, without a stack for each.

The function is called for the first warp.  Where a warp has come to its end or to a barrier of the whole CTA, control goes
to the next warp, and behind the last one to the first again, until all have exited.  So a barrier is a jump: every warp
that has not exited has come to one when its turn comes round.

What a warp needs behind a barrier is copied to the *record* of the warp, and back when its turn comes
(:mod:`ptxemu.analysis.survivors`).  So the values of all warps share the slots of the function.  A register goes to its place in
the record when it is written, and stays there for all barriers that it outlives.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.analysis.lifetimes import place
from ptxemu.analysis.masks import representatives
from ptxemu.analysis.survivors import Survivor, Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.convergence import is_grid_barrier
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.lower.core.context import MASK, WORD, Context
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.scratch import bytes_of
from ptxemu.lower.core.segments import Segment, cut
from ptxemu.lower.functions.function import FunctionBuilder

WARPS = 32  # of a CTA at most
ALIGN = 64
MOST_BARRIERS = 64  # in the text: LLVM takes the number of barriers times that of values, at each of which all of them meet
LARGEST_RECORD = 4096  # bytes of values; there is one for each warp in the function's frame, all of which is touched
OF_A_WARP = {"local_base", "active", "warpid", "pos", "space", "exited"}  # fields that differ between the warps of a CTA
NUMBERS = 16  # of barriers
BEGIN, OVER = 0, -1  # places where a warp is; others are numbers of barriers, from 1 on


def survivors_of(graphs: Sequence[Graph], uniformity: Uniformity) -> Survivors | None:
    """What outlives the barriers of a kernel, ``graphs[0]`` with its device functions; None if it cannot be looped.

    In one that can, warps wait for each other at most where a jump does it, in few places, and need little behind them.
    """
    kernel, *functions = graphs
    if any(graph.spins for graph in graphs):
        return None
    if any(_may_wait(op) for graph in functions for block in graph.blocks for op in block.ops):
        return None
    waits = [op for block in kernel.blocks for op in block.ops if _may_wait(op)]
    if not all(map(is_jump, waits)) or len(waits) > MOST_BARRIERS or len({op["a"].bits for op in waits}) > 1:
        return None
    if waits and any(block.table for block in kernel.blocks):
        return None
    survivors = Survivors(uniformity.linear, representatives(uniformity.linear), is_jump)
    return survivors if _size(survivors, uniformity) <= LARGEST_RECORD else None


def _may_wait(op: Op) -> bool:
    """Whether warps may wait at an op for others, or it counts threads for those that do."""
    return bool(op.effects.waits or op.effects.arrives) or is_grid_barrier(op)


def _size(survivors: Survivors, uniformity: Uniformity) -> int:
    """Bytes of the values of a record."""
    _, registers = _places(survivors, uniformity, 0)
    phis = [survivors.of(op).phis for op in survivors.barriers]
    return registers + max((sum(_bytes(phi.dst, uniformity) for phi in waiting) for waiting in phis), default=0)


def _places(survivors: Survivors, uniformity: Uniformity, start: int) -> tuple[dict[Reg, int], int]:
    """Offsets in the record of the registers that outlive barriers, from ``start`` on, and their end."""
    sizes = {reg: _bytes(reg, uniformity) for reg in survivors.lifetimes}
    places: dict[Reg, int] = {}
    end = start
    for size in sorted(set(sizes.values()), reverse=True):  # powers of two, so that all are aligned
        lifetimes = [(reg, life, size) for reg, life in survivors.lifetimes.items() if sizes[reg] == size]
        found, end = place(lifetimes, end)
        places.update(found)
    return places, end


def _bytes(reg: Reg, uniformity: Uniformity) -> int:
    return reg.type.bytes * (1 if uniformity.shape(reg) is not None else LANES)


def is_jump(op: Op) -> bool:
    """A barrier of the whole CTA that gives no result, with a number that is known."""
    number = op["a"] if op.effects.waits == "cta" and not op.dsts else None
    return isinstance(number, Imm) and number.bits < NUMBERS and op["b"] is None


def build(graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, symbol: str, survivors: Survivors) -> None:
    """As :func:`ptxemu.lower.functions.function.build`, for a kernel; ``survivors`` are those of :func:`survivors_of`."""
    unit.definitions.append(LoopedBuilder(graph, uniformity, layout, unit, survivors).run(symbol))


class LoopedContext(Context):
    """``%w`` is the warp whose turn it is; what all warps of the CTA have in common is read once, from the first."""

    any_warp = "%first"

    def __init__(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(uniformity, layout, unit)
        self.head: list[str] = []  # before the first turn
        self.recorded: dict[Reg, int] = {}  # offsets in the record of registers that are stored there when they are written
        self.flag: int | None = None  # the offset of that of wrapped widenings

    def bind(self, reg: Reg, value: str) -> None:
        super().bind(reg, value)
        if reg in self.recorded:
            _store(self, self.full_type(reg), value, self.recorded[reg])

    def set_wrapped(self) -> None:
        super().set_wrapped()
        if self.flag is not None:
            _store(self, "i1", "true", self.flag)

    def field(self, name: str) -> str:
        if name in self._fields or name in OF_A_WARP:
            return super().field(name)
        offset, kind = self.layout.warp_field(name)
        pointer, value = self.fresh("p"), f"%cta.{name.replace('[', '.').replace(']', '')}"
        self.head.append(f"  {pointer} = getelementptr i8, ptr %first, i64 {offset}")
        self.head.append(f"  {value} = load {kind}, ptr {pointer}, align 4, !invariant.load !2")
        self._fields[name] = value
        return value


class LoopedBuilder(FunctionBuilder):
    """The turns of warps around a function's blocks."""

    ctx: LoopedContext

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, survivors: Survivors) -> None:
        super().__init__(graph, uniformity, layout, unit)
        self.survivors = survivors
        self.record = 0  # bytes of a warp's record
        self.places: dict[Reg, int] = {}  # of registers in it
        self.registers_end = 0
        self.beginning: list[str] = []  # what a warp does before its first block
        self.resumed: list[str] = []  # labels behind the barriers

    def _context(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> Context:
        return LoopedContext(uniformity, layout, unit)

    # -- preparation

    def _prepare(self) -> None:
        self.lane_loops = self._lane_loops()
        self.segments = self._segmented()
        self._find_shared_values()
        self.ctx.shared_regs |= self.survivors.within_blocks
        self.entries = self._entries()
        self._make_slots()
        self._make_record()

    def _make_record(self) -> None:
        """A place for each register that outlives a barrier, behind the corrections."""
        self.places, self.record = _places(self.survivors, self.ctx.uniformity, self.record)
        if self.ctx.corrections and self.survivors.barriers:
            self.ctx.flag, self.record = self.record, self.record + 1
            self.beginning += ["  %wrapped = " + _at(self.record - 1), "  store i1 false, ptr %wrapped, align 1"]
        self.registers_end = self.record
        self.ctx.recorded = {reg: self.places[reg] for reg in self.places if reg not in self.survivors.often_written}

    def _cut(self, ops: list[Op]) -> list[Segment]:
        """Barriers are segments of their own."""
        found: list[Segment] = []
        run: list[Op] = []
        for op in ops:
            if is_jump(op):
                found += [*cut(self.ctx, run), Segment([op])]
                run = []
            else:
                run.append(op)
        return found + cut(self.ctx, run)

    def _correction(self) -> str:
        """In the record, as it is read so rarely that copies would not pay."""
        if not self.survivors.barriers:
            return super()._correction()
        slot = self.ctx.once(f"correction.{self.record}", _at(self.record))
        self.beginning.append(f"  store volatile {WORD} zeroinitializer, ptr {slot}, align 64")
        self.record += bytes_of(WORD)
        return slot

    # -- barriers

    def _segment(self, segment: Segment) -> None:
        if len(segment.ops) == 1 and is_jump(segment.ops[0]):
            self._barrier(segment.ops[0])
        else:
            super()._segment(segment)

    def _barrier(self, op: Op) -> None:
        ctx, block, found = self.ctx, self.survivors.block_of[op], self.survivors.of(op)
        self._tell(op)
        ctx.settle()
        registers = [(ctx.full_type(reg), ctx.slot(reg), self.places[reg]) for reg in found.registers]
        changing = self._changing(found)
        written = [place for place, reg in zip(registers, found.registers) if reg not in ctx.recorded]
        for kind, slot, offset in [*written, *changing]:
            _store(ctx, kind, ctx.inst(f"load {kind}, ptr {slot}, align 64"), offset)
        label = f"resume{len(self.resumed) + 1}"
        self.resumed.append(label)
        ctx.stmt(f"store i32 {len(self.resumed)}, ptr %place, align 4")
        ctx.jump("next")
        ctx.start(label)
        ctx.forget()
        flag = [("i1", ctx.wrapped_slot(), ctx.flag)] if ctx.flag is not None else []
        for kind, slot, offset in [*registers, *flag, *changing]:
            ctx.stmt(f"store {kind} {_load(ctx, kind, offset)}, ptr {slot}, align 64")
        ctx.active = ctx.inst(f"load {MASK}, ptr {self.running[self.mask_home[block]]}, align 64")

    def _tell(self, op: Op) -> None:
        """Where somebody watches barriers, say who arrives."""
        ctx, number = self.ctx, op["a"]
        assert isinstance(number, Imm)
        watched = ctx.scalar.icmp("ne", "i32", ctx.field("watched"), "0")
        mask = ctx.bits_of(ctx.active)

        def tell() -> list[str]:
            ctx.call(
                "void", "pe_barrier_watched", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(number.bits)), ("i32", mask),
                attributes="cold",
            )  # fmt: skip
            return []

        ctx.when(watched, tell, None, [], likely=False)

    def _changing(self, found: Survivor) -> list[tuple[str, str, int]]:
        """What may change between barriers and is stored at each: types, slots, offsets in the record, behind the registers."""
        slots = [(self.ctx.full_type(phi.dst), self.phis[phi]) for phi in found.phis]
        slots += [(MASK, self.waiting[block]) for block in found.waiting]
        slots += [(MASK, self.running[block]) for block in found.running]
        places = []
        end = self.registers_end
        for kind, slot in slots:
            end = -(-end // _alignment(kind)) * _alignment(kind)
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
        ctx.jump("next")
        ctx.start("next")
        stride = ctx.scalar.cast("zext", "i32", ctx.field("warp_stride"), "i64")
        ctx.stmt(f"%following = getelementptr i8, ptr %w, i64 {stride}")
        ctx.stmt("%round.over = icmp eq ptr %following, %end")
        ctx.stmt(f"br i1 %round.over, label %{'round' if self.resumed else 'return'}, label %turn")
        if self.resumed:
            ctx.start("round")
            ctx.stmt("%some.left = load i32, ptr %left, align 4")
            ctx.stmt("%all.over = icmp eq i32 %some.left, 0")
            ctx.stmt("br i1 %all.over, label %return, label %turn")
        ctx.start("return")
        ctx.stmt("ret void")

    def _assemble(self, symbol: str) -> str:
        ctx = self.ctx
        first = f"b{self.linear.structure.index[self.order[0]]}"
        rounds = ", [ %first, %round ]" if self.resumed else ""
        parts = [f"define void @{symbol}(ptr noalias %first) {ctx.unit.attributes} {{\nentry:"]
        parts += [*ctx.all_allocas(), *self._memory()]
        running, warps, stride = (ctx.field(name) for name in ("running", "warps", "warp_stride"))
        parts += [*ctx.head, *self._bounds(warps, stride), "  br label %turn", "turn:"]
        parts += [f"  %w = phi ptr [ %first, %entry ], [ %following, %next ]{rounds}"]
        parts += [f"  store volatile ptr %w, ptr {running}, align 8"]
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
        ]

    def _record_bytes(self) -> int:
        return max(-(-self.record // ALIGN), 1) * ALIGN

    def _bounds(self, warps: str, stride: str) -> list[str]:
        lines = [f"  %cta.bytes = mul i32 {warps}, {stride}", "  %cta.bytes.wide = zext i32 %cta.bytes to i64"]
        lines += ["  %end = getelementptr i8, ptr %first, i64 %cta.bytes.wide"]
        return [*lines, f"  store i32 {warps}, ptr %left, align 4"] if self.resumed else lines

    def _place(self) -> list[str]:
        """The warp's record, and where it is."""
        if not self.resumed:
            return []
        offset, _ = self.ctx.layout.warp_field("warpid")
        return [
            f"  %number.at = getelementptr i8, ptr %w, i64 {offset}",
            "  %number = load i32, ptr %number.at, align 4, !invariant.load !2",
            "  %place = getelementptr i32, ptr %places, i32 %number",
            f"  %record = getelementptr [{self._record_bytes()} x i8], ptr %records, i32 %number",
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
        targets = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(self.resumed, 1))
        return [
            "  %at = load i32, ptr %place, align 4",
            f"  switch i32 %at, label %next [ i32 {BEGIN}, label %begin {targets} ]",
            "begin:",
        ]


def _store(ctx: Context, kind: str, value: str, offset: int) -> None:
    """Store a value in the record of the warp."""
    ctx.stmt(f"store {kind} {value}, ptr {ctx.inst(_at(offset))}, align {_alignment(kind)}")


def _load(ctx: Context, kind: str, offset: int) -> str:
    return ctx.inst(f"load {kind}, ptr {ctx.inst(_at(offset))}, align {_alignment(kind)}")


def _at(offset: int) -> str:
    """An address in the record."""
    return f"getelementptr i8, ptr %record, i64 {offset}"


def _alignment(kind: str) -> int:
    return min(bytes_of(kind), ALIGN)
