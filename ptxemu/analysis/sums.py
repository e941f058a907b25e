"""Kernels whose threads do nothing to device memory but add integers to it, and read no more of it than what does not change
during a launch, such as histograms.  Neither they nor any other thread can tell when the sums come to memory, as long as they do
before the launch ends.
"""

from __future__ import annotations

from ptxemu.ir.graph import Graph
from ptxemu.ir.operations import OPERATIONS, type_class
from ptxemu.ir.ops import MemoryAccess, Op
from ptxemu.ir.strength import of_system

OF_THREADS = {"shared", "local", "const", "param"}
"""Spaces that are no device memory to other blocks."""
ADD = OPERATIONS[0]
WORDS = (4, 8)  # bytes


def only_sums(graph: Graph) -> bool:
    """Whether a kernel is such, as far as its ops tell; False of those without sums, and of those that call functions or
    have fences."""
    found = False
    for op in (op for block in graph.blocks for op in block.ops):
        if op.call is not None or op.effects.calls or op.effects.fences:
            return False
        for access in op.accesses:
            if access.space in OF_THREADS or (access.stated.kind == "read" and access.stated.object == "constant"):
                continue
            if not _is_sum(op, access):
                return False
            found = True
    return found


def _is_sum(op: Op, access: MemoryAccess) -> bool:
    """Whether it is an integer sum whose old value nobody gets, which orders nothing."""
    mods = op.mods
    if access.stated.kind != "update" or mods.get("op") != ADD.word or any(dst is not None for dst in op.dsts):
        return False
    if "type" not in mods or type_class(op.type()) not in ADD.classes or op.type().bytes not in WORDS:
        return False
    relaxed = mods.get("sem", "relaxed") == "relaxed" and not of_system(op)
    return relaxed and mods.get("mode", "b") == "b" and "vec" not in mods
