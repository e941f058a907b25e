"""Stretches of code that lanes run one after another: streams (:mod:`ptxemu.analysis.streams`), and those that follow each other
with what is between them.

Compilers make of a loop over a row one that is unrolled and another for the rest.  As one stretch, a lane takes what the first
has left to the second in registers, and goes through its row once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from ptxemu.analysis.streams import Stream, alone, closed, defined_in, read_by
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.ops import Op, Reg

MOST_BETWEEN = 24
"""Ops outside of the loops of a stretch, which all lanes could do at once."""
FARTHEST = 8
"""Blocks that may lie before the first loop."""


class LaneRegion(Struct, frozen=True):
    """Code that each lane can run by itself.

    ``blocks``: in linear order; lanes come in at the first one, and leave for ``exit``.  ``inputs``: the registers from outside
    that it reads; ``outputs``: those of its own that are read outside, but for what it hands over; ``headers``: of its loops.
    """

    blocks: list[Block]
    exit: Block
    inputs: list[Reg]
    outputs: list[Reg]
    headers: frozenset[Block]

    @property
    def entry(self) -> Block:
        return self.blocks[0]


def lane_regions(graph: Graph, uniformity: Uniformity, streams: Iterable[Stream], able: Callable[[Op], bool]) -> list[LaneRegion]:
    """The streams, in linear order, with what is between them where all its ops are ``able``."""
    found: list[LaneRegion] = []
    for stream in streams:
        alone = LaneRegion(stream.blocks, stream.exit, stream.inputs, stream.outputs, frozenset([stream.header]))
        joined = _joined(graph, uniformity, found[-1], alone, able) if found else None
        if joined is None:
            found.append(alone)
        else:
            found[-1] = joined
    return found


def _joined(
    graph: Graph, uniformity: Uniformity, first: LaneRegion, second: LaneRegion, able: Callable[[Op], bool]
) -> LaneRegion | None:
    """A stretch with two others, if there is one: the least that begins last."""
    order, index = uniformity.structure.order, uniformity.structure.index
    start, end = index[first.entry], index[second.blocks[-1]]
    headers, loops = first.headers | second.headers, {*first.blocks, *second.blocks}
    for begin in range(start, max(-1, start - FARTHEST - 1), -1):
        for last in range(end, min(len(order), end + FARTHEST)):
            blocks = order[begin : last + 1]
            between = [block for block in blocks if block not in loops]
            if sum(len(block.ops) for block in between) > MOST_BETWEEN or not all(
                _plain(graph, uniformity, block, able) for block in between
            ):
                break
            if (region := _region(uniformity, blocks, headers)) is not None:
                return region
    return None


def _plain(graph: Graph, uniformity: Uniformity, block: Block, able: Callable[[Op], bool]) -> bool:
    """Whether a block does nothing that all lanes would better do at once, or only one can not do."""
    if block.table or block in graph.spins or not block.succs:
        return False
    return all(able(op) and not op.accesses and alone(uniformity, op) for op in block.ops)


def _region(uniformity: Uniformity, blocks: list[Block], headers: frozenset[Block]) -> LaneRegion | None:
    """The stretch of these blocks, if lanes come in at the first one only and leave for one other block, with nothing but what
    is handed over there."""
    inside, place = set(blocks), uniformity.structure.index
    exits = {succ for block in blocks for succ in block.succs if succ not in inside}
    back = {succ for block in blocks for succ in block.succs if succ in inside and place[succ] <= place[block]}
    if len(exits) != 1 or back != headers or not all(inside.issuperset(block.preds) for block in blocks[1:]):
        return None
    exit = exits.pop()
    defined = {reg for block in blocks for reg in defined_in(block)}
    if place[exit] < place[blocks[-1]] or uniformity.linear.after(blocks[-1], ()) in inside:
        return None
    if not closed(uniformity, exit, blocks, defined):
        return None
    if any(reg in defined for block in place if block not in inside for reg in read_by(block)):
        return None
    inputs = dict.fromkeys(reg for block in blocks for reg in read_by(block) if reg not in defined)
    return LaneRegion(blocks, exit, list(inputs), [], headers)
