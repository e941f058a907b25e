"""Kernels as one function for all warps of a CTA, without a stack for each.

The function is called for the first warp.  Where a warp has come to its end or to a barrier of the whole CTA, control goes
to the next warp, and behind the last one to the first again, until all have exited.  So a barrier is a jump: every warp
that has not exited has come to one when its turn comes round.

What a warp needs behind a barrier is copied to the *record* of the warp before, and back when its turn comes
(:mod:`ptxemu.analysis.survivors`).  So the values of all warps share the slots of the function.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.analysis.masks import representatives
from ptxemu.analysis.survivors import Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.convergence import is_grid_barrier
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Imm, Op
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
    return survivors if all(_size(survivors, op, uniformity) <= LARGEST_RECORD for op in survivors.barriers) else None


def _may_wait(op: Op) -> bool:
    """Whether warps may wait at an op for others, or it counts threads for those that do."""
    return bool(op.effects.waits or op.effects.arrives) or is_grid_barrier(op)


def _size(survivors: Survivors, op: Op, uniformity: Uniformity) -> int:
    """Bytes of the values that outlive a barrier."""
    found = survivors.of(op)
    values = [*found.registers, *(phi.dst for phi in found.phis)]
    return sum(reg.type.bytes * (1 if uniformity.shape(reg) is not None else LANES) for reg in values)


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
        slot = self.ctx.once(f"correction.{self.record}", f"getelementptr i8, ptr %record, i64 {self.record}")
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
        ctx, block = self.ctx, self.survivors.block_of[op]
        self._tell(op)
        ctx.settle()
        slots = self._surviving(op)
        offsets = self._offsets([kind for kind, _ in slots])
        for (kind, slot), offset in zip(slots, offsets):
            _move(ctx, kind, slot, _at(ctx, offset))
        label = f"resume{len(self.resumed) + 1}"
        self.resumed.append(label)
        ctx.stmt(f"store i32 {len(self.resumed)}, ptr %place, align 4")
        ctx.jump("next")
        ctx.start(label)
        ctx.forget()
        for (kind, slot), offset in zip(slots, offsets):
            _move(ctx, kind, _at(ctx, offset), slot)
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

    def _surviving(self, op: Op) -> list[tuple[str, str]]:
        """The slots of what is needed behind a barrier, with their types."""
        ctx, found = self.ctx, self.survivors.of(op)
        slots = [(ctx.full_type(reg), ctx.slot(reg)) for reg in found.registers if reg in ctx.shared_regs]
        slots += [(ctx.full_type(phi.dst), self.phis[phi]) for phi in found.phis]
        slots += [(MASK, self.waiting[block]) for block in found.waiting]
        slots += [(MASK, self.running[block]) for block in found.running]
        if ctx.corrections:
            slots.append(("i1", ctx.wrapped_slot()))
        return slots

    def _offsets(self, kinds: list[str]) -> list[int]:
        """Places in the record, behind what is always there."""
        offsets = []
        end = len(self.ctx.corrections) * bytes_of(WORD)
        for kind in kinds:
            size = bytes_of(kind)
            step = min(size, ALIGN)
            end = -(-end // step) * step
            offsets.append(end)
            end += size
        self.record = max(self.record, end)
        return offsets

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


def _at(ctx: Context, offset: int) -> str:
    return ctx.inst(f"getelementptr i8, ptr %record, i64 {offset}")


def _move(ctx: Context, kind: str, source: str, target: str) -> None:
    align = min(bytes_of(kind), ALIGN)
    ctx.stmt(f"store {kind} {ctx.inst(f'load {kind}, ptr {source}, align {align}')}, ptr {target}, align {align}")
