"""Loops in which a warp goes through memory in strides that leave room for what the other warps of its block read.

Such is the loop of a kernel whose threads take every n-th element, n being the number of threads.  A warp that runs it to the
end before the next one begins reads pieces of a line or two, a stride apart: the processor sees no stream in that, and whatever
else of the lines it fetches is gone when the next warp wants it.
"""

from __future__ import annotations

from ptxemu.analysis.trips import Makers, makers, sources, steps
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Graph, Phi, registers
from ptxemu.ir.ops import Op, Operand

SPACES = {"global", "generic"}


def strided(graph: Graph, uniformity: Uniformity) -> list[Loop]:
    """These loops, if they have no others in them. A stride that is constant in the text is not one of them."""
    loops = uniformity.structure.loops
    found = []
    for loop in dict.fromkeys(loops.values()):
        inner = any(loops[block] is not loop for block in loop.blocks)
        if not inner and len(loop.latches) == 1 and not any(block.table or block in graph.spins for block in loop.blocks):
            made = makers(loop.blocks)
            if any(_strides(uniformity, op, loop, made) for block in loop.blocks for op in block.ops):
                found.append(loop)
    return found


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
    """Whether the lanes read side by side, each time a number of bytes further that is known when the loop begins."""
    if not _side_by_side(uniformity, op):
        return False
    followed, _ = sources(registers(op.access.address), made)
    phis = [steps(phi, loop.latches, made) for phi in followed if isinstance(phi, Phi) and phi in loop.header.phis]
    return any(alone and outside for alone, outside in phis)
