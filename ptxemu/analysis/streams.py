"""Loops in which each lane reads memory of its own, such as the rows of a matrix, and which lanes may leave at different times.

Run in step, these gather from a place for each lane in every trip, until the lane with most trips is done.  One lane after
the other has no gathers, and follows its row through the cache.  Where lanes leave together, loops are streams only if each lane
walks along a row: as many rows as lanes, a power of two apart, do not fit a cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from msgspec import Struct

from ptxemu.analysis.runs import expected_of, runs_of
from ptxemu.analysis.trips import Makers, constant_step, makers, sources, steps
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Graph, Phi, given, reads, registers, writes
from ptxemu.ir.ops import STRONG, Op, Operand, Reg, SReg
from ptxemu.process.lazy import lazy_property

SPACES = {"generic", "global", "shared", "const", "param"}
LINE = 64  # of the cache: what a lane goes on by at most in a trip, along its row, in bytes or elements


class Stream(Struct, frozen=True):
    """A loop that each lane can run by itself.

    ``blocks``: in linear order, the header first; all ways out lead to ``exit``.  ``inputs``: the registers from outside that
    it reads; ``outputs``: those of its own that are read outside, but for what it hands over; ``gathers``: the accesses to a
    place for each lane; ``parting``: lanes leave at different times, and what is read outside is handed over.
    """

    blocks: list[Block]
    exit: Block
    inputs: list[Reg]
    outputs: list[Reg]
    gathers: list[Op]
    parting: bool

    @property
    def header(self) -> Block:
        return self.blocks[0]

    @property
    def ops(self) -> list[Op]:
        return [op for block in self.blocks for op in block.ops]


def streams(graph: Graph, uniformity: Uniformity) -> list[Stream]:
    """The streams of a graph in linear order."""
    search = _Search(graph, uniformity)
    return [stream for loop in dict.fromkeys(uniformity.structure.loops.values()) if (stream := search.stream(loop)) is not None]


class _Search:
    def __init__(self, graph: Graph, uniformity: Uniformity) -> None:
        self._graph = graph
        self._uniformity = uniformity
        self._expected = expected_of(uniformity)

    def stream(self, loop: Loop) -> Stream | None:
        """The loop as a stream, if it is one."""
        graph, uniformity, structure = self._graph, self._uniformity, self._uniformity.structure
        inner = any(structure.loops[block] is not loop for block in loop.blocks)
        if inner or any(block.table or block in graph.spins for block in loop.blocks):
            return None
        exits = loop.exits()
        if len(exits) != 1:
            return None
        blocks = [block for block in structure.order if block in loop.blocks]
        if not all(alone(uniformity, op) for block in blocks for op in block.ops):
            return None
        accesses = [op for block in blocks for op in block.ops if op.accesses]
        gathers = [op for op in accesses if self._has_own_place(op)]
        made = makers(blocks)
        if not gathers or not _walk(gathers, loop) or not _independent(blocks, made):
            return None
        if any(map(self._is_of_neighbours, _going_on(accesses, made))):
            return None
        defined = dict.fromkeys(reg for block in blocks for reg in defined_in(block))
        parting = any(exits[0] in block.succs and block in uniformity.linear.divergent for block in blocks)
        outputs = [] if parting else [reg for reg in defined if not loop.blocks.issuperset(self._readers.get(reg, ()))]
        if parting:
            fits = closed(uniformity, exits[0], blocks, defined.keys())
        else:
            fits = self._leave_whole([*exits[0].phis.dsts, *outputs])
        inputs = dict.fromkeys(reg for block in blocks for reg in read_by(block) if reg not in defined)
        return Stream(blocks, exits[0], list(inputs), outputs, gathers, parting) if fits else None

    @lazy_property
    def _readers(self) -> dict[Reg, set[Block]]:
        return readers(self._graph.blocks)

    def _has_own_place(self, op: Op) -> bool:
        """Whether lanes access places that nothing says are neighbours."""
        address = op.access.address
        return self._uniformity.shape(address) is None and self._expected.of(address, op.access.bytes or 0) is None

    def _is_of_neighbours(self, op: Op) -> bool:
        """Whether lanes access places side by side: in step they share lines, and they leave a loop that goes along these at
        nearly the same time as a rule."""
        address, size = op.access.address, op.access.bytes or 0
        shape = self._uniformity.shape(address)
        runs = runs_of(shape.offsets, size) if shape is not None else self._expected.of(address, size)
        return runs is not None and runs.width == LANES and runs.step > 0

    def _leave_whole(self, regs: Iterable[Reg]) -> bool:
        """Whether each register has a value for each lane, or the same one for all."""
        shapes = map(self._uniformity.shape, regs)
        return all(shape is None or shape.uniform for shape in shapes)


def _going_on(accesses: Iterable[Op], made: Makers) -> Iterator[Op]:
    """The accesses whose addresses follow from trip to trip."""
    for op in accesses:
        followed, _ = sources(registers(op.access.address), made)
        if any(isinstance(source, Phi) for source in followed):
            yield op


def _walk(accesses: Iterable[Op], loop: Loop) -> bool:
    """Whether the addresses of accesses go on by little in each trip, and in each trip by the same."""
    made = makers(loop.blocks)
    followed, _ = sources((reg for op in accesses for reg in registers(op.access.address)), made)
    phis = {maker for maker in followed if isinstance(maker, Phi)}
    if not phis.issubset(loop.header.phis):
        return False
    steps = [constant_step(phi, latch, made) for phi in phis for latch in loop.latches]
    return bool(steps) and all(step is not None and step <= LINE for step in steps)


def alone(uniformity: Uniformity, op: Op) -> bool:
    """Whether a lane can execute it without the others: pure, and the same for all lanes with the same operands, or a plain
    access that no other thread takes part in."""
    if op.effects.pure:
        return op.call is None and all(_same(uniformity, source) for source in op.srcs)
    moves = len(op.accesses) == 1 and op.access.stated.kind != "update" and bool(op.access.stated.data)
    return moves and STRONG.isdisjoint(op.mods.values()) and op.access.space in SPACES


def _same(uniformity: Uniformity, source: Operand) -> bool:
    """Whether a source that is no register is the same for all lanes."""
    shape = uniformity.shape(source)
    return not isinstance(source, SReg) or (shape is not None and shape.uniform)


def defined_in(block: Block) -> Iterable[Reg]:
    yield from block.phis.dsts
    for op in block.ops:
        yield from writes(op)


def read_by(block: Block) -> Iterable[Reg]:
    """What the ops of a block and its end read; phis of its successors included."""
    for op in block.ops:
        yield from reads(op)
    if block.cond is not None:
        yield block.cond
    yield from given(block)


def readers(blocks: Iterable[Block]) -> dict[Reg, set[Block]]:
    """The blocks in which registers are read; those that hand them over read them."""
    found: dict[Reg, set[Block]] = {}
    for block in blocks:
        for reg in read_by(block):
            found.setdefault(reg, set()).add(block)
    return found


def closed(uniformity: Uniformity, exit: Block, blocks: list[Block], defined: Set[Reg]) -> bool:
    """Whether the loop hands over what it defines to phis that hold a value for each lane."""
    ways = [block for block in blocks if exit in block.succs]
    for phi in exit.phis:
        args = {phi.args[block] for block in ways}
        if uniformity.shape(phi.dst) is not None and (len(args) > 1 or not args.isdisjoint(defined)):
            return False
    return True


def _independent(blocks: list[Block], made: Makers) -> bool:
    """Whether addresses do not follow from what earlier trips have loaded: the loads of a chain would wait for each other, lane
    after lane."""
    header = blocks[0]
    latches = [block for block in header.preds if block in blocks]
    stepping = {phi for phi in header.phis if steps(phi, latches, made)[0]}
    for op in (op for block in blocks for op in block.ops if op.accesses):
        followed, _ = sources(registers(op.access.address), made)
        if any(isinstance(source, Phi) and source not in stepping for source in followed):
            return False
    return True
