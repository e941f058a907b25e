"""Kernels for which it makes no difference which threads are a warp, so that rows of threads may begin at lanes of their own
(``csrc/launch/spread.h``)."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.ir.convergence import is_plain_barrier
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import STRONG, Op, Operand, SReg, items_of

PLACES = {"tid", "ntid", "ctaid", "nctaid"}
"""Special registers that tell nothing of warps."""
OF_WARPS = frozenset({"accelerated", "tensors"})
"""Flags of rows of instructions that threads of a warp, or of four, execute together."""
OF_A_CTA = {"shared", "generic"}
"""Spaces through which threads of a CTA may tell each other where they are: by strong accesses, without a barrier."""


def may_be_spread(graphs: Iterable[Graph]) -> bool:
    return all(_is_of_one_thread(op) for graph in graphs for block in graph.blocks for op in block.ops)


def _is_of_one_thread(op: Op) -> bool:
    """Whether an op is the same for a thread whoever is in its warp."""
    effects = op.effects
    if effects.waits:
        return is_plain_barrier(op)
    if effects.meets or effects.arrives or effects.asks or effects.calls or not OF_WARPS.isdisjoint(op.row.flags):
        return False
    if op.call is not None or any(_tells_warps(source) for source in op.srcs):
        return False
    strong = not STRONG.isdisjoint(op.mods.values())
    return not (strong and any(access.space in OF_A_CTA and access.stated.kind != "update" for access in op.accesses))


def _tells_warps(source: Operand) -> bool:
    return any(isinstance(item, SReg) and item.name.partition(".")[0] not in PLACES for item in items_of(source))
