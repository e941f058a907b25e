"""Loops in which a warp goes through memory in strides that leave room for what the other warps of its block read.

Such is the loop of a kernel whose threads take every n-th element, n being the number of threads.  A warp that runs it to the
end before the next one begins reads pieces of a line or two, a stride apart: the processor sees no stream in that, and whatever
else of the lines it fetches is gone when the next warp wants it.
"""

from __future__ import annotations

from ptxemu.analysis.trips import Makers, constant_step, makers, sources, steps
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Graph, Phi, registers
from ptxemu.ir.ops import Op, Operand, SReg

SPACES = {"global", "generic"}
TRIPS = 8  # of such a loop until a warp gives way: enough for the processor to see a stream in what all warps read
GRID = SReg("nctaid.x")


def strided(graph: Graph, uniformity: Uniformity) -> list[Loop]:
    """These loops, if they have no others in them."""
    loops = uniformity.structure.loops
    found = []
    for loop in dict.fromkeys(loops.values()):
        inner = any(loops[block] is not loop for block in loop.blocks)
        if not inner and len(loop.latches) == 1 and not any(block.table or block in graph.spins for block in loop.blocks):
            made = makers(loop.blocks)
            if any(_strides(uniformity, op, loop, made) for block in loop.blocks for op in block.ops):
                found.append(loop)
    return found


def by_grid(graph: Graph, loop: Loop) -> bool:
    """Whether threads go on by the number of all threads of the grid in such a loop, so that blocks that follow each other read
    places that do."""
    made, everything = makers(loop.blocks), makers(graph.blocks)
    for phi in loop.header.phis:
        found, _ = sources(steps(phi, loop.latches, made)[1], everything)
        if any(isinstance(maker, Op) and GRID in maker.srcs for maker in found):
            return True
    return False


def bases_of(uniformity: Uniformity, loop: Loop) -> set[Operand]:
    """The bases of addresses at which lanes read side by side in a loop."""
    ops = (op for block in loop.blocks for op in block.ops)
    return {op.access.address.base for op in ops if _side_by_side(uniformity, op)}


def _side_by_side(uniformity: Uniformity, op: Op) -> bool:
    if len(op.accesses) != 1 or not op.access.stated.reads or op.access.space not in SPACES:
        return False
    shape = uniformity.shape(op.access.address)
    return shape is not None and any(shape.offsets)


def _strides(uniformity: Uniformity, op: Op, loop: Loop, made: Makers) -> bool:
    """Whether the lanes read side by side, each time a number of bytes further that is known when the loop begins.

    A constant may be one of elements: where it is more than the bytes that the lanes read, they leave room in either case.
    """
    if not _side_by_side(uniformity, op):
        return False
    followed, _ = sources(registers(op.access.address), made)
    phis = [maker for maker in followed if isinstance(maker, Phi) and maker in loop.header.phis]
    room = _span(uniformity, op)
    return any(_goes_on(phi, loop, made) or _goes_far(phi, loop, made, room) for phi in phis)


def _goes_on(phi: Phi, loop: Loop, made: Makers) -> bool:
    """Whether a value goes on by registers from outside, and nothing else."""
    alone, outside = steps(phi, loop.latches, made)
    return alone and bool(outside)


def _goes_far(phi: Phi, loop: Loop, made: Makers, room: int) -> bool:
    """Whether it goes on by a constant that is larger than some number."""
    step = constant_step(phi, loop.latches[0], made)
    return step is not None and step > room


def _span(uniformity: Uniformity, op: Op) -> int:
    """The bytes from the first that a lane reads to the last."""
    shape = uniformity.shape(op.access.address)
    assert shape is not None
    low, high = shape.spread
    return high - low + (op.access.bytes or 0)
