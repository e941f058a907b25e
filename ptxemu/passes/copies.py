"""Copy and constant propagation through moves, and removal of unused pure ops. Works on SSA."""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir.graph import Graph, Phi, reading, reads
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
        for phi in block.phis:
            phi.args = {pred: final.get(arg, arg) if isinstance(arg, Reg) else arg for pred, arg in phi.args.items()}  # type: ignore[misc]
        if block.cond is not None:
            cond = final.get(block.cond, block.cond)
            if isinstance(cond, Reg):
                block.cond = cond


def _sweep(graph: Graph) -> None:
    """Mark what effects, branches and phis of marked values need; drop the other pure ops and phis."""
    makers: dict[Reg | Imm, Op | Phi] = {}
    work: list[Reg | Imm] = []
    for block in graph.blocks:
        for phi in block.phis:
            makers[phi.dst] = phi
        for op in block.ops:
            for dst in op.dsts:
                if dst is not None:
                    makers[dst] = op
            if not removable(op):
                work.extend(reads(op))
        if block.cond is not None:
            work.append(block.cond)
    needed: set[Reg | Imm] = set()
    while work:
        value = work.pop()
        if value in needed:
            continue
        needed.add(value)
        maker = makers.get(value)
        if maker is not None:
            work.extend(maker.args.values() if isinstance(maker, Phi) else reads(maker))
    for block in graph.blocks:
        block.phis = [phi for phi in block.phis if phi.dst in needed]
        kept = (op for op in block.ops if not removable(op) or any(dst in needed for dst in op.dsts if dst))
        block.ops = [_without_dead(op, needed) for op in kept]


def _without_dead(op: Op, needed: set[Reg | Imm]) -> Op:
    """An ``atom`` whose result is never read is a ``red``; a texture fetch computes only the components that are read."""
    if any(access.space == "texture" for access in op.accesses):
        return replace(op, dsts=tuple(dst if dst in needed else None for dst in op.dsts))
    if not op.row.discards or any(dst in needed for dst in op.dsts if dst is not None):
        return op
    return replace(op, dsts=(None,) * len(op.dsts))


def removable(op: Op) -> bool:
    """Pure: dropping it when its results are unused changes nothing."""
    return op.effects.pure and bool(op.dsts)
