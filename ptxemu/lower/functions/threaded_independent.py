"""Threaded code (:mod:`ptxemu.lower.functions.threaded`) of kernels whose lanes progress independently
(:mod:`ptxemu.lower.functions.independent`).

A lap is one walk through the table.  Who may pass a meeting is decided by routines, except for a meeting of several places.
That is LLVM code of its own, as is the end of a lap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ptxemu.analysis.lifetimes import Lifetime, Lifetimes
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.convergence import membermask
from ptxemu.ir.graph import Block, Graph, given, reads, writes
from ptxemu.ir.ops import Reg
from ptxemu.lower.control.sync import poll
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.functions.control_steps import CURRENT, MOVED, RELEASED
from ptxemu.lower.functions.independent import IndependentBuilder
from ptxemu.lower.functions.steps import Operands, RoutineContext, Way
from ptxemu.lower.functions.threaded import ThreadedBuilder
from ptxemu.passes.internal import KEEP


def build(graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, symbol: str) -> None:
    """As :func:`ptxemu.lower.functions.independent.build`."""
    unit.waits = True
    unit.definitions.append(ThreadedIndependentBuilder(graph, uniformity, layout, unit).run(symbol))


class ThreadedIndependentBuilder(ThreadedBuilder, IndependentBuilder):
    """Steps in the order of the blocks; masks are where those of threaded code are."""

    def _moved(self) -> str:
        return _mask(self.ctx, "moved", MOVED)

    def _released(self) -> str:
        return _mask(self.ctx, "released", RELEASED)

    def _place_masks(self) -> int:
        end = super()._place_masks()
        for block in self.graph.joint:
            self.waiting[block] = _mask(self.ctx, f"waiting.{self.name(block)}", self.lanes_waiting[block])
            self.running[block] = _mask(self.ctx, f"running.{self.name(block)}", self.lanes_running[block])
        return end

    def _masks(self, blocks: list[Block]) -> tuple[str, list[int]]:
        return "%frame", [self.lanes_waiting[block] for block in blocks]

    def _lifetimes(self, same: Mapping[Reg, Reg]) -> Lifetimes:
        """Lanes may be anywhere, so that only what one block makes for itself lives for less than the whole time."""
        found = Lifetimes(self.linear.structure, same)
        always = Lifetime(0, max((life.last for life in found.of.values()), default=0))
        local = self._local_values()
        found.of = {reg: life if reg in local else always for reg, life in found.of.items()}
        found.handed = dict.fromkeys(found.handed, always)
        return found

    def _local_values(self) -> set[Reg]:
        """Registers that only the block that defines them reads, once for each time that it does."""
        home = {reg: block for block in self.order for op in block.ops for reg in writes(op) if op.row is not KEEP}
        for block in self.order:
            used = [reg for op in block.ops for reg in reads(op)]
            used += given(block)
            used += [block.cond] if block.cond is not None else []
            for reg in used:
                if home.get(reg) is not block:
                    home.pop(reg, None)
        return set(home)

    def _start(self) -> int:
        return self.lanes_waiting[self.order[0]]

    def _enter(self, block: Block) -> None:
        waiting, running, behind = self.lanes_waiting[block], self.lanes_running[block], self._way(block)
        if block not in self.meetings:
            self.steps.control("enter", waiting, running, behind)
            return
        self.steps.control("test", waiting, behind)
        if block in self.graph.joint:
            self._outside(partial(self._gather, block))
        else:
            self._meet(block)
        self.steps.control("admit", running, behind)

    def _gather(self, block: Block) -> None:
        """Choose the lanes that need not wait any more."""
        self.ctx.active = self.ctx.active_bits = ""
        self._gathered(block, self._waiting(block))

    def _meet(self, block: Block) -> None:
        """The same by a routine, one for all meetings of a kind; it knows where the masks of the kernel's others are."""
        op, operands = self.meetings[block], Operands(self.ctx)
        members = None if block in self.leaving else membermask(op)
        number = operands.register(members, self.ctx.offset_of(members)) if isinstance(members, Reg) else members
        words = [operands.word(self.lanes_waiting[block]), operands.word(self.lanes_running[block])]
        key = "meet", self.table, block in self.leaving, block in self.syncs, number, tuple(operands.classes)
        self.steps.add(key, operands, op.pos, partial(self._meet_in, block, words))

    def _meet_in(self, block: Block, words: list[int], ctx: RoutineContext) -> None:
        outer, self.ctx = self.ctx, ctx  # type: ignore[assignment]  # no places are asked for
        for name, word in zip(("waiting", "running"), words):
            ctx.prologue.append(f"  %{name}.offset = load i32, ptr {ctx.operand(word)}, align 4")
            ctx.prologue.append(f"  %{name} = getelementptr i8, ptr %frame, i32 %{name}.offset")
        self._released()
        self.waiting[block], self.running[block] = "%waiting", "%running"
        self._gather(block)
        self.ctx = outer

    def _way(self, block: Block, *direct: Block) -> Way:
        index = self.linear.structure.index[block] + 1
        return Way(self.order[index] if index < len(self.order) else None)

    def _finish(self) -> None:
        self._outside(self._between_laps)
        self.steps.control("go", Way(self.order[0]))

    def _latch(self, block: Block) -> None:
        """Another trip at once, or, in a loop that spins, in the next lap."""
        spins = block in self.graph.spins
        if not spins:
            self.steps.plain("poll", poll)
        self._send(block, block.succs[0], CURRENT, self._way(block) if spins else Way(block.succs[0]))


def _mask(ctx: Context, name: str, place: int) -> str:
    """The address of a mask in the frame."""
    ctx.prologue.append(f"  %{name} = getelementptr i8, ptr %frame, i64 {place}")
    return f"%{name}"
