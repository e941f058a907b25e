"""Kernels that make integer sums in device memory, such as histograms, of which nobody can tell when they come there, as long as
they do before the launch ends.

Other blocks could tell if a fence or a strong access put what they do in an order with the sums. Threads of the same block could
by plain loads and stores, too: each thread behind its own sums, and all behind a barrier. Such accesses are to other arrays as a
rule; code tests that, and makes sure of it where one *strays* into the memory that is added to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.operations import OPERATIONS, type_class
from ptxemu.ir.ops import BYPASSING, STRONG, MemoryAccess, Op
from ptxemu.ir.strength import RELEASING, narrowness, of_system
from ptxemu.isa.table import LOADS_AND_STORES

OF_THREADS = {"shared", "local", "const", "param"}
"""Spaces that are no device memory to other blocks."""
ADD = OPERATIONS[0]
WORDS = (4, 8)  # bytes


def strays_of(graph: Graph, loops: Mapping[Block, Loop], stamped: bool) -> frozenset[Op] | None:
    """The loads and stores of such a kernel that may be strays.

    None of kernels that are not such, as far as their ops tell; of those without sums, and of those in which a loop has accesses
    to test, but no sum. ``loops`` are the innermost ones of blocks. ``stamped``: sums leave stamps (csrc/check/race_sums.c). Then
    loads that say that nobody writes there may be strays, too, and no sum is of a scope that makes it race with others.
    """
    sums: set[Block] = set()
    strays: dict[Op, Block] = {}
    for block in graph.blocks:
        for op in block.ops:
            if op.call is not None or op.effects.calls or op.effects.fences:
                return None
            for access in op.accesses:
                constant = access.stated.kind == "read" and access.stated.object == "constant"
                if access.space in OF_THREADS or (constant and not stamped):
                    continue
                if _is_sum(op, access) and not (stamped and narrowness(op)):
                    sums.add(block)
                elif _is_plain(op):
                    strays[op] = block
                else:
                    return None
    if strays and graph.spins:  # which may wait for a sum of another block
        return None
    worthwhile = sums and all(_is_beside(loops.get(block), sums) for block in strays.values())
    return frozenset(strays) if worthwhile else None


def is_fenceless(graph: Graph) -> bool:
    """Whether only loads, stores and atomics touch shared memory, and only barriers of threads order accesses: no thread can
    release by an atomic of shared memory what others do not know by a barrier."""
    for op in (op for block in graph.blocks for op in block.ops):
        if op.call is not None or op.effects.calls or op.effects.fences or not RELEASING.isdisjoint(op.mods.values()):
            return False
        if any(access.stated.is_of_mbarrier for access in op.accesses):
            return False
        moves = op.row.lower in LOADS_AND_STORES or all(access.stated.kind != "write" for access in op.accesses)
        if not moves:
            return False
    return True


def _is_sum(op: Op, access: MemoryAccess) -> bool:
    """Whether it is an integer sum whose old value nobody gets, which orders nothing."""
    mods = op.mods
    if access.stated.kind != "update" or mods.get("op") != ADD.word or any(dst is not None for dst in op.dsts):
        return False
    if "type" not in mods or type_class(op.type()) not in ADD.classes or op.type().bytes not in WORDS:
        return False
    relaxed = mods.get("sem", "relaxed") == "relaxed" and not of_system(op)
    return relaxed and mods.get("mode", "b") == "b" and "vec" not in mods


def _is_plain(op: Op) -> bool:
    """Whether it is a load or a store in which no other thread takes part."""
    return op.row.lower in LOADS_AND_STORES and (STRONG | BYPASSING).isdisjoint(op.mods.values())


def _is_beside(loop: Loop | None, sums: Collection[Block]) -> bool:
    """Whether there are sums in a loop as well, so that what they gain is more than a test costs there."""
    return loop is None or any(block in loop.blocks for block in sums)
