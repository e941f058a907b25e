"""Addresses of lanes that are expected to lie side by side, and that a loop moves on by what all of them share."""

from __future__ import annotations

from collections import Counter

from ptxemu.analysis.runs import Expected, adds, expected_of
from ptxemu.analysis.streams import read_by
from ptxemu.analysis.trips import Makers, makers, step_of
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Phi
from ptxemu.ir.ops import Addr, Op, Operand, Reg
from ptxemu.ir.types import B64
from ptxemu.passes.inductions import Induction, Move


def inductions(uniformity: Uniformity) -> list[Induction]:
    """Those of loops that are entered from one block and have no others in them."""
    loops, expected = uniformity.structure.loops, expected_of(uniformity)
    found = []
    for loop in dict.fromkeys(loops.values()):
        inner = any(loops[block] is not loop for block in loop.blocks)
        if not inner and len(loop.header.preds) == 2 and (moves := _moves(uniformity, expected, loop)):
            found.append(Induction(loop, moves))
    return found


def _moves(uniformity: Uniformity, expected: Expected, loop: Loop) -> list[Move]:
    phis = [phi for phi in loop.header.phis if phi.dst.type.bits == B64.bits and uniformity.shape(phi.dst) is None]
    distances = _distances(uniformity, expected, loop) if phis else {}
    if not distances:
        return []
    made = makers(loop.blocks)
    readers = Counter(reg for block in loop.blocks for reg in read_by(block))  # outside, phis at the exits read
    steps = ((phi, _step(uniformity, phi, loop, made)) for phi in phis if phi.dst in distances)
    return [Move(phi, step, distances[phi.dst], _is_read(step, readers)) for phi, step in steps if step is not None]


def _is_read(step: Op, readers: Counter[Reg]) -> bool:
    return any(readers[reg] > 1 for reg in step.results)


def _distances(uniformity: Uniformity, expected: Expected, loop: Loop) -> dict[Operand, int]:
    """How far apart lanes are, by registers with addresses that vary, but are expected to lie side by side."""
    found: dict[Operand, int] = {}
    for access in (op.access for block in loop.blocks for op in block.ops if len(op.accesses) == 1):
        address, size = access.address, access.bytes
        if not isinstance(address, Addr) or not size or address.base in found or uniformity.shape(address.base) is not None:
            continue
        runs = expected.of(address, size)
        if runs is not None and runs.width == LANES and runs.step:
            found[address.base] = runs.step
    return found


def _step(uniformity: Uniformity, phi: Phi, loop: Loop, made: Makers) -> Op | None:
    """What adds to a phi what all lanes share, if that is kept in the loop and one op does."""
    step = step_of(phi, loop.latches[0], made)
    if step is None or not adds(step):
        return None
    by = [source for source in step.srcs if source is not phi.dst]
    kept = len(by) == 1 and by[0] not in made and not uniformity.varies(by[0])
    return step if kept else None
