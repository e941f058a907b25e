"""Lanes that all go on by the same distance in each trip of a loop are where they were before it, plus what they have in common.

Such an address becomes that sum, and the distance a register of its own, which is uniform.  How the lanes lay before the loop is
tested there, once (:mod:`ptxemu.lower.core.runs`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Phi
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.ir.types import B32, U32
from ptxemu.isa.table import Row
from ptxemu.passes.internal import IN_LINE, IN_STEP, LINE_START, MOVED, lane_of, marker


class Move(Struct, frozen=True):
    """A phi of the header of a loop, to which the op ``step`` adds what all lanes share.

    ``distance``: how far apart lanes are expected to lie there; ``read``: others than the phi read what the op makes.
    """

    phi: Phi
    step: Op
    distance: int
    read: bool


class Induction(Struct, frozen=True):
    """A loop of one latch that is entered from one block, and what it moves on."""

    loop: Loop
    moves: Sequence[Move]


def split(found: Sequence[Induction]) -> bool:
    """Rewrite such loops of a graph in SSA form, in place; whether there are any."""
    for one in found:
        _split(one.loop, one.moves)
    return bool(found)


def _split(loop: Loop, moves: Sequence[Move]) -> None:
    header, (latch,) = loop.header, loop.latches
    (before,) = (block for block in header.preds if block is not latch)
    header.phis.drop({move.phi.dst for move in moves})
    steps: dict[Op, list[Op]] = {}
    sums: list[Op] = []
    for move in moves:
        step, lanes, start = move.step, move.phi.dst, move.phi.args[before]
        moved, later = (Reg(f"{lanes.name}.{suffix}", lanes.type) for suffix in ("moved", "later"))
        header.phis.dsts.append(moved)
        header.phis.args[before].append(Imm(0, lanes.type))
        header.phis.args[latch].append(later)
        by = next(source for source in step.srcs if source is not lanes)
        steps[step] = [*([step] if move.read else []), replace(step, dsts=(later,), srcs=(moved, by))]
        assert isinstance(start, Reg)  # it varies
        distance, known = Imm(move.distance, lanes.type), _known(start)
        before.ops += _tests(start, distance, known, step)
        sums.append(_made(MOVED, lanes, step, start, moved, distance, *known))
    for block in loop.blocks:
        block.ops = [made for op in block.ops for made in steps.get(op, (op,))]
    header.ops = [*sums, *header.ops]


def _known(start: Reg) -> list[Reg]:
    """Of lanes: what the middle one has, which lie side by side with it, where the line of others starts, and which these are."""
    kinds = {"middle": start.type, "first": B32, "start": start.type, "others": B32}
    return [Reg(f"{start.name}.{name}", kind) for name, kind in kinds.items()]


def _tests(lanes: Reg, step: Imm, known: list[Reg], like: Op) -> list[Op]:
    """What finds that out."""
    middle, first, start, others = known
    return [
        lane_of(middle, lanes, Imm(LANES // 2, U32), like),
        _made(IN_STEP, first, like, lanes, step),
        _made(LINE_START, start, like, lanes, first, step),
        _made(IN_LINE, others, like, lanes, start, step),
    ]


def _made(row: Row, dst: Reg, like: Op, *srcs: Reg | Imm) -> Op:
    return marker(row, like, (dst,), srcs)
