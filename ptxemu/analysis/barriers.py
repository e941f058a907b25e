"""Lanes of one warp that meet at different instructions.

A ``barrier`` without ``.aligned`` counts threads, wherever each of them is (PTX ISA "bar, barrier").  Linearized code runs one
part of a warp up to its barrier while the others wait elsewhere (:mod:`ptxemu.analysis.linear`).  If they have to come to a
barrier too, the kernel needs the scheme in which lanes progress independently (:mod:`ptxemu.lower.functions.independent`).
"""

from __future__ import annotations

from collections.abc import Collection

from ptxemu.analysis.linear import Linear
from ptxemu.ir.convergence import counts_threads, meets_all
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Function, Op


def parts_meet(linear: Linear, counting: Collection[Function] = ()) -> bool:
    """Whether lanes may be at one barrier while others of their warp, which wait, are yet to come to another.

    ``counting``: functions with barriers that count threads.
    """
    waits = [block for block in linear.structure.order if linear.waiting[block] and _waits(block, counting)]
    return any(_pending_lanes_come(linear, block, counting) for block in waits)


def _waits(block: Block, counting: Collection[Function]) -> bool:
    return any(_counts(op, counting) and not op.effects.arrives for op in block.ops)


def _counts(op: Op, counting: Collection[Function]) -> bool:
    return counts_threads(op) or (op.call is not None and any(target in counting for target in op.call.targets or ()))


def _pending_lanes_come(linear: Linear, block: Block, counting: Collection[Function]) -> bool:
    work = linear.pending(block)
    seen = set(work)
    while work:
        here = work.pop()
        for op in here.ops:
            if _counts(op, counting):
                return True
            if meets_all(op):
                break
        else:
            fresh = [succ for succ in here.succs if succ not in seen]
            seen.update(fresh)
            work += fresh
    return False
