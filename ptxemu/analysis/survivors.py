"""What a warp needs behind a barrier, of all that is kept between blocks of linearized code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ptxemu.analysis.lifetimes import Lifetimes
from ptxemu.analysis.linear import Linear
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Phi, writes
from ptxemu.ir.ops import Op, Reg


@dataclass(frozen=True, slots=True)
class Survivor:
    """``phis``: of blocks where lanes may wait, the values that are handed over; ``waiting``: these blocks, as far as their masks
    are kept; ``running``: blocks whose mask serves others that are to come."""

    registers: list[Reg]
    phis: list[Phi]
    waiting: list[Block]
    running: list[Block]


class Survivors:
    """For the ops of a graph for which ``is_barrier`` holds.

    ``block_of``: the block of each. ``within_blocks``: registers that ops behind a barrier read in the block of their own.
    ``lifetimes``: of registers that outlive one. ``often_written``: those that may be written several times between two, in a
    loop without any.
    """

    def __init__(self, linear: Linear, mask_home: Mapping[Block, Block], is_barrier: Callable[[Op], bool]) -> None:
        self.linear = linear
        self.mask_home = mask_home
        structure = linear.structure
        self.block_of = {op: block for block in structure.order for op in block.ops if is_barrier(op)}
        self.barriers = list(self.block_of)
        self._life = Lifetimes(structure).of if self.barriers else {}
        self._position = self._positions() if self.barriers else {}
        self._registers = {op: self._living(op) for op in self.barriers}
        self.within_blocks = {reg for registers in self._registers.values() for reg in registers}
        self.lifetimes = {reg: life for reg, life in self._life.items() if reg in self.within_blocks}
        self.often_written = self._written_in_loops() & self.within_blocks
        self._members: dict[Block, list[Block]] = {}
        for block, home in mask_home.items():
            self._members.setdefault(home, []).append(block)

    def _positions(self) -> dict[Op, int]:
        """As :class:`Lifetimes` counts."""
        found: dict[Op, int] = {}
        start = 0
        for block in self.linear.structure.order:
            for index, op in enumerate(block.ops, 1):
                if op in self.block_of:
                    found[op] = start + index
            start += len(block.ops) + 2
        return found

    def of(self, op: Op) -> Survivor:
        block = self.block_of[op]
        pending = self.linear.pending(block)
        return Survivor(
            self._registers[op],
            [phi for waiting in pending for phi in waiting.phis],
            [waiting for waiting in pending if self.mask_home[waiting] is waiting],
            [home for home in self._members if self._serves(home, block)],
        )

    def _living(self, op: Op) -> list[Reg]:
        """Those that live on from before the barrier."""
        at = self._position[op]
        return [value for value, life in self._life.items() if isinstance(value, Reg) and life.first <= at < life.last]

    def _written_in_loops(self) -> set[Reg]:
        """Registers that are written in a loop without a barrier."""
        loops, waited = self.linear.structure.loops, set[Loop]()
        for block in self.block_of.values():
            loop = loops.get(block)
            while loop is not None and loop not in waited:
                waited.add(loop)
                loop = loop.parent
        found: set[Reg] = set()
        for block, loop in loops.items():
            if loop not in waited:
                found.update(phi.dst for phi in block.phis)
                found.update(reg for op in block.ops for reg in writes(op))
        return found

    def _serves(self, home: Block, block: Block) -> bool:
        """Whether the mask that ``home`` has run with may be read behind a barrier of ``block``, before it runs again."""
        structure = self.linear.structure
        if home is structure.order[0]:
            return False  # all lanes of the warp
        if self.mask_home[block] is home:
            return True
        at, around = structure.index[block], self._outermost(block)
        before = structure.index[home] <= at or (around is not None and self._outermost(home) is around)
        return before and any(
            structure.index[member] > at or (around is not None and self._outermost(member) is around)
            for member in self._members[home]
            if member is not home
        )

    def _outermost(self, block: Block) -> Loop | None:
        loop = self.linear.structure.loops.get(block)
        while loop is not None and loop.parent is not None:
            loop = loop.parent
        return loop
