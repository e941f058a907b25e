"""The scheme of large functions that is quick to compile: one table of steps (:mod:`ptxemu.lower.functions.steps`), whose control
flow is that of :mod:`ptxemu.lower.functions.function`.

Registers lie in a frame on the host's stack, where those with disjoint lifetimes share places; masks of lanes are 32-bit
numbers.  LLVM sees only data and the routines, so that its time hardly depends on the size of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ptxemu.analysis.lifetimes import Lifetimes, place
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Block, Graph, Phi
from ptxemu.ir.ops import Imm, Reg
from ptxemu.ir.types import B32
from ptxemu.lower.control.sync import note_exit, poll
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.layout import KernelLayout, align_up
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.functions.control_steps import CURRENT, NOWHERE, OTHER, ROUTINES, TAKEN
from ptxemu.lower.functions.function import FunctionBuilder
from ptxemu.lower.functions.homes import Homes, same_values
from ptxemu.lower.functions.one_op import lower
from ptxemu.lower.functions.routines import PROTOTYPE
from ptxemu.lower.functions.steps import PLACE, REGISTERS, FrameContext, Steps, Way
from ptxemu.passes.internal import ARGUMENTS, COPY_BACK, COPY_OUT, ENTER, RESULTS

# Rows that concern the function as a whole, or the arguments and results of a call.
WHOLE = {ENTER, ARGUMENTS, RESULTS, COPY_OUT, COPY_BACK}


def build(graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, symbol: str) -> None:
    """As :func:`ptxemu.lower.functions.function.build`."""
    unit.definitions.append(ThreadedBuilder(graph, uniformity, layout, unit).run(symbol))


class ThreadedBuilder(FunctionBuilder):
    """Blocks whose ops and ends are steps. Blocks are the labels of their steps, None is that of the end."""

    ctx: FrameContext

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(graph, uniformity, layout, unit)
        self.steps = Steps(self.ctx, lower)
        self.handed: dict[Phi, Reg] = {}  # what is handed over to a phi
        self.takers: dict[Block, list[Phi]] = {}  # the phis of a block that something is handed over to
        self.lanes_waiting: dict[Block, int] = {}  # places of masks: lanes that have been sent to a block
        self.lanes_running: dict[Block, int] = {}  # and those that it last ran with
        self.frame_bytes = 0
        self.outside = 0
        self.table = ""

    def run(self, symbol: str) -> str:
        self.table = f"@table.{symbol}"
        return super().run(symbol)

    def _context(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> FrameContext:
        return FrameContext(uniformity, layout, unit)

    def _prepare(self) -> None:
        same = same_values(self.linear, self.ctx.alike)
        lifetimes = self._lifetimes(same)
        homes = Homes(self.linear, self.ctx.alike, same, lifetimes, self._in_place())
        sized = [(value, life, self._bytes_of(value)) for value, life in homes.lifetimes().items()]
        offsets, self.frame_bytes = place(sized, self._place_masks())
        self.ctx.sharing = homes
        self.ctx.offsets = {value: offset for value, offset in offsets.items() if not isinstance(value, Phi)}
        for block in self.order:
            self.takers[block] = homes.takers(block)
            self.handed.update((phi, phi.dst) for phi in self.takers[block])
        for phi in homes.apart:
            self.ctx.offsets[self._handed(phi)] = offsets[phi]

    def _bytes_of(self, value: Reg | Phi) -> int:
        return self.ctx.bytes_of(value.dst if isinstance(value, Phi) else value)

    def _lifetimes(self, same: Mapping[Reg, Reg]) -> Lifetimes:
        return Lifetimes(self.linear.structure, same)

    def _in_place(self) -> set[Reg]:
        """Registers that may lie where what they are made of does: routines read that before they write."""
        ops = (op for block in self.order for op in block.ops if len(op.dsts) == 1 and op.row.lower in ELEMENTWISE)
        return {dst for op in ops for dst in op.dsts if dst is not None}

    def _place_masks(self) -> int:
        """Masks lie in the frame too, where LLVM leaves them; returns where the registers start."""
        end = REGISTERS
        for block in self.order:
            if self.mask_home[block] is block:
                self.lanes_running[block], self.lanes_waiting[block] = end, end + 4
                end += 8
        return align_up(end, PLACE)

    def _handed(self, phi: Phi) -> Reg:
        """A register for what waits to become a phi's result: of the same type and shape."""
        ctx, dst = self.ctx, phi.dst
        reg = self.handed[phi] = Reg(f"{dst.name}.handed", dst.type)
        ctx.uniformity.known[reg] = ctx.shape(dst)
        if dst in ctx.storage:
            ctx.storage[reg] = ctx.storage[dst]
        if dst in ctx.raw:
            ctx.raw.add(reg)
        return reg

    def _assemble(self, symbol: str) -> str:
        ctx = self.ctx
        ctx.declare("pe_run_steps", "declare i32 @pe_run_steps(ptr, ptr, ptr)")
        ctx.unit.definitions.append(f"{self.table} = private unnamed_addr constant {self.steps.table()}")
        ctx.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        ctx.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
        frame = f"  %frame = alloca [{self.frame_bytes} x i8], align 64\n  %at = alloca ptr, align 8"
        clear = [f"  call void @llvm.memset.p0.i64(ptr align 64 %frame, i8 0, i64 {self.frame_bytes}, i1 false)"]
        clear.append(f"  %routines = getelementptr i8, ptr %frame, i64 {ROUTINES}")
        clear.append("  store ptr @routines, ptr %routines, align 8")
        if ctx.layout.framed:
            clear.append("  store i64 %stack, ptr %frame, align 64")
        everyone = "%mask" if ctx.layout.framed else ctx.field("active")
        head = f"internal {PROTOTYPE.format(symbol)}" if ctx.layout.framed else f"void @{symbol}(ptr noalias %w)"
        parts = [f'define {head} noinline optnone nounwind "probe-stack"="inline-asm" {{\nentry:']
        parts += [frame, *ctx.all_allocas(), *clear, *ctx.prologue]
        parts.append(f"  %first = getelementptr i8, ptr %frame, i64 {self._start()}")
        parts += [f"  store i32 {everyone}, ptr %first, align 4", f"  store ptr {self.table}, ptr %at, align 8"]
        parts += ["  br label %run", "run:", "  %step = load ptr, ptr %at, align 8"]
        parts.append("  %reason = call i32 @pe_run_steps(ptr %w, ptr %frame, ptr %step)")
        ways = " ".join(f"i32 {number}, label %op{number}" for number in range(1, self.outside + 1))
        parts.append(f"  switch i32 %reason, label %done [ {ways} ]")
        return "\n".join([*parts, *ctx.lines, "}"])

    # -- blocks

    def _block(self, block: Block) -> None:
        self.steps.label(block)
        self._enter(block)
        self._fill(block)
        self._terminate(block)
        if block is self.order[-1]:
            self.steps.label(None)
            self._finish()

    def _start(self) -> int:
        """The place of the lanes that begin."""
        return self.lanes_running[self.order[0]]

    def _enter(self, block: Block) -> None:
        """Choose the lanes that run a block."""
        if self.mask_home[block] is not block or block is self.order[0]:
            self.steps.control("resume", self.lanes_running[self.mask_home[block]])
        else:
            self.steps.control("enter", self.lanes_waiting[block], self.lanes_running[block], self._way(block))

    def _finish(self) -> None:
        """What comes after the last block."""
        self.steps.control("stop", 0)

    def _way(self, block: Block, *direct: Block) -> Way:
        """Where control goes from ``block`` for lanes bound for ``direct``."""
        return Way(self.linear.after(block, direct))

    def _fill(self, block: Block) -> None:
        for phi in self.takers[block]:
            if (handed := self.handed[phi]) is not phi.dst:
                self.steps.copy(handed, phi.dst)
        for op in self._body(block):
            if op.call is not None or op.row in WHOLE:
                self._outside(partial(lower, self.ctx, op))
            else:
                self.steps.op(op)

    def _outside(self, emit: Callable[[], None]) -> None:
        """LLVM instructions of their own, for which the function leaves the table."""
        ctx = self.ctx
        self.outside += 1
        self.steps.control("stop", self.outside)
        ctx.start(f"op{self.outside}")
        ctx.forget()
        bits = ctx.inst(f"load i32, ptr {ctx.inst(f'getelementptr i8, ptr %frame, i64 {CURRENT}')}, align 4")
        ctx.active, ctx.active_bits = ctx.mask_from_bits(bits), bits
        emit()
        ctx.stmt(f"store ptr getelementptr (i8, ptr {self.table}, i64 {self.steps.end}), ptr %at, align 8")
        ctx.jump("run")

    # -- edges

    def _steps_to(self, block: Block, succ: Block, again: bool = False) -> None:
        """The steps for the phis of ``succ``."""
        waits = again or self.linear.waits(block, succ)
        ctx, steps = self.ctx, self.steps
        for phi in self.takers[succ]:
            arg, target = phi.args[block], self.handed[phi]
            if waits and not ctx.is_scalar(phi.dst):
                steps.special("merge", _merge, arg, target)
            elif isinstance(arg, Reg) and ctx.register_class(arg) == ctx.register_class(target):
                steps.copy(arg, target)
            else:
                steps.special("hand", _hand, arg, target)

    def _send(self, block: Block, succ: Block, lanes: int, onwards: Way) -> None:
        """Lanes leave for ``succ``, and control goes on."""
        if self.takers[succ] and lanes != CURRENT:
            self.steps.control("resume", lanes)
        self._steps_to(block, succ)
        if self.mask_home[succ] is succ:
            self.steps.control("join" if self.linear.waits(block, succ) else "send", lanes, self.lanes_waiting[succ], onwards)
        else:
            self.steps.control("go", onwards)

    def _go(self, block: Block, *direct: Block) -> None:
        self.steps.control("go", self._way(block, *direct))

    def _pass_on(self, block: Block) -> None:
        self._send(block, block.succs[0], CURRENT, self._way(block, *block.succs))

    def _diverge(self, block: Block) -> None:
        assert block.cond is not None
        self.steps.control("split", self.ctx.offset_of(block.cond))
        onwards = self._way(block, *block.succs)
        first, second = (OTHER, TAKEN) if block.negated else (TAKEN, OTHER)
        between = self._edge(block, block.succs[1])
        self._send(block, block.succs[0], first, between)
        self.steps.label(between.label)
        self._send(block, block.succs[1], second, onwards)

    @staticmethod
    def _edge(block: Block, succ: Block) -> Way:
        """To where the steps for an edge are."""
        return Way((block, succ))

    def _branch(self, block: Block) -> None:
        assert block.cond is not None
        yes, no = block.succs[::-1] if block.negated else block.succs
        self.steps.control("branch", self.ctx.offset_of(block.cond), self._edge(block, no))
        self._edges(block, yes, no)

    def _edges(self, block: Block, *succs: Block) -> None:
        """The steps for edges that control goes along alone."""
        for succ in succs:
            self.steps.label(self._edge(block, succ).label)
            self._send(block, succ, CURRENT, self._way(block, succ))

    def _select(self, block: Block) -> None:
        ways = [self._edge(block, block.succs[entry]) for entry in block.table]
        indices = self._indices(block)
        self.steps.control("select", indices, len(ways) - 1, *ways)
        self._edges(block, *block.succs)

    def _scatter(self, block: Block) -> None:
        """Steps say what is handed over on each edge, and a table where its lanes are to wait."""
        indices = self._indices(block)
        edges: list[int | Way] = []
        for succ in block.succs:
            place = self.lanes_waiting[succ] if self.mask_home[succ] is succ else NOWHERE
            edges += [self._edge(block, succ) if self.takers[succ] else 0, place, self._way(block, succ)]
        apart = self._way(block, *block.succs)
        behind = 4 * (5 + len(block.table))
        self.steps.control("scatter", len(block.table) - 1, indices, behind, apart, *block.table, *edges)
        for succ in block.succs:
            if self.takers[succ]:
                self.steps.label(self._edge(block, succ).label)
                self._steps_to(block, succ, again=True)
                self.steps.control("stop", 0)

    def _indices(self, block: Block) -> int:
        """The place of the index of each lane."""
        assert block.cond is not None
        vector = Reg("indices", B32)
        self.ctx.uniformity.known[vector], self.ctx.offsets[vector] = None, PLACE
        self.steps.special("spread", _spread, block.cond, vector)
        return PLACE

    def _latch(self, block: Block) -> None:
        if block in self.graph.spins:
            self.steps.plain("yield", _yield)
        else:
            self.steps.plain("poll", poll)
        self._send(block, block.succs[0], CURRENT, Way(block.succs[0]))

    def _note_exit(self) -> None:
        self.steps.plain("gone", note_exit)


def _yield(ctx: Context) -> None:
    ctx.call("void", "pe_yield", ("ptr", "%w"))


def _spread(ctx: Context, index: Reg, vector: Reg) -> None:
    """The index of a computed branch in every lane."""
    ctx.bind(vector, ctx.vector_of(index, B32))


def _hand(ctx: Context, value: Reg | Imm, handed: Reg) -> None:
    """An edge hands a value over."""
    ctx.bind(handed, ctx.handed_over(value, handed))


def _merge(ctx: Context, value: Reg | Imm, handed: Reg) -> None:
    """The same where other lanes may be waiting already."""
    kept = ctx.inst(f"load {ctx.full_type(handed)}, ptr {ctx.slot(handed)}, align 64")
    new = ctx.handed_over(value, handed)
    ctx.bind(handed, ctx.vector.select(ctx.active, ctx.storage_type(handed), new, kept))
