"""Loops that each lane runs by itself (:mod:`ptxemu.analysis.lane_regions`): scalar code, once for each lane.

The ops are lowered as those of a warp whose only lane is on, so that all values are uniform.  Values come in and go out through
memory, one vector for each, since lanes are indices there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ptxemu.analysis.lane_regions import LaneRegion, lane_regions
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.streams import Stream, streams
from ptxemu.analysis.uniformity import UNIFORM, Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block, Graph, Phi
from ptxemu.ir.ops import Addr, Op, Operand, Reg
from ptxemu.ir.types import B64
from ptxemu.lower.control.sync import poll
from ptxemu.lower.core import reach
from ptxemu.lower.core.access import NOTED, note_position
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import EFFECTS
from ptxemu.lower.core.emit import SIZES
from ptxemu.lower.core.known import Reach
from ptxemu.lower.core.target import Target
from ptxemu.lower.functions.lane_ahead import Lead, first_of, limited, room
from ptxemu.lower.memory.memory import load, store
from ptxemu.lower.memory.neighbours import FEWEST

if TYPE_CHECKING:
    from ptxemu.lower.functions.function import FunctionBuilder

WORTH = 48
"""Machine instructions of a warp beside each gather, up to which one lane after the other is faster."""

ONE_LANE = {None, load, store}
"""Lowerings that are not elementwise and serve one lane as well."""


def lane_loops(graph: Graph, uniformity: Uniformity, target: Target) -> dict[Block, LaneRegion]:
    """What is to run lane by lane, by the block at which lanes come in; loops that they leave together only where gathers cost
    more, and each trip loads few words of a row."""
    grouped = uniformity.grouped.shapes if uniformity.grouped else {}

    def pays(stream: Stream) -> bool:
        apart = grouped.keys().isdisjoint([*stream.exit.phis.dsts, *stream.outputs])
        return _worth(stream) and (stream.parting or (apart and not target.gathers(32) and not _loads_neighbours(stream)))

    chosen = [stream for stream in streams(graph, uniformity) if pays(stream)]
    return {region.entry: region for region in lane_regions(graph, uniformity, chosen, serves_one)}


def serves_one(op: Op) -> bool:
    """Whether the lowering of an op serves one lane as well."""
    return EFFECTS.get(op.row.lower) in ONE_LANE


def _worth(stream: Stream) -> bool:
    if not all(map(serves_one, stream.ops)):
        return False
    size = sum(SIZES.get(op.row.lower, 4) for op in stream.ops if not op.accesses)
    return size <= WORTH * len(stream.gathers)


def _loads_neighbours(stream: Stream) -> bool:
    """Whether a trip loads so many words of each row that they are loaded together (lower/memory/neighbours.py)."""
    rows = Counter(op.access.address.base for op in stream.gathers if isinstance(op.access.address, Addr))
    return min(rows.values(), default=0) >= FEWEST


def lane_shape(uniformity: Uniformity, operand: Operand) -> Shape | None:
    """How a value varies over the one lane that is on."""
    return UNIFORM if isinstance(operand, (Reg, Addr)) else uniformity.shape(operand)


class LaneLoopWriter:
    """Writes what lanes run one after another in place of its blocks."""

    def __init__(self, builder: FunctionBuilder, region: LaneRegion) -> None:
        self.builder = builder
        self.ctx = builder.ctx
        self.region = region
        self.place = {block: number for number, block in enumerate(region.blocks)}
        self.ways = [block for block in region.blocks if region.exit in block.succs]
        self.space = ""  # that of all accesses, noted before
        self.lane = self.ctx.fresh("lane")
        self.next = self.ctx.new_label("lanes.next")
        self.done = self.ctx.new_label("lanes.done")
        self.phis = {phi: self.ctx.alloca(self.ctx.storage_type(phi.dst)) for block in region.blocks for phi in block.phis}
        self.results = {reg: self._vector(reg) for reg in self._leaving() if not self.ctx.is_scalar(reg)}
        self.shared = {reg: self.ctx.alloca(self.ctx.storage_type(reg)) for reg in self._leaving() if self.ctx.is_uniform(reg)}

    def _leaving(self) -> list[Reg]:
        """The registers that lanes have when they leave."""
        return [*self.region.exit.phis.dsts, *self.region.outputs]

    def write(self) -> None:
        """Where the lanes have come that are to run the loop; goes on to what comes behind it."""
        ctx = self.ctx
        shared = {reg: ctx.slot(reg) for reg in self.region.inputs if ctx.is_uniform(reg)}
        own = {reg: ctx.alloca(ctx.storage_type(reg)) for reg in self.region.inputs if reg not in shared}
        begun = [(self.phis[phi], phi.dst, self._spread(phi.dst, self._handed(phi))) for phi in self.region.entry.phis]
        begun += [(slot, reg, self._spread(reg, ctx.read(reg))) for reg, slot in own.items()]
        mask, left = ctx.active, ctx.alloca(f"i{LANES}")
        ctx.stmt(f"store i{LANES} {ctx.bits_of(mask)}, ptr {left}, align 4")
        self._note_space()
        ctx.reaches = self._reaches()
        self.builder.limits = {op: limited(ctx, leads) for op, leads in self._leads()}
        ctx.jump(self.next)
        bits = self._next(left)
        with ctx.one_lane(partial(lane_shape, ctx.uniformity), shared | own):
            ctx.forget()
            for slot, reg, lanes in begun:
                ctx.stmt(f"store {ctx.storage_type(reg)} {self._load(lanes, reg)}, ptr {slot}, align 64")
            ctx.jump(self._label(self.region.entry))
            for block in self.region.blocks:
                self._block(block, bits)
        ctx.start(self.done)
        ctx.forget()
        ctx.reaches = {}
        ctx.active = mask
        self._leave()

    def _next(self, left: str) -> str:
        """Begins with the next of the lanes that are left; returns its bit of the mask."""
        ctx = self.ctx
        ctx.start(self.next)
        lanes = ctx.inst(f"load i{LANES}, ptr {left}, align 4")
        some, label = ctx.scalar.icmp("ne", f"i{LANES}", lanes, "0"), ctx.new_label("lane.begin")
        ctx.stmt(f"br i1 {some}, label %{label}, label %{self.done}")
        ctx.start(label)
        number = ctx.scalar.intrinsic("cttz", f"i{LANES}", lanes, extra="i1 true")
        ctx.stmt(f"{self.lane} = zext i{LANES} {number} to i64")
        bit = ctx.scalar.bin("shl", f"i{LANES}", "1", number)
        ctx.stmt(f"store i{LANES} {ctx.scalar.bin('xor', f'i{LANES}', lanes, bit)}, ptr {left}, align 4")
        return bit

    def _note_space(self) -> None:
        """What all accesses of a lane have in common for the handler of faults, once before all lanes."""
        accesses = [op for block in self.region.blocks for op in block.ops if op.accesses]
        spaces = {op.access.space for op in accesses}
        if len(spaces) == 1 and not spaces.isdisjoint(NOTED):
            self.space = spaces.pop()
            note_position(self.ctx, accesses[0], self.space)

    def _reaches(self) -> dict[Reg, Reach]:
        """What is known of memory at the addresses of accesses, once before all lanes."""
        ctx, found = self.ctx, self.builder.origins.get(self.region.entry, {})
        known: dict[Reg, Reach] = {}
        for start in dict.fromkeys(origin.start for origin in found.values()):
            address = ctx.scalar_of(start, B64)
            if start not in self.region.inputs:  # it may have been forgotten at a barrier
                address = ctx.inst(f"freeze i64 {address}")
            known[start] = reach.find(ctx, address, self._sizes({base for base in found if found[base].start is start}))
        return {base: replace(known[origin.start], marching=origin.marching) for base, origin in found.items()}

    def _sizes(self, bases: set[Reg]) -> list[tuple[int, int]]:
        """Bytes and alignments of what is tested off some registers: of accesses, and of those that are tested at once."""
        found: list[tuple[int, int]] = []
        for segment in (segment for block in self.region.blocks for segment in self.builder.segments[block]):
            accesses = [op.access for op in segment.ops if op.accesses and op.access.address.base in bases]
            found += [(size, size) for size in (access.bytes for access in accesses) if size is not None]
            groups = segment.groups.items() if segment.versioned else ()
            found += [(group.high - group.start, group.size) for (_, base), group in groups if base in bases]
        found += [room(leads) for _, leads in self._leads() if first_of(leads).access.address.base in bases]
        return list(dict.fromkeys(found))

    def _leads(self) -> Iterator[tuple[Op, list[Lead]]]:
        """What loads of indexes lead to, by the last of some."""
        leads = self.builder.leads
        return ((op, leads[op]) for block in self.region.blocks for op in block.ops if op in leads)

    def _leave(self) -> None:
        """All lanes are where the loop leads to."""
        ctx, builder, exit = self.ctx, self.builder, self.region.exit
        for phi in exit.phis:
            is_pattern = phi.dst not in self.results and phi.dst not in self.shared  # which comes from outside
            value = ctx.handed_over(phi.args[self.ways[0]], phi.dst) if is_pattern else self._left(phi.dst)
            builder.give(phi, value, ctx.active, others=True)
        for reg in self.region.outputs:
            ctx.bind(reg, self._left(reg))
        builder.add_waiting(exit, ctx.active, others=True)
        ctx.jump(builder.after(self.region.blocks[-1], exit))

    def _left(self, reg: Reg) -> str:
        """What lanes have left with, as stored."""
        ctx, stored = self.ctx, _stored(self.ctx, reg)
        if reg in self.shared:
            return ctx.inst(f"load {ctx.storage_type(reg)}, ptr {self.shared[reg]}, align 64")
        value = ctx.inst(f"load <{LANES} x {stored}>, ptr {self.results[reg]}, align 64")
        return ctx.vector.cast("trunc", "i8", value, "i1") if stored != ctx.storage_type(reg) else value

    # -- values

    def _vector(self, reg: Reg) -> str:
        """Memory for all lanes of a register."""
        return self.ctx.alloca(f"<{LANES} x {_stored(self.ctx, reg)}>")

    def _handed(self, phi: Phi) -> str:
        """What has been handed over to a phi of the header."""
        return self.ctx.inst(f"load {self.ctx.full_type(phi.dst)}, ptr {self.builder.phis[phi]}, align 64")

    def _spread(self, reg: Reg, value: str) -> str:
        """The address of all lanes of a register, of which ``value`` is what is stored."""
        ctx = self.ctx
        if ctx.is_scalar(reg) or ctx.is_grouped(reg):
            ctx.names[reg] = value
            value = ctx.spread(reg)
        lanes, kind = self._vector(reg), _stored(ctx, reg)
        value = ctx.vector.cast("zext", "i1", value, kind) if kind != ctx.storage_type(reg) else value
        ctx.stmt(f"store <{LANES} x {kind}> {value}, ptr {lanes}, align 64")
        return lanes

    def _at(self, lanes: str, reg: Reg) -> str:
        """The address of the lane's value among all."""
        return self.ctx.inst(f"getelementptr {_stored(self.ctx, reg)}, ptr {lanes}, i64 {self.lane}")

    def _load(self, lanes: str, reg: Reg) -> str:
        kind = _stored(self.ctx, reg)
        value = self.ctx.inst(f"load {kind}, ptr {self._at(lanes, reg)}")
        return self.ctx.scalar.cast("trunc", kind, value, "i1") if kind != self.ctx.storage_type(reg) else value

    def _store(self, lanes: str, reg: Reg, value: str) -> None:
        kind = _stored(self.ctx, reg)
        value = self.ctx.scalar.cast("zext", "i1", value, kind) if kind != self.ctx.storage_type(reg) else value
        self.ctx.stmt(f"store {kind} {value}, ptr {self._at(lanes, reg)}")

    def _keep(self, reg: Reg, value: str) -> None:
        """What the lane leaves with."""
        if reg in self.shared:
            self.ctx.stmt(f"store {self.ctx.storage_type(reg)} {value}, ptr {self.shared[reg]}, align 64")
        elif reg in self.results:
            self._store(self.results[reg], reg, value)

    # -- blocks

    def _label(self, block: Block) -> str:
        return f"lane.{self.builder.name(block)}"

    def _block(self, block: Block, bit: str) -> None:
        ctx = self.ctx
        ctx.start(self._label(block))
        ctx.forget()
        ctx.noted_space = self.space
        ctx.active, ctx.active_bits = ctx.mask_from_bits(bit), bit
        for phi in block.phis:
            kind = ctx.storage_type(phi.dst)
            ctx.bind(phi.dst, ctx.inst(f"load {kind}, ptr {self.phis[phi]}, align 64"))
        self.builder.ops(block)
        if len(block.succs) == 1:
            self._go(block, block.succs[0])
            return
        assert block.cond is not None
        cond = ctx.predicate(block.cond, block.negated, False)
        for succ in ctx.ways(cond, block.succs):
            self._go(block, succ)

    def _go(self, block: Block, succ: Block) -> None:
        ctx = self.ctx
        for phi in succ.phis:
            if phi in self.phis:
                value = ctx.handed_over(phi.args[block], phi.dst)
                ctx.stmt(f"store {ctx.storage_type(phi.dst)} {value}, ptr {self.phis[phi]}, align 64")
            elif succ is self.region.exit:
                self._keep(phi.dst, ctx.handed_over(phi.args[block], phi.dst))
        for reg in self.region.outputs if succ is self.region.exit else ():
            self._keep(reg, ctx.read(reg))
        if succ in self.region.headers and self.place[succ] <= self.place[block]:
            poll(ctx)
        ctx.jump(self.next if succ is self.region.exit else self._label(succ))


def _stored(ctx: Context, reg: Reg) -> str:
    """The type of a lane's value in memory."""
    kind = ctx.storage_type(reg)
    return "i8" if kind == "i1" else kind
