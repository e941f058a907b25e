"""The scheme of a kernel in which the lanes of a warp progress independently (PTX ISA, "Independent Thread Scheduling").

Every block has a mask of lanes that wait to run it.  Control goes through the blocks in linear order, again and again:
a *lap* runs each block that lanes wait for, once.  So other lanes make progress while some spin, at the price that nothing is
known about which lanes run together: values that cross blocks are kept for each lane (:mod:`ptxemu.passes.lane_private`).
Loops that do not spin run until their lanes have left, as lanes that stay together are fast.

At an instruction of several lanes the block waits until all of its members that have not exited are there.  A lap in
which nothing can run is a deadlock.
"""

from __future__ import annotations

from ptxemu.analysis.lane_regions import LaneRegion
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.convergence import meets, membermask, only_meets
from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import B32
from ptxemu.lower.control.sync import poll
from ptxemu.lower.control.warp import equal_lanes
from ptxemu.lower.core.context import MASK, Context, keep_in_memory
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.literals import array
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.segments import Segment, cut
from ptxemu.lower.functions import computed
from ptxemu.lower.functions.function import FunctionBuilder
from ptxemu.lower.functions.one_op import lower
from ptxemu.passes.internal import BARRIER_LEAVE

WAITING_LANES = """define internal i32 @waiting.lanes(ptr %base, ptr %offsets, i32 %count) noinline nounwind {
entry:
  br label %loop
loop:
  %index = phi i32 [ 0, %entry ], [ %next, %loop ]
  %found = phi i32 [ 0, %entry ], [ %more, %loop ]
  %offset.at = getelementptr i32, ptr %offsets, i32 %index
  %offset = load i32, ptr %offset.at, align 4
  %mask.at = getelementptr i8, ptr %base, i32 %offset
  %mask = load i32, ptr %mask.at, align 4
  %more = or i32 %found, %mask
  %next = add i32 %index, 1
  %again = icmp ult i32 %next, %count
  br i1 %again, label %loop, label %done
done:
  ret i32 %more
}"""

STUCK = """define internal void @stuck(ptr %w, ptr %base, ptr %meetings, i32 %count) noinline nounwind cold {
entry:
  br label %loop
loop:
  %index = phi i32 [ 0, %entry ], [ %next, %on ]
  %more = icmp ult i32 %index, %count
  br i1 %more, label %look, label %done
look:
  %offset.at = getelementptr [2 x i32], ptr %meetings, i32 %index
  %offset = load i32, ptr %offset.at, align 4
  %mask.at = getelementptr i8, ptr %base, i32 %offset
  %mask = load i32, ptr %mask.at, align 4
  %some = icmp ne i32 %mask, 0
  br i1 %some, label %report, label %on
report:
  %position.at = getelementptr i32, ptr %offset.at, i32 1
  %position = load i32, ptr %position.at, align 4
  call void @pe_stuck(ptr %w, i32 %position, i32 %mask)
  br label %on
on:
  %next = add i32 %index, 1
  br label %loop
done:
  ret void
}"""


def build(graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, symbol: str) -> None:
    """As :func:`ptxemu.lower.functions.function.build`, for a kernel."""
    unit.waits = True
    unit.definitions.append(IndependentBuilder(graph, uniformity, layout, unit).run(symbol))


@effect("_keep")
def keep(ctx: Context, op: Op) -> None:
    """A value for other blocks: lanes that are elsewhere keep theirs."""
    reg, source = op["d"], op["a"]
    assert reg is not None
    value = ctx.convert(ctx.vector_of(source, reg.type), reg.type.llvm, ctx.storage_type(reg), True)
    whole = ctx.full_type(reg)
    kept = ctx.inst(f"load {whole}, ptr {ctx.slot(reg)}, align 64")
    ctx.bind(reg, ctx.inst(f"select {MASK} {ctx.active}, {whole} {value}, {whole} {kept}"))


