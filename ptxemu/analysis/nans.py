"""Where f32 NaNs need not be canonical yet.

PTX arithmetic returns the canonical NaN; the host's keeps payloads.  Making each result canonical costs more than most of the
arithmetic, and only bits that are observed matter: other arithmetic does not care which NaN it reads.  So a *raw* value holds
the host's NaN, and readers that observe bits (stores, moves, conversions) make it canonical.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Imm, Op, Reg


def may_be_raw(op: Op) -> bool:
    """Whether the result of ``op`` is left raw. A guarded result mixes with an old value of unknown kind."""
    return op.effects.nan in ("raw", "quiet") and op.guard is None and op.dst_types[0].name == "f32"


def takes_raw(op: Op) -> bool:
    """Whether one NaN is as good as another for what ``op`` reads."""
    return bool(op.effects.nan)


def raw_values(graph: Graph) -> set[Reg]:
    """Registers that may hold a NaN that is not canonical: raw results, what is carried of such from other lanes, and phis of
    nothing but such and constants.

    Constants that are subnormal are left out, as they are not flushed where subnormal results wait for it as NaNs do
    (lower/core/denormals.py).
    """
    return _followed(graph, may_be_raw)


def quiet_values(graph: Graph) -> set[Reg]:
    """Those of them that are never signaling NaNs. Sums and products may be: LLVM takes a product by 1 for the other factor."""
    return _followed(graph, lambda op: op.effects.nan == "quiet" and may_be_raw(op))


def _followed(graph: Graph, begins: Callable[[Op], bool]) -> set[Reg]:
    """Results of some ops, what is carried of them, and phis of nothing but these and constants."""
    found = {op.dsts[0] for block in graph.blocks for op in block.ops if begins(op)}
    found.discard(None)
    if not found:
        return set()
    others = [(dst, args) for block in graph.blocks for dst, args in block.phis.rows() if dst.type.bits == 32]
    others += [carried for block in graph.blocks for op in block.ops if (carried := _carried(op)) is not None]
    hopeful = {dst for dst, _ in others}
    changed = True
    while changed:
        changed = False
        for dst, args in others:
            if dst in hopeful and not all(_fits(arg, found, hopeful) for arg in args):
                hopeful.discard(dst)
                changed = True
    return {reg for reg in found if reg is not None} | hopeful


def _carried(op: Op) -> tuple[Reg, tuple[Reg | Imm]] | None:
    """The result of an op that carries a word from one lane to others, and what it carries."""
    if not op.effects.carries or op.guard is not None or op["d"] is None:
        return None
    dst, source = op["d"], op[op.effects.carries]
    return (dst, (source,)) if isinstance(source, Reg) and source.type.bits == dst.type.bits == 32 else None


def _fits(arg: Reg | Imm, raw: set[Reg | None], hopeful: set[Reg]) -> bool:
    if isinstance(arg, Imm):
        magnitude = arg.bits & 0x7FFFFFFF
        return magnitude == 0 or 0x00800000 <= magnitude <= 0x7F800000
    return arg in raw or arg in hopeful
