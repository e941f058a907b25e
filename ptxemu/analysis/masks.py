"""Which blocks run with the same set of active lanes, so that their masks need not be tracked separately."""

from __future__ import annotations

from ptxemu.analysis.linear import Linear
from ptxemu.ir.graph import Block


def representatives(linear: Linear) -> dict[Block, Block]:
    """Map each block to a block whose mask equals its own whenever it runs; blocks with a mask of their own to themselves.

    A block inherits the mask of an equivalent dominator, or of its predecessors when they all have one mask, jump or
    branch uniformly, and control never passes it by while lanes wait.  Loop headers inherit optimistically and are
    demoted when lanes are lost on the way to the latch.
    """
    structure = linear.structure
    own: set[Block] = {structure.order[0]}
    equivalent = {block: structure.equivalent(block) for block in structure.order}
    while True:
        result: dict[Block, Block] = {}
        for block in structure.order:
            result[block] = block if block in own else _inherit(linear, block, equivalent[block], result)
        lost = {
            loop.header
            for latch, loop in structure.latches.items()
            if loop.header not in own and result[loop.header] is not loop.header and result[latch] is not result[loop.header]
        }
        if not lost:
            return result
        own |= lost


def _inherit(linear: Linear, block: Block, equivalent: Block | None, result: dict[Block, Block]) -> Block:
    if equivalent is not None:
        return result[equivalent]
    if block in linear.deferred:
        return block
    forward = [pred for pred in block.preds if pred in result]
    if any(pred in linear.divergent for pred in forward):
        return block
    masks = {result[pred] for pred in forward}
    return masks.pop() if len(masks) == 1 else block
