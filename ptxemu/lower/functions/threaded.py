"""The form of large functions that is quick to compile: control flow as in :mod:`ptxemu.lower.functions.function`, and between
two branches one call that executes a table of steps (:mod:`ptxemu.lower.functions.steps`).

Registers lie in a frame on the host's stack, where those with disjoint lifetimes share places; masks of lanes are 32-bit
numbers.  LLVM sees a few instructions for each block, so that its time hardly depends on the size of the kernel.
"""

from __future__ import annotations

from ptxemu.analysis.lifetimes import Lifetimes, Value, place
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block, Graph, Phi
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.ir.types import B32
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.layout import KernelLayout, align_up
from ptxemu.lower.core.literals import array
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.functions.function import FunctionBuilder, lower, phi_value
from ptxemu.lower.functions.routines import PROTOTYPE
from ptxemu.lower.functions.steps import NOWHERE, PLACE, REGISTERS, RUN, SCATTER, FrameContext, Steps
from ptxemu.passes.internal import ARGUMENTS, COPY_BACK, COPY_OUT, ENTER, RESULTS

# Rows that are about the function as a whole, or about what a call hands over.
WHOLE = {ENTER, ARGUMENTS, RESULTS, COPY_OUT, COPY_BACK}


def build(graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, symbol: str) -> None:
    """As :func:`ptxemu.lower.functions.function.build`."""
    unit.definitions.append(ThreadedBuilder(graph, uniformity, layout, unit).run(symbol))


