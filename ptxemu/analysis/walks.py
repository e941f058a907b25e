"""Loops in which each lane walks along memory of its own, such as a row of a matrix, by a constant, and which only load."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from ptxemu.analysis.trips import Makers, makers, step_of
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Graph, Phi
from ptxemu.ir.ops import STRONG, Imm, Op, Reg
from ptxemu.ir.types import B64
from ptxemu.isa.table import ADD, LOADS_AND_STORES


def only_loads(op: Op) -> bool:
    """Whether an op changes no memory and waits for nobody."""
    plain = op.row.lower in LOADS_AND_STORES and STRONG.isdisjoint(op.mods.values())
    return op.effects.pure or (plain and all(not one.stated.writes for one in op.accesses))


class Walk(Struct, frozen=True):
    """Such a loop, if it has no others in it: the registers that hold where lanes are, and the bytes by which all of them go on
    in a trip."""

    loop: Loop
    steps: Mapping[Reg, int]


def walks(graph: Graph, uniformity: Uniformity, others: Collection[Loop] = ()) -> dict[Block, Walk]:
    """By the block before each. ``others`` are loops that count for nothing."""
    found: dict[Block, Walk] = {}
    for loop in dict.fromkeys(uniformity.structure.loops.values()):
        before = [block for block in loop.header.preds if block not in loop.blocks]
        if loop in others or len(before) != 1 or not _is_simple(graph, uniformity, loop):
            continue
        if steps := _steps(uniformity, loop):
            found[before[0]] = Walk(loop, steps)
    return found


def _is_simple(graph: Graph, uniformity: Uniformity, loop: Loop) -> bool:
    """Whether it has no loops in it, and only loads."""
    loops = uniformity.structure.loops
    alone = all(loops[block] is loop and not block.table and block not in graph.spins for block in loop.blocks)
    return alone and len(loop.latches) == 1 and all(only_loads(op) for block in loop.blocks for op in block.ops)


def _steps(uniformity: Uniformity, loop: Loop) -> dict[Reg, int]:
    made = makers(loop.blocks)
    return {phi.dst: step for phi in loop.header.phis if (step := _step(uniformity, phi, loop, made))}


def _step(uniformity: Uniformity, phi: Phi, loop: Loop, made: Makers) -> int:
    """Of an address of each lane; 0 of others, and where it is not a constant."""
    shape = uniformity.shape(phi.dst)
    if phi.dst.type.bits != B64.bits or (shape is not None and shape.uniform):
        return 0
    step = step_of(phi, loop.latches[0], made)
    if step is None or step.row.lower != ADD or step.guard is not None:
        return 0
    return sum(source.bits for source in step.srcs if isinstance(source, Imm))
