"""Whether a kernel ends soon, whatever it is given."""

from __future__ import annotations

from ptxemu.ir.dominators import postorder
from ptxemu.ir.graph import Graph

MAX_OPS = 4096  # a warp takes a millisecond or so for them


def is_brief(graph: Graph) -> bool:
    """It is short and has no cycles, be they loops or irreducible. Waits and calls are not looked at."""
    index = {block: number for number, block in enumerate(postorder(graph.entry))}
    acyclic = all(index[succ] < number for block, number in index.items() for succ in block.succs)
    return acyclic and sum(len(block.ops) for block in index) <= MAX_OPS