class ThreadedBuilder(FunctionBuilder):
    """Blocks whose ops are steps. Names of masks stand for i32 values."""

    ctx: FrameContext

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(graph, uniformity, layout, unit)
        self.steps = Steps(self.ctx, lower)
        self.handed: dict[Phi, Reg] = {}  # what is handed over to a phi
        self.frame_bytes = 0

    def _context(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> FrameContext:
        return FrameContext(uniformity, layout, unit)

    def _prepare(self) -> None:
        homes = self._homes()
        lifetimes = Lifetimes(self.linear.layout, homes)
        sized = [
            (value, life, self._bytes(value.dst if isinstance(value, Phi) else value)) for value, life in lifetimes.of.items()
        ]
        offsets, self.frame_bytes = place(sized, self._place_masks())
        for value in lifetimes.of:
            self._place(self._handed(value) if isinstance(value, Phi) else value, offsets[value])
        for value, home in homes.items():
            if isinstance(value, Phi):
                self.handed.setdefault(value, value.dst)
            elif home is not None:
                self._place(value, offsets[home])

    def _place(self, reg: Reg, offset: int) -> None:
        self.ctx.offsets[reg] = offset
        self.ctx.shared_regs.add(reg)

    def _homes(self) -> dict[Value, Value | None]:
        """Where phis need no place of their own for what is handed over to them, as :class:`Lifetimes` takes it.

        A phi that gives lanes what all of them have in one register already is that register, unless lanes wait for it while
        others may write the register again.  Any other gets its value where it is kept, unless another phi must read the old one
        from there on the same edge.
        """
        homes: dict[Value, Value | None] = {}
        for block in self.order:
            if not block.phis or any(self.linear.waits(pred, block) for pred in block.preds):
                continue
            for phi in block.phis:
                arg, *others = set(phi.args.values())
                if not others and isinstance(arg, Reg) and self.ctx.form(arg) == self.ctx.form(phi.dst):
                    homes[phi], homes[phi.dst] = None, homes.get(arg, arg)
        for block in self.order:
            results = {phi.dst for phi in block.phis}
            given = ((phi, homes.get(arg, arg)) for phi in block.phis for arg in phi.args.values() if isinstance(arg, Reg))
            read = {arg for phi, arg in given if arg in results and arg is not phi.dst}
            homes |= {phi: phi.dst for phi in block.phis if phi not in homes and phi.dst not in read}
        return homes

    def _place_masks(self) -> int:
        """Masks lie in the frame too, where LLVM leaves them; returns where the registers start."""
        end = REGISTERS
        for block in self.order:
            if self.mask_home[block] is block:
                self.running[block], self.waiting[block] = str(end), str(end + 4)
                end += 8
        return align_up(end, PLACE)

    def _mask(self, offset: str) -> str:
        """The address of a mask."""
        return self.ctx.inst(f"getelementptr i8, ptr %frame, i64 {offset}")

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

    def _bytes(self, reg: Reg) -> int:
        return PLACE if self.ctx.is_scalar(reg) else max(PLACE, reg.type.bits * LANES // 8)

    def _assemble(self, symbol: str) -> str:
        ctx = self.ctx
        frame = [f"  %frame = alloca [{self.frame_bytes} x i8], align 64"]
        ctx.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        clear = [f"  call void @llvm.memset.p0.i64(ptr align 64 %frame, i8 0, i64 {self.frame_bytes}, i1 false)"]
        if ctx.layout.framed:
            clear.append("  store i64 %stack, ptr %frame, align 64")
        everyone = "%mask" if ctx.layout.framed else ctx.field("active")
        first = self.running[self.order[0]]
        start = ["  %first = getelementptr i8, ptr %frame, i64 " + first, f"  store i32 {everyone}, ptr %first, align 4"]
        head = f"internal {PROTOTYPE.format(symbol)}" if ctx.layout.framed else f"void @{symbol}(ptr noalias %w)"
        parts = [f'define {head} noinline optnone nounwind "probe-stack"="inline-asm" {{\nentry:']
        parts += [*frame, *ctx.all_allocas(), *clear, *ctx.prologue, *start]
        parts.append(f"  br label %{self._name(self.order[0])}")
        return "\n".join([*parts, *ctx.lines, "}"])

    # -- blocks

    def _fill(self, block: Block) -> None:
        ctx = self.ctx
        for phi in block.phis:
            self.steps.copy(self.handed[phi], phi.dst, self._bytes(phi.dst))
        for op in block.ops:
            if op.call is not None or op.row in WHOLE:
                self.steps.flush(ctx.active)
                self._inline(op)
            else:
                self.steps.op(op)
        self.steps.flush(ctx.active)

    def _inline(self, op: Op) -> None:
        """An op by LLVM instructions of its own."""
        ctx = self.ctx
        bits = ctx.active
        ctx.forget()
        ctx.active, ctx.active_bits = ctx.inst(f"bitcast i32 {bits} to {MASK}"), bits
        lower(ctx, op)
        ctx.active = ctx.active_bits = bits

    def _test(self, block: Block) -> None:
        ctx = self.ctx
        ctx.start(self._name(block) + ".test")
        if self.mask_home[block] is not block:
            ctx.jump(self._name(block))
            return
        some = ctx.scalar.icmp("ne", "i32", ctx.inst(f"load i32, ptr {self._mask(self.waiting[block])}, align 4"), "0")
        ctx.stmt(f"br i1 {some}, label %{self._name(block)}, label %{self.after(block)}")

    def _load_mask(self, block: Block) -> None:
        ctx, home = self.ctx, self.mask_home[block]
        gathered = home is block and block is not self.order[0]
        slot = self.waiting[block] if gathered else self.running[home]
        ctx.active = ctx.active_bits = ctx.inst(f"load i32, ptr {self._mask(slot)}, align 4")
        if gathered:
            ctx.stmt(f"store i32 {ctx.active}, ptr {self._mask(self.running[block])}, align 4")
            ctx.stmt(f"store i32 0, ptr {self._mask(self.waiting[block])}, align 4")

    # -- edges

    def _steps_to(self, block: Block, succ: Block, again: bool = False) -> None:
        """The steps for the phis of ``succ``."""
        waits = again or self.linear.waits(block, succ)
        for phi in succ.phis:
            arg, target = phi.args[block], self.handed[phi]
            if waits and not self.ctx.is_scalar(phi.dst):
                self.steps.special("merge", _merge, arg, target)
            elif isinstance(arg, Reg) and self.ctx.form(arg) == self.ctx.form(target):
                self.steps.copy(arg, target, self._bytes(target))
            else:
                self.steps.special("hand", _hand, arg, target)

    def send(self, block: Block, succ: Block, mask: str) -> None:
        ctx = self.ctx
        self._steps_to(block, succ)
        self.steps.flush(mask)
        if self.mask_home[succ] is succ:
            slot = self._mask(self.waiting[succ])
            if self.linear.waits(block, succ):
                mask = ctx.scalar.bin("or", "i32", ctx.inst(f"load i32, ptr {slot}, align 4"), mask)
            ctx.stmt(f"store i32 {mask}, ptr {slot}, align 4")

    def _diverge(self, block: Block) -> None:
        ctx = self.ctx
        assert block.cond is not None
        cond = ctx.inst(f"load i32, ptr {ctx.slot(block.cond)}, align 4")
        yes = ctx.scalar.bin("and", "i32", ctx.active, cond)
        no = ctx.scalar.bin("xor", "i32", ctx.active, yes)
        for succ, mask in zip(block.succs, (no, yes) if block.negated else (yes, no)):
            self.send(block, succ, mask)
        ctx.jump(self.after(block, *block.succs))

    def _scatter(self, block: Block) -> None:
        """A table says what is handed over on each edge, and where its lanes are to wait."""
        ctx, steps = self.ctx, self.steps
        assert block.cond is not None
        indices = self._indices(block.cond)
        words: list[str] = []
        edges: list[int] = []
        for succ in block.succs:
            edges.append(8 * len(words))
            self._steps_to(block, succ, again=True)
            words += steps.take()
            edges += [8 * len(words), int(self.waiting[succ]) if self.mask_home[succ] is succ else NOWHERE]
        ctx.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
        ctx.helpers["steps"], ctx.helpers["scatter"] = RUN, SCATTER
        tables = [ctx.constant(array("i32", block.table)), ctx.constant(array("i32", edges)), ctx.constant(array("i64", words))]
        arguments = f"i32 {len(block.table) - 1}, " + ", ".join(f"ptr {table}" for table in tables)
        number = ctx.inst(f"call i32 @scatter(ptr %w, ptr %frame, i32 {ctx.active}, ptr {indices}, {arguments})")
        apart = self.after(block, *block.succs)
        labels = [f"i32 {index}, label %{self.after(block, succ)}" for index, succ in enumerate(block.succs)]
        ctx.stmt(f"switch i32 {number}, label %{apart} [ {' '.join(labels)} ]")

    def _indices(self, index: Reg) -> str:
        """The address of the index of each lane."""
        ctx = self.ctx
        vector = Reg("indices", B32)
        ctx.uniformity.known[vector], ctx.offsets[vector] = None, PLACE
        self.steps.special("spread", _spread, index, vector)
        self.steps.flush(ctx.active)
        return ctx.slot(vector)


def _spread(ctx: Context, index: Reg, vector: Reg) -> None:
    """The index of a computed branch in every lane."""
    ctx.bind(vector, ctx.vector_of(index, B32))


def _hand(ctx: Context, value: Reg | Imm, handed: Reg) -> None:
    """An edge hands a value over."""
    ctx.bind(handed, phi_value(ctx, value, handed))


def _merge(ctx: Context, value: Reg | Imm, handed: Reg) -> None:
    """The same where other lanes may be waiting already."""
    kept = ctx.inst(f"load {ctx.full_type(handed)}, ptr {ctx.slot(handed)}, align 64")
    new = phi_value(ctx, value, handed)
    ctx.bind(handed, ctx.vector.select(ctx.active, ctx.storage_type(handed), new, kept))