class IndependentBuilder(FunctionBuilder):
    """Blocks under masks of their own, run in laps."""

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(graph, uniformity, layout, unit)
        self.mask_home = {block: block for block in self.order}
        self.meetings = {block: block.ops[0] for block in self.order if block.ops and meets(block.ops[0])}
        self.syncs = [block for block, op in self.meetings.items() if only_meets(op)]
        self.leaving = [block for block, op in self.meetings.items() if op.opcode == BARRIER_LEAVE]
        self.done = {id(blocks): self._flag(MASK, "zeroinitializer") for blocks in graph.joint.values()}
        self.moved = self._moved()
        self.released = self._released()

    def _moved(self) -> str:
        """The slot that says whether any block has run in this lap."""
        return self._flag("i1", "false")

    def _released(self) -> str:
        """The slot of the lanes whose bar.warp.sync is complete."""
        return self._flag(MASK, "zeroinitializer")

    def _flag(self, t: str, value: str) -> str:
        slot = self.ctx.alloca(t)
        self.ctx.prologue.append(f"  store {t} {value}, ptr {slot}, align 64")
        return slot

    def _lane_loops(self) -> dict[Block, LaneRegion]:
        return {}

    def _sure_loop(self, block: Block) -> None:
        """None has sure trips: nothing goes on evenly where lanes have values of their own."""

    def _cut(self, ops: list[Op]) -> list[Segment]:
        """Ops keep their places, as registers are written more than once."""
        return cut(self.ctx, ops)

    def _body(self, block: Block) -> list[Op]:
        return block.ops[self._together(block) :]

    def _together(self, block: Block) -> int:
        """How many ops at the start of a block are executed for all places of a meeting: it, and what keeps its results."""
        if block not in self.graph.joint:
            return 0
        return 1 + sum(dst is not None for dst in block.ops[0].dsts)

    def _assemble(self, symbol: str) -> str:
        """Slots stay in memory: as almost any block may follow any other, registers would only be shuffled (ten times the
        compile time on the largest kernels, and no gain)."""
        slots = [*self.ctx.slots.values(), *self.phis.values(), *self.running.values()]
        slots += [slot for block, slot in self.waiting.items() if block not in self.entries]
        slots += ["%waiting"] if self.entries else []
        self.ctx.prologue += map(keep_in_memory, slots)
        return super()._assemble(symbol)

    # -- the order of blocks

    def after(self, block: Block, *direct: Block) -> str:
        index = self.linear.structure.index[block] + 1
        return f"{self.name(self.order[index])}.test" if index < len(self.order) else "lap"

    def _block(self, block: Block) -> None:
        super()._block(block)
        if block is self.order[-1]:
            self._lap()

    def _latch(self, block: Block) -> None:
        """The back edge: another trip at once, or, in a loop that spins, in the next lap."""
        header = block.succs[0]
        self.send(block, header, self.ctx.active)
        if block in self.graph.spins:
            self.ctx.jump(self.after(block))
        else:
            poll(self.ctx)
            self.ctx.jump(f"{self.name(header)}.test")

    def _lap(self) -> None:
        """After the last block: done if all lanes have exited, else start over."""
        self.ctx.start("lap")
        self.ctx.forget()
        self._between_laps()
        self.ctx.jump(f"{self.name(self.order[0])}.test")

    def _between_laps(self) -> None:
        ctx = self.ctx
        left = ctx.scalar.icmp("ne", f"i{LANES}", self._alive(), "0")
        ctx.stmt(f"br i1 {left}, label %lap.left, label %done")
        ctx.start("lap.left")
        stuck = ctx.scalar.bin("xor", "i1", ctx.inst(f"load i1, ptr {self.moved}, align 1"), "true")
        ctx.when(stuck, self._idle, None, [], likely=False)
        ctx.stmt(f"store i1 false, ptr {self.moved}, align 1")
        ctx.call("void", "pe_yield", ("ptr", "%w"))

    def _idle(self) -> list[str]:
        """Nothing can run: lanes at a barrier wait for other warps; if there are none it is a deadlock."""
        if not self.leaving:
            return self._deadlock()

        def suspend() -> list[str]:
            self.ctx.call("void", "pe_barrier_idle", ("ptr", "%w"))
            return []

        self.ctx.when(self._some(self._at_any(self.leaving)), suspend, self._deadlock, [])
        return []

    def _deadlock(self) -> list[str]:
        """Report the first instruction at which lanes wait."""
        ctx = self.ctx
        if not self.meetings:
            return []
        base, offsets = self._masks(list(self.meetings))
        pairs = [number for offset, op in zip(offsets, self.meetings.values()) for number in (offset, op.pos)]
        ctx.helpers["stuck"] = STUCK
        ctx.declare("pe_stuck", "declare void @pe_stuck(ptr, i32, i32) cold")
        ctx.stmt(f"call void @stuck(ptr %w, ptr {base}, ptr {ctx.constant(array('i32', pairs))}, i32 {len(offsets)})")
        return []

    # -- masks

    def _alive(self) -> str:
        """The lanes that have not exited, as an i32."""
        ctx = self.ctx
        offset, _ = ctx.layout.warp_field("exited")
        pointer = ctx.once("exited", f"getelementptr i8, ptr %w, i64 {offset}")
        there = ctx.scalar.bin("xor", "i32", ctx.inst(f"load i32, ptr {pointer}, align 4"), "-1")
        return ctx.scalar.bin("and", "i32", there, ctx.field("active"))

    def _waiting(self, block: Block) -> str:
        return self._bits(self.waiting[block])

    def _bits(self, slot: str) -> str:
        """The mask in a slot as an i32."""
        return self.ctx.inst(f"bitcast {MASK} {self.ctx.inst(f'load {MASK}, ptr {slot}, align 4')} to i{LANES}")

    def _test(self, block: Block) -> None:
        ctx = self.ctx
        ctx.start(f"{self.name(block)}.test")
        ctx.forget()
        taken = self._waiting(block)
        if block in self.meetings:
            ctx.stmt(f"br i1 {self._some(taken)}, label %{self.name(block)}.meet, label %{self.after(block)}")
            ctx.start(f"{self.name(block)}.meet")
            taken = self._gathered(block, taken)
        ctx.stmt(f"br i1 {self._some(taken)}, label %{self.name(block)}, label %{self.after(block)}")

    def _some(self, bits: str) -> str:
        return self.ctx.scalar.icmp("ne", f"i{LANES}", bits, "0")

    def _gathered(self, block: Block, waiting: str) -> str:
        """The waiting lanes that need not wait any longer; the block runs with them."""
        ctx, s = self.ctx, self.ctx.scalar
        if block in self.leaving:
            ready = ctx.call("i32", "pe_barrier_passed", ("ptr", "%w"), ("i32", waiting))
        elif block in self.graph.joint:
            ready = self._joined(block, waiting)
        else:
            ready = self._met(block, waiting)
        ctx.stmt(f"store {MASK} {ctx.mask_from_bits(ready)}, ptr {self.running[block]}, align 4")
        rest = s.bin("and", "i32", waiting, s.bin("xor", "i32", ready, "-1"))
        ctx.stmt(f"store {MASK} {ctx.mask_from_bits(rest)}, ptr {self.waiting[block]}, align 4")
        return ready

    def _met(self, block: Block, waiting: str) -> str:
        """The waiting lanes whose members have all arrived, possibly at different bar.warp.sync instructions."""
        s = self.ctx.scalar
        everywhere = self._at_any(self.syncs) if block in self.syncs else waiting
        absent = s.bin("and", "i32", self._alive(), s.bin("xor", "i32", everywhere, "-1"))
        members = membermask(self.meetings[block])
        ready = self._complete(members, absent, waiting)
        if len(self.syncs) > 1 and block in self.syncs:
            ready = self._release(members, ready, waiting, everywhere)
        return ready

    def _at_any(self, blocks: list[Block]) -> str:
        """Lanes that wait at any of some meetings."""
        ctx = self.ctx
        base, offsets = self._masks(blocks)
        if len(blocks) == 1:
            return ctx.inst(f"load i32, ptr {ctx.inst(f'getelementptr i8, ptr {base}, i64 {offsets[0]}')}, align 4")
        ctx.helpers["waiting.lanes"] = WAITING_LANES
        table = ctx.constant(array("i32", offsets))
        return ctx.inst(f"call i32 @waiting.lanes(ptr {base}, ptr {table}, i32 {len(blocks)})")

    def _masks(self, blocks: list[Block]) -> tuple[str, list[int]]:
        """Where the masks of lanes that wait for meetings are, as offsets from an address."""
        return "%waiting", [4 * self.entries[block] for block in blocks]

    def _entries(self) -> dict[Block, int]:
        return computed.entries(self, self.meetings)

    def _complete(self, members: Operand | None, absent: str, waiting: str) -> str:
        """The lanes of ``waiting`` of whose members none is absent."""
        ctx, s = self.ctx, self.ctx.scalar
        if members is None or isinstance(members, Imm):
            missing = absent if members is None else s.bin("and", "i32", absent, str(members.bits))
            return s.select(s.icmp("eq", "i32", missing, "0"), "i32", waiting, "0")
        missing = ctx.vector.bin("and", "i32", ctx.vector_of(members, B32), ctx.splat("i32", absent))
        none = ctx.bits_of(ctx.vector.icmp("eq", "i32", missing, ctx.vector.int(32, 0)))
        return s.bin("and", "i32", none, waiting)

    def _joined(self, block: Block, waiting: str) -> str:
        """Execute a meeting of several places for all lanes whose members are there; those that wait here may go on."""
        ctx, s = self.ctx, self.ctx.scalar
        places = self.graph.joint[block]
        done = self._bits(self.done[id(places)])
        fresh = s.bin("and", "i32", self._at_any(places), s.bin("xor", "i32", done, "-1"))
        ready = self._same_members(membermask(block.ops[0]), fresh)

        def execute() -> list[str]:
            ctx.stmt(f"store i1 true, ptr {self.moved}, align 1")
            ctx.active = ctx.mask_from_bits(ready)
            for op in block.ops[: self._together(block)]:
                lower(ctx, op)
            return []

        ctx.when(self._some(ready), execute, None, [])
        done = s.bin("or", "i32", done, ready)
        leaving = s.bin("and", "i32", waiting, done)
        rest = s.bin("and", "i32", done, s.bin("xor", "i32", leaving, "-1"))
        ctx.stmt(f"store {MASK} {ctx.mask_from_bits(rest)}, ptr {self.done[id(places)]}, align 64")
        return leaving

    def _same_members(self, members: Operand | None, there: str) -> str:
        """The lanes of ``there`` whose members are all there, with the same membermask."""
        ctx, v = self.ctx, self.ctx.vector
        if isinstance(members, Imm):
            absent = ctx.scalar.bin("and", "i32", self._alive(), ctx.scalar.bin("xor", "i32", there, "-1"))
            return self._complete(members, absent, there)
        assert isinstance(members, Reg)
        masks = ctx.vector_of(members, B32)
        present = v.bin("and", "i32", equal_lanes(ctx, masks, "i32"), ctx.splat("i32", there))
        wanted = v.bin("and", "i32", masks, ctx.splat("i32", self._alive()))
        missing = v.bin("and", "i32", wanted, v.bin("xor", "i32", present, v.int(32, -1)))
        none = ctx.bits_of(v.icmp("eq", "i32", missing, v.int(32, 0)))
        return ctx.scalar.bin("and", "i32", none, there)

    def _release(self, members: Operand | None, ready: str, waiting: str, everywhere: str) -> str:
        """Lanes that met at different instructions leave one after the other: remember whose barrier is complete."""
        ctx, s = self.ctx, self.ctx.scalar
        done = self._bits(self.released)
        assert members is not None
        if isinstance(members, Imm):
            partners = s.select(self._some(ready), "i32", str(members.bits), "0")
        else:
            mine = ctx.vector.select(ctx.mask_from_bits(ready), "i32", ctx.vector_of(members, B32), ctx.vector.int(32, 0))
            name = f"llvm.vector.reduce.or.v{LANES}i32"
            partners = ctx.call("i32", name, (f"<{LANES} x i32>", mine))
        done = s.bin("or", "i32", done, s.bin("and", "i32", partners, everywhere))
        leaving = s.bin("or", "i32", ready, s.bin("and", "i32", done, waiting))
        done = s.bin("and", "i32", done, s.bin("xor", "i32", leaving, "-1"))
        ctx.stmt(f"store {MASK} {ctx.mask_from_bits(done)}, ptr {self.released}, align 4")
        return leaving

    def _load_mask(self, block: Block) -> None:
        ctx = self.ctx
        ctx.stmt(f"store i1 true, ptr {self.moved}, align 1")
        if block in self.meetings:
            ctx.active = ctx.inst(f"load {MASK}, ptr {self.running[block]}, align 64")
        else:
            super()._load_mask(block)
