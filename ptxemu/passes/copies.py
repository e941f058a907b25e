"""Copy and constant propagation through moves, and removal of unused pure ops. Works on SSA."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec.structs import replace

from ptxemu.ir.graph import Graph, reading, reads
from ptxemu.ir.ops import Imm, Op, Operand, Reg


def propagate(graph: Graph) -> None:
    """Replace copies by what they copy, fold guards that are constant, then drop pure ops whose results are never read."""
    _forward(graph)
    _sweep(graph)


def _copied(op: Op) -> tuple[Reg, Reg | Imm] | None:
    """Where to and what a plain move of the full register width copies."""
    if not op.effects.copies or op.guard is not None or len(op.dsts) != 1 or len(op.srcs) != 1:
        return None
    (dst,), (source,), (kind,) = op.dsts, op.srcs, op.src_types
    if dst is None or kind is None or kind.bits != dst.type.bits or any(op.negs):
        return None
    if isinstance(source, (Reg, Imm)) and source.type.bits == dst.type.bits:
        return dst, source
    return None


def _forward(graph: Graph) -> None:
    mapping: dict[Reg, Operand] = {}

    def resolve(operand: Operand) -> Operand:
        while isinstance(operand, Reg) and operand in mapping:
            operand = mapping[operand]
        return operand

    for block in graph.blocks:
        for op in block.ops:
            if found := _copied(op):
                mapping[found[0]] = resolve(found[1])
    if not mapping:
        return
    final = {reg: resolve(reg) for reg in mapping}
    for block in graph.blocks:
        block.ops = [reading(op, final) for op in block.ops]
        for pred, column in block.phis.args.items():
            block.phis.args[pred] = [final.get(arg, arg) if isinstance(arg, Reg) else arg for arg in column]  # type: ignore[misc]
        if block.cond is not None:
            cond = final.get(block.cond, block.cond)
            if isinstance(cond, Reg):
                block.cond = cond


def _sweep(graph: Graph) -> None:
    """Mark what effects, branches and phis of marked values need; drop the other pure ops and phis."""
    makers: dict[Reg | Imm | None, Op | Sequence[Reg | Imm]] = {}  # of values that nothing marked reads; of phis the arguments
    work: list[Reg | Imm] = []
    for block in graph.blocks:
        makers.update(block.phis.rows())
        for op in block.ops:
            makers.update(dict.fromkeys(op.dsts, op))
            if not removable(op):
                work.extend(reads(op))
        if block.cond is not None:
            work.append(block.cond)
    while work:
        maker = makers.pop(work.pop(), ())
        work.extend(reads(maker) if isinstance(maker, Op) else maker)
    unread = makers.keys() | {None}
    for block in graph.blocks:
        block.phis.drop(unread)
        block.ops = [_without_dead(op, unread) for op in block.ops if not (removable(op) and unread >= set(op.dsts))]


def _without_dead(op: Op, unread: Set[Reg | Imm | None]) -> Op:
    """An ``atom`` whose result is never read is a ``red``; a texture fetch computes only the components that are read."""
    if any(access.opaque and op.row.space(access, op.mods) == "texture" for access in op.effects.accesses):
        return replace(op, dsts=tuple(None if dst in unread else dst for dst in op.dsts))
    if not op.row.discards or not unread >= set(op.dsts):
        return op
    return replace(op, dsts=(None,) * len(op.dsts))


def removable(op: Op) -> bool:
    """Pure: dropping it when its results are unused changes nothing."""
    return op.effects.pure and bool(op.dsts)
