"""Loops that lanes leave at different times, in which each lane reads memory of its own, such as the rows of a sparse matrix.

Run in step, these gather from a place for each lane in every trip, until the lane with most trips is done.  One lane after
the other has no gathers, and follows its row through the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxemu.analysis.trips import makers, sources, steps
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Graph, Phi, given, reads, registers, writes
from ptxemu.ir.ops import STRONG, Op, Operand, Reg, SReg

SPACES = {"generic", "global", "shared", "const", "param"}


@dataclass(frozen=True, slots=True)
class Stream:
    """A loop that each lane can run by itself.

    ``blocks``: in linear order, the header first; all ways out lead to ``exit``.  ``inputs``: the registers from outside that
    it reads; ``gathers``: the accesses to a place for each lane.
    """

    blocks: list[Block]
    exit: Block
    inputs: list[Reg]
    gathers: list[Op]

    @property
    def header(self) -> Block:
        return self.blocks[0]

    @property
    def ops(self) -> list[Op]:
        return [op for block in self.blocks for op in block.ops]


def streams(graph: Graph, uniformity: Uniformity) -> list[Stream]:
    """The streams of a graph in linear order."""
    found = []
    for loop in dict.fromkeys(uniformity.structure.loops.values()):
        if (stream := _stream(graph, uniformity, loop)) is not None:
            found.append(stream)
    return found


def _stream(graph: Graph, uniformity: Uniformity, loop: Loop) -> Stream | None:
    structure, linear = uniformity.structure, uniformity.linear
    inner = any(structure.loops[block] is not loop for block in loop.blocks)
    if inner or any(block.table or block in graph.spins for block in loop.blocks):
        return None
    exits = loop.exits()
    if len(exits) != 1 or not any(exits[0] in block.succs and block in linear.divergent for block in loop.blocks):
        return None
    blocks = [block for block in structure.order if block in loop.blocks]
    defined = {reg for block in blocks for reg in defined_in(block)}
    if not all(alone(uniformity, op) for block in blocks for op in block.ops):
        return None
    if not closed(uniformity, exits[0], blocks, defined):
        return None
    gathers = [op for block in blocks for op in block.ops if op.accesses and uniformity.shape(op.access.address) is None]
    if not gathers or not _independent(blocks):
        return None
    inputs = dict.fromkeys(reg for block in blocks for reg in read_by(block) if reg not in defined)
    return Stream(blocks, exits[0], list(inputs), gathers)


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


def closed(uniformity: Uniformity, exit: Block, blocks: list[Block], defined: set[Reg]) -> bool:
    """Whether the loop hands over what it defines to phis that hold a value for each lane."""
    ways = [block for block in blocks if exit in block.succs]
    for phi in exit.phis:
        args = {phi.args[block] for block in ways}
        if uniformity.shape(phi.dst) is not None and (len(args) > 1 or not args.isdisjoint(defined)):
            return False
    return True


def _independent(blocks: list[Block]) -> bool:
    """Whether addresses do not follow from what earlier trips have loaded: the loads of a chain would wait for each other, lane
    after lane."""
    made = makers(blocks)
    header = blocks[0]
    latches = [block for block in header.preds if block in blocks]
    stepping = {phi for phi in header.phis if steps(phi, latches, made)[0]}
    for op in (op for block in blocks for op in block.ops if op.accesses):
        followed, _ = sources(registers(op.access.address), made)
        if any(isinstance(source, Phi) and source not in stepping for source in followed):
            return False
    return True
