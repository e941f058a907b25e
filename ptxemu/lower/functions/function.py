"""Builds the LLVM function of one routine: linearized control flow around the lowered ops of each block."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from ptxemu.analysis.interleaving import word_of
from ptxemu.analysis.lane_regions import LaneRegion
from ptxemu.analysis.masks import representatives
from ptxemu.analysis.nans import quiet_values, raw_values
from ptxemu.analysis.origins import Origin, origins
from ptxemu.analysis.sums import is_fenceless, strays_of
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.analysis.walks import Walk, walks
from ptxemu.analysis.written import ways
from ptxemu.ir.block_shape import LANES, is_full
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Graph, Phi, given, reads, writes
from ptxemu.ir.observed import leaves_stamps, tells_accesses, tells_order
from ptxemu.ir.ops import Op, Reg
from ptxemu.lower.control.sync import note_exit, poll
from ptxemu.lower.core import assumptions
from ptxemu.lower.core.context import ALL_ON, MASK, Context, keep_in_memory, zero
from ptxemu.lower.core.families import families_of, listed_together
from ptxemu.lower.core.known import Lines, Reach
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.masks import expanded
from ptxemu.lower.core.runs import hulls_of
from ptxemu.lower.core.segments import Segment, cut, cut_full, escaping, test, test_of_those_on
from ptxemu.lower.core.stamps import leave_ways
from ptxemu.lower.functions import arms, computed, exits, lane_ahead, sure_trips
from ptxemu.lower.functions.lane_loops import LaneLoopWriter, lane_loops, lane_shape
from ptxemu.lower.functions.one_op import is_widening, lower
from ptxemu.lower.functions.routines import PROTOTYPE, finish
from ptxemu.lower.memory.lines import begin
from ptxemu.lower.memory.memory import pairs_of
from ptxemu.lower.memory.patterns import full
from ptxemu.passes.internal import RESULTS

LARGE_BLOCK = 1000  # lines of LLVM IR, beyond which a block is cut: LLVM's time for one is not linear
MANY_WAYS = 16  # to a block, beyond which its phis stay in memory: as values, each would be one on every edge that passes it


def build(graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, symbol: str) -> None:
    """Add a routine to ``unit``: the kernel as ``void symbol(ptr warp)``, a device function as routines.py calls it."""
    unit.definitions.append(FunctionBuilder(graph, uniformity, layout, unit).run(symbol))


class FunctionBuilder:
    """Walks the blocks in linear order.  ``ctx`` holds names and lines; this class holds the control flow."""

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        self.graph = graph
        self.linear = uniformity.linear
        self.order = uniformity.structure.order
        self.ctx = self._context(uniformity, layout, unit)
        self.mask_home = representatives(self.linear)
        self.waiting: dict[Block, str] = {}  # slots: lanes that have been sent to a block
        self.running: dict[Block, str] = {}  # slots: lanes that a block last ran with
        self.entries: dict[Block, int] = {}  # of those slots of ``waiting`` that are a table
        self.phis: dict[Phi, str] = {}
        self.segments: dict[Block, list[Segment]] = {}
        self.lane_loops: dict[Block, LaneRegion] = {}
        self.origins: dict[Block, dict[Reg, Origin]] = {}  # by the block at which lanes come in
        self.leads: dict[Op, list[lane_ahead.Lead]] = {}
        self.limits: dict[Op, Reach | None] = {}
        self.turns: Collection[Loop] = ()  # in which warps give way
        self.walks: dict[Block, Walk] = {}  # by the blocks before them
        self.lines: dict[Loop | None, dict[Reg, Lines]] = {}  # that lanes hold in loops
        self.sure: dict[Block, sure_trips.Sure] = {}  # loops with trips that need no tests, by their headers

    def _context(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> Context:
        return Context(uniformity, layout, unit)

    def run(self, symbol: str) -> str:
        ctx = self.ctx
        ctx.raw, ctx.quiet = raw_values(self.graph), quiet_values(self.graph)
        stamped = leaves_stamps(ctx.unit.observed) and not ctx.layout.framed
        ctx.fenceless = stamped and is_fenceless(self.graph)
        ctx.local_word = 0 if ctx.layout.framed or tells_accesses(ctx.unit.observed) else word_of(self.graph)
        ctx.strays = None if ctx.layout.framed else strays_of(self.graph, self.linear.structure.loops, stamped)
        self._choose_storage()
        self._prepare()
        if leaves_stamps(ctx.unit.observed):
            ctx.shared_accesses.families = families_of(self.graph, ctx.uniformity)
        if stamped:
            leave_ways(ctx, ways(self.graph, ctx.layout.params))
        inside = {block for region in self.lane_loops.values() for block in region.blocks}
        for block in self.order:
            if block in self.lane_loops:
                self._begin(block)
                LaneLoopWriter(self, self.lane_loops[block]).write()
            elif block not in inside:
                self._block(block)
        ctx.start("done")
        self._leave()
        return self._assemble(symbol)

    def _leave(self) -> None:
        """The end of the function."""
        if self.ctx.layout.framed:
            finish(self.ctx)
        else:
            self.ctx.stmt("ret void")

    def _prepare(self) -> None:
        """Decide where values live."""
        self._find_lane_loops()
        self.segments = self._segmented()
        self._find_shared_values()
        self.leads = self._leads()
        self.entries = self._entries()
        self._make_slots()

    def _find_lane_loops(self) -> None:
        """What lanes run one after another, where addresses start from there, and where lanes walk in others."""
        self.walks = walks(self.graph, self.ctx.uniformity, self.turns)
        self.lane_loops = self._lane_loops()
        self.origins = {entry: origins(self.ctx.uniformity, region) for entry, region in self.lane_loops.items()}

    def _lane_loops(self) -> dict[Block, LaneRegion]:
        """The loops that lanes run one after another, by their headers."""
        return {} if self.ctx.unit.observed == "all" else lane_loops(self.graph, self.ctx.uniformity, self.ctx.target)

    def _leads(self) -> dict[Op, list[lane_ahead.Lead]]:
        """What loads of single lanes lead to, by the last load of some off one address."""
        return {
            op: found for region in self.lane_loops.values() for op, found in lane_ahead.leads(self.ctx, region.blocks).items()
        }

    def _segmented(self) -> dict[Block, list[Segment]]:
        """The ops of each block in segments. Those of a lane have other shapes."""
        found = {block: self._cut(self._body(block)) for block in self.order}
        with self.ctx.one_lane(partial(lane_shape, self.ctx.uniformity), {}):
            found.update({block: cut(self.ctx, block.ops) for region in self.lane_loops.values() for block in region.blocks})
        return found

    def _cut(self, ops: list[Op]) -> list[Segment]:
        return cut_full(self.ctx, ops)

    def _entries(self) -> dict[Block, int]:
        return computed.entries(self)

    def _body(self, block: Block) -> list[Op]:
        """The ops that the lanes of a block execute there."""
        return block.ops

    def _assemble(self, symbol: str) -> str:
        ctx = self.ctx
        head = f"internal {PROTOTYPE.format(symbol)} noinline" if ctx.layout.framed else f"void @{symbol}(ptr noalias %w)"
        parts = [f"define {head} {ctx.unit.attributes} {{\nentry:"]
        parts += ctx.all_allocas() + ctx.prologue
        parts.append(f"  br label %b{self.linear.structure.index[self.order[0]]}")
        parts += ctx.lines
        return "\n".join([*parts, "}"])

    # -- preparation

    def _choose_storage(self) -> None:
        """A register is stored as the LLVM type its definition produces; phis follow their arguments."""
        storage = self.ctx.storage
        for block in self.order:
            for op in block.ops:
                for dst, kind in zip(op.dsts, op.dst_types):
                    if dst is not None and kind.bits == dst.type.bits and not kind.llvm.startswith("<"):
                        storage[dst] = kind.llvm
        left, before = [row for block in self.order for row in block.phis.rows()], -1
        while len(left) != before:
            before, rows, left = len(left), left, []
            for row in rows:
                dst, args = row
                for arg in args:
                    if isinstance(arg, Reg) and arg in storage:
                        storage[dst] = storage[arg]
                        break
                else:
                    left.append(row)

    def _find_shared_values(self) -> None:
        """Registers that a block other than their own reads get a slot, and those that several blocks write."""
        home: dict[Reg, Block] = {}
        shared = self.ctx.shared_regs
        for block in self.order:
            home.update(dict.fromkeys(block.phis.dsts, block))
            for op in block.ops:
                shared |= {dst for dst in writes(op) if home.setdefault(dst, block) is not block}
        shared.update(origin.start for found in self.origins.values() for origin in found.values())
        for block in self.order:
            shared |= escaping(self.segments[block])
            shared |= self._terminal_reads(block)
            for op in block.ops:
                shared.update(reg for reg in reads(op) if home.get(reg) is not block)
            if block.cond is not None and home.get(block.cond) is not block:
                shared.add(block.cond)
            shared.update(reg for reg in given(block) if home.get(reg) is not block)

    def _terminal_reads(self, block: Block) -> set[Reg]:
        """Registers made in versioned segments that the block's end reads, or asks about."""
        made = {dst for segment in self.segments[block] if segment.versioned for op in segment.ops for dst in op.dsts}
        if not made:
            return set()
        return {reg for reg in (block.cond, *given(block), *exits.compared(block)) if reg in made and reg is not None}

    def _make_slots(self) -> None:
        ctx = self.ctx
        for block in self.order:
            for phi in block.phis:
                self.phis[phi] = slot = ctx.alloca(ctx.full_type(phi.dst))
                ctx.prologue.append(f"  store {ctx.full_type(phi.dst)} {_zero(ctx.full_type(phi.dst))}, ptr {slot}, align 64")
                if block in self.entries or len(phi.args) > MANY_WAYS:
                    ctx.prologue.append(keep_in_memory(slot))
            if self.mask_home[block] is block:
                self.running[block] = ctx.alloca(MASK)
                if block not in self.waiting:
                    self.waiting[block] = slot = ctx.alloca(MASK)
                    ctx.prologue.append(f"  store {MASK} zeroinitializer, ptr {slot}, align 4")
        ctx.prologue.append(f"  store {MASK} {self._everyone()}, ptr {self.running[self.order[0]]}, align 64")
        widenings = [op for block in self.order for op in block.ops if is_widening(ctx, op)]
        if widenings:
            ctx.widenings = {op: number for number, op in enumerate(widenings)}
            ctx.wrapped_slot()
            ctx.corrections = self._corrections()

    def _everyone(self) -> str:
        """The lanes that come to the function's first block."""
        ctx = self.ctx
        if is_full(ctx.uniformity.variant) and not ctx.layout.framed:
            return ALL_ON
        bits = "%mask" if ctx.layout.framed else ctx.field("active")
        return expanded(ctx.target, lambda text: ctx.once(f"active: {text}", text), bits)

    def _corrections(self) -> str:
        """The address of memory for the corrections of all widenings, whose contents nobody asks for at first."""
        return self.ctx.alloca(f"[{len(self.ctx.widenings)} x i64]")

    # -- blocks

    def name(self, block: Block) -> str:
        return f"b{self.linear.structure.index[block]}"

    def _begin(self, block: Block) -> None:
        """The lanes that run the block, if there are any."""
        if block in self.linear.tested:
            self._test(block)
        self.ctx.start(self.name(block))
        self.ctx.forget()
        self._note_loop(block)
        if (found := self._sure_loop(block)) is not None:
            self.sure[block] = found
            sure_trips.write(self, block, found)
            self.segments[block] = [Segment(segment.ops) if segment.full else segment for segment in self.segments[block]]
            self.ctx.forget()
        self._load_mask(block)
        if block in self.walks:
            self.lines[self.walks[block].loop] = begin(self.ctx, self.walks[block])

    def _note_loop(self, block: Block) -> None:
        """What the loop that a block is in means for accesses."""
        self.ctx.in_loop = block in self.linear.structure.loops
        self.ctx.held = self.lines.get(self.linear.structure.loops.get(block), {})

    def _sure_loop(self, block: Block) -> sure_trips.Sure | None:
        """The loop that a block begins, if it has trips that need no tests."""
        loop = self.linear.structure.loops.get(block)
        if loop is None or loop.header is not block or self.ctx.unit.observed or block in self.lane_loops:
            return None
        if loop in self.lines or not self.graph.spins.isdisjoint(loop.blocks):
            return None
        return sure_trips.sure_loop(self.ctx, loop)

    def _block(self, block: Block) -> None:
        self._begin(block)
        self._fill(block)
        self._terminate(block)

    def _fill(self, block: Block) -> None:
        """The phis and the ops of a block."""
        self.take_phis(block)
        self.ops(block)

    def take_phis(self, block: Block) -> None:
        """What a block begins with."""
        ctx = self.ctx
        for phi in block.phis:
            ctx.bind(phi.dst, ctx.inst(f"load {ctx.full_type(phi.dst)}, ptr {self.phis[phi]}, align 64"))

    def ops(self, block: Block) -> None:
        """What the lanes that are on execute in a block."""
        ctx = self.ctx
        start = len(ctx.lines)
        for segment in self.segments[block]:
            self._segment(segment)
            if len(ctx.lines) - start > LARGE_BLOCK:
                self._part()
                start = len(ctx.lines)

    def _part(self) -> None:
        """Begin a new block of LLVM IR, behind a branch that LLVM cannot remove."""
        poll(self.ctx)
        self.ctx.settle()

    def _segment(self, segment: Segment) -> None:
        """The ops of a segment: as they are, or in a version without tests and one with the runtime's checks."""
        ctx = self.ctx

        def version(trusted: Collection[Op] = (), checking: bool = False) -> list[str]:
            self._version(segment, trusted, checking)
            return []

        if not segment.versioned:
            version()
            return
        if segment.full:
            self._full(segment, version)
            return
        each_tested = any(base in ctx.reaches for _, base in segment.groups)
        rest = partial(version, checking=not each_tested)
        ctx.when(test_of_those_on(ctx, segment), partial(version, segment.trusted), rest, [], likely=True)

    def _full(self, segment: Segment, rest: Callable[[], list[str]]) -> None:
        """A version without tests for all lanes, and for what is assumed; else one that tests each access."""
        ctx, shapes = self.ctx, segment.assumed.shapes
        done = set(segment.assumed.ops)
        others = Segment([op for op in segment.ops if op not in done])

        def version() -> list[str]:
            on = ctx.active, ctx.active_bits
            ctx.active, ctx.active_bits = ALL_ON, "-1"
            assumptions.give(ctx, shapes)
            with assumptions.assuming(ctx, shapes):
                self._version(others, segment.trusted)
            ctx.active, ctx.active_bits = on
            return []

        before = ctx.remembered()
        with assumptions.assuming(ctx, shapes):
            holds = assumptions.hold(ctx, segment.assumed, lower)
            ready = ctx.scalar.conjunction([full(ctx, ctx.active), test(ctx, segment), *holds])
        ctx.when(ready, version, rest, [], likely=True)
        if shapes:
            ctx.remember(before)

    def _version(self, segment: Segment, trusted: Collection[Op], checking: bool = False) -> None:
        """The ops of a segment: accesses that are known to be in memory; and whether the runtime checks the others."""
        ctx = self.ctx
        ctx.pairs = pairs_of(ctx, segment.ops)
        ctx.hulls = hulls_of(ctx, segment.ops)
        ctx.shared_accesses.together = listed_together(ctx, segment.ops)
        ctx.trusted, ctx.checking = trusted, checking
        for op in segment.ops:
            lower(ctx, op)
            if op in self.leads and not ctx.checking:
                lane_ahead.ask(ctx, self.leads[op], self.limits[op], lower)
        ctx.trusted, ctx.checking = (), False

    def trusting(self, block: Block, trusted: Collection[Op]) -> None:
        """The ops of a block, of whose accesses some are known to be in memory."""
        for segment in self.segments[block]:
            self._version(segment, trusted)

    def _test(self, block: Block) -> None:
        """The entry for lanes that may or may not be waiting: pass by if there are none."""
        ctx = self.ctx
        ctx.start(self.name(block) + ".test")
        if self.mask_home[block] is not block:  # an equivalent block ran, so lanes are waiting
            ctx.jump(self.name(block))
            return
        bits = ctx.inst(f"bitcast {MASK} {ctx.inst(f'load {MASK}, ptr {self.waiting[block]}, align 4')} to i{LANES}")
        some = ctx.scalar.icmp("ne", f"i{LANES}", bits, "0")
        ctx.stmt(f"br i1 {some}, label %{self.name(block)}, label %{self.after(block)}")

    def _load_mask(self, block: Block) -> None:
        """The lanes that run the block: those that gathered before it, or those of its mask's home."""
        ctx, home = self.ctx, self.mask_home[block]
        if home is not block or block is self.order[0]:
            ctx.active = ctx.inst(f"load {MASK}, ptr {self.running[home]}, align 64")
            return
        ctx.active = ctx.inst(f"load {MASK}, ptr {self.waiting[block]}, align 4")
        ctx.stmt(f"store {MASK} {ctx.active}, ptr {self.running[block]}, align 64")
        ctx.stmt(f"store {MASK} zeroinitializer, ptr {self.waiting[block]}, align 4")

    def arriving(self, block: Block) -> str:
        """The slot of the lanes that are about to run a block."""
        home = self.mask_home[block]
        return self.waiting[block] if home is block else self.running[home]

    # -- edges

    def after(self, block: Block, *direct: Block) -> str:
        """The label where control goes from ``block`` for lanes bound for ``direct``."""
        target = self.linear.after(block, direct)
        if target is None:
            return "done"
        if len(direct) == 1 and target in direct:
            return self.name(target)
        return self.name(target) + ".test"

    def send(self, block: Block, succ: Block, mask: str) -> None:
        """Lanes in ``mask`` leave for ``succ``: hand over phi values, and add the lanes to its mask."""
        self.hand_over(block, succ, mask)
        self.add_waiting(succ, mask, self.linear.waits(block, succ))

    def add_waiting(self, block: Block, mask: str, others: bool) -> None:
        """Lanes in ``mask`` wait for ``block``; ``others``: some may do so already."""
        ctx = self.ctx
        if self.mask_home[block] is block:
            if others:
                kept = ctx.inst(f"load {MASK}, ptr {self.waiting[block]}, align 4")
                mask = ctx.vector.bin("or", "i1", kept, mask)
            ctx.stmt(f"store {MASK} {mask}, ptr {self.waiting[block]}, align 4")

    def hand_over(self, block: Block, succ: Block, mask: str, again: bool = False) -> None:
        """Give the phis of ``succ`` their values in the lanes in ``mask``; ``again``: other lanes may just have got theirs."""
        for phi in succ.phis:
            value = self.ctx.handed_over(phi.args[block], phi.dst)
            self.give(phi, value, mask, again or self.linear.waits(block, succ))

    def give(self, phi: Phi, value: str, mask: str, others: bool) -> None:
        """Give a phi its value in the lanes in ``mask``; ``others``: some may have got theirs already."""
        ctx, slot, whole = self.ctx, self.phis[phi], self.ctx.full_type(phi.dst)
        if others and not ctx.is_scalar(phi.dst) and not ctx.is_grouped(phi.dst):
            kept = ctx.inst(f"load {whole}, ptr {slot}, align 64")
            value = ctx.inst(f"select {MASK} {mask}, {whole} {value}, {whole} {kept}")
        ctx.stmt(f"store {whole} {value}, ptr {slot}, align 64")

    def _terminate(self, block: Block) -> None:
        linear = self.linear
        if not block.succs:
            if self.ctx.unit.waits and not _returns(block):
                self._note_exit()
            self._go(block)
        elif block in linear.structure.latches:
            self._latch(block)
        elif len(block.succs) == 1:
            self._pass_on(block)
        elif block.table:
            self._scatter(block) if block in linear.divergent else self._select(block)
        elif block in linear.divergent:
            self._diverge(block)
        else:
            self._branch(block)

    def _note_exit(self) -> None:
        note_exit(self.ctx)

    def _go(self, block: Block, *direct: Block) -> None:
        """Control goes on from ``block`` for lanes bound for ``direct``."""
        self.ctx.jump(self.after(block, *direct))

    def _pass_on(self, block: Block) -> None:
        """All lanes go on to one block."""
        self.send(block, block.succs[0], self.ctx.active)
        self._go(block, *block.succs)

    def _diverge(self, block: Block) -> None:
        ctx = self.ctx
        assert block.cond is not None
        if not tells_order(ctx.unit.observed):
            arms.write_for_all(self, block)
        cond = ctx.predicate(block.cond, block.negated, True)
        taken = ctx.conjunction(ctx.active, cond)
        other = ctx.vector.bin("xor", "i1", ctx.active, taken)
        self._pass_by_exit(block, taken, other)
        self.send(block, block.succs[0], taken)
        self.send(block, block.succs[1], other)
        self._go(block, *block.succs)

    def _pass_by_exit(self, block: Block, taken: str, other: str) -> None:
        """If a branch may lead out of a loop, or of the kernel, the way of all lanes if none of them leaves."""
        ctx = self.ctx
        found = exits.nobody_leaves(ctx, self.linear, block, (taken, other))
        if found is None:
            return
        way, everyone = found
        some, none = ctx.new_label("some"), ctx.new_label("none")
        ctx.stmt(f"br i1 {everyone}, label %{none}, label %{some}, !prof !0")
        saved = ctx.remembered()
        ctx.start(none)
        self.send(block, way, ctx.active)
        self._go(block, way)
        ctx.remember(saved)
        ctx.start(some)

    def _scatter(self, block: Block) -> None:
        computed.scatter(self, block)

    def _select(self, block: Block) -> None:
        computed.jump(self, block)

    def _branch(self, block: Block) -> None:
        ctx = self.ctx
        assert block.cond is not None
        cond = ctx.predicate(block.cond, block.negated, False)
        for succ in ctx.ways(cond, block.succs):
            self.send(block, succ, ctx.active)
            self._go(block, succ)

    def _latch(self, block: Block) -> None:
        """The back edge: poll; go round again if any lane is left."""
        ctx = self.ctx
        header = block.succs[0]
        self.send(block, header, ctx.active)
        if block in self.graph.spins:
            ctx.call("void", "pe_yield", ("ptr", "%w"))
        else:
            poll(ctx)
        self._again(block)
        # When no lane reaches the latch its test has already gone on to what waits after the loop.

    def _again(self, latch: Block) -> None:
        self.ctx.jump(self._next_trip(latch))

    def _next_trip(self, latch: Block) -> str:
        """The label at which the next trip of a loop begins. Where not all trips are sure, none of those to come is."""
        header = latch.succs[0]
        return self.name(header) + (".care" if header in self.sure else "")

    def leave(self, block: Block) -> None:
        """The end of a block that ran with all lanes that were about to run it."""
        self._load_mask(block)
        self._terminate(block)

    def after_trips(self, latch: Block) -> None:
        """Some trips of a loop are over."""


def _returns(block: Block) -> bool:
    """Whether threads go back to the caller there; else they leave the kernel."""
    return bool(block.ops) and block.ops[-1].row is RESULTS


def _zero(t: str) -> str:
    return "zeroinitializer" if t.startswith(("<", "[")) else zero(t)
