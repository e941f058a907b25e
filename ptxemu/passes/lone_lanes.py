"""Code that one lane runs alone computes with that lane's values, once, and not with those of all lanes.

At the start of such code, and behind each op in it whose results differ between lanes whatever its operands, ops pick the
lane's value out.  What follows from these is uniform, as an analysis then finds (:mod:`ptxemu.analysis.uniformity`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ptxemu.ir.graph import Block, reading, reads, writes
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import U32
from ptxemu.passes.divergence import varies_by_effect
from ptxemu.passes.internal import first_lane, lane_of

ANY = -1
"""A lane that only the launch tells."""


class LoneCode(Struct, frozen=True):
    """Blocks that a lane, or ``ANY`` one, runs alone, in linear order: it comes to the first of them."""

    blocks: list[Block]
    lane: int


def single_out(code: Iterable[LoneCode], varies: Callable[[Reg], bool]) -> bool:
    """Rewrite such code of a graph in SSA form, in place; whether anything has changed."""
    changes = [_Region(one, varies).rewrite() for one in code]
    return any(changes)


class _Region:
    """The blocks that a lane runs alone."""

    def __init__(self, code: LoneCode, varies: Callable[[Reg], bool]) -> None:
        self.varies = varies
        self.blocks, self.inside = code.blocks, set(code.blocks)
        self.lane: Imm | Reg = Reg("lone.lane", U32) if code.lane == ANY else Imm(code.lane, U32)
        self.own: dict[Reg, Operand] = {}  # the lane's values of registers that vary

    def rewrite(self) -> bool:
        like = next((op for block in self.blocks for op in block.ops), None)
        inputs = self._inputs()
        if like is None or not (inputs or any(self._varying(op) for block in self.blocks for op in block.ops)):
            return False
        first, *others = self.blocks
        found = [first_lane(self.lane, like)] if isinstance(self.lane, Reg) else []
        first.ops = [*found, *(self._pick(reg, like) for reg in inputs), *self._ops(first)]
        for block in others:
            block.ops = list(self._ops(block))
        self._replace_ends()
        return True

    def _inputs(self) -> list[Reg]:
        """Registers that vary and come from outside, or to the first block."""
        made = {reg for block in self.blocks for op in block.ops for reg in writes(op)}
        made.update(reg for block in self.blocks[1:] for reg in block.phis.dsts)
        used = dict.fromkeys(reg for block in self.blocks for reg in self._used(block) if reg not in made)
        return [reg for reg in used if self.varies(reg)]

    def _used(self, block: Block) -> Iterator[Reg]:
        for op in block.ops:
            yield from reads(op)
        if block.cond is not None:
            yield block.cond
        for column in self._handed(block):
            yield from (arg for arg in column if isinstance(arg, Reg))

    def _handed(self, block: Block) -> Iterable[list[Reg | Imm]]:
        """What a block hands over to phis inside."""
        return (succ.phis.args[block] for succ in block.succs if succ in self.inside and succ.phis)

    def _varying(self, op: Op) -> list[Reg]:
        """The results that differ between lanes whatever the operands."""
        return [reg for reg in writes(op) if self.varies(reg)] if op.call is not None or varies_by_effect(op) else []

    def _pick(self, reg: Reg, like: Op) -> Op:
        """The op that picks the lane's value of a register out, which then stands for it."""
        self.own[reg] = own = Reg(f"{reg.name}.lone", reg.type)
        return lane_of(own, reg, self.lane, like)

    def _ops(self, block: Block) -> Iterator[Op]:
        for op in block.ops:
            yield reading(op, self.own)
            for reg in self._varying(op):
                yield self._pick(reg, op)

    def _replace_ends(self) -> None:
        for block in self.blocks:
            if block.cond is not None:
                block.cond = self.own.get(block.cond, block.cond)  # type: ignore[assignment]
            for column in self._handed(block):
                column[:] = [self.own.get(arg, arg) if isinstance(arg, Reg) else arg for arg in column]  # type: ignore[misc]
