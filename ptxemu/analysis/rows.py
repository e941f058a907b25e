"""Kernels whose blocks, side by side, are better run a row of threads at a time.

A block of 32x8 threads goes through a piece of each of eight rows, and the next one through the pieces to the right of them.
Where a thread reads and writes only a few places, the first warps of all blocks, then all the second ones, go through whole
rows, as the processor expects.  Where threads read much, or far apart, a block would lose what it has in the cache.
"""

from __future__ import annotations

from ptxemu.analysis.runs import Expected, expected_of
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Op, items_of
from ptxemu.isa.table import CLUSTER

PICTURES = {"surface", "texture"}


def along_rows(graph: Graph, uniformity: Uniformity) -> bool:
    """Whether warps of several blocks may run in any order, and profit from that of rows: without loops, shared memory or
    updates, with addresses that are patterns or should be in a few runs, and coordinates that are patterns."""
    if uniformity.structure.loops:
        return False
    expected = expected_of(uniformity)
    return all(op.call is None and _is_near(uniformity, expected, op) for block in graph.blocks for op in block.ops)


def _is_near(uniformity: Uniformity, expected: Expected, op: Op) -> bool:
    """Whether lanes access neighbouring places, if any, which nobody updates."""
    for access in op.accesses:
        if access.stated.kind == "update" or access.space in ("shared", CLUSTER):
            return False
        if access.space in PICTURES:
            place = op.get("coordinates")
            near = place is not None and all(uniformity.shape(item) is not None for item in items_of(place))
        else:
            near = uniformity.shape(access.address) is not None or expected.of(access.address, access.bytes or 0) is not None
        if not near:
            return False
    return True
