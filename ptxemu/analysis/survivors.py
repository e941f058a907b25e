"""What a warp needs where it goes on behind a barrier or in a loop, of all that is kept between blocks of linearized code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy

from msgspec import Struct

from ptxemu.analysis.lifetimes import Lifetimes
from ptxemu.analysis.linear import Linear
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Phi, writes
from ptxemu.ir.ops import Op, Reg

Point = Op | Block
"""A barrier, or the end of a loop: its latch."""


class Survivor(Struct, frozen=True):
    """``phis``: of blocks where lanes may wait, the values that are handed over; ``waiting``: these blocks, as far as their masks
    are kept; ``running``: blocks whose mask serves others that are to come."""

    registers: list[Reg]
    phis: list[Phi]
    waiting: list[Block]
    running: list[Block]


class Survivors:
    """For the *points* where a warp may give way to others: the ops of a graph for which ``is_barrier`` holds, and the latches of
    ``loops``, behind what they hand over to the header.

    ``block_of``: the block of each. ``registers``: those that are needed behind one, also by ops in the block of their own.
    ``lifetimes``: theirs. ``often_written``: those that may be written several times between two, in a loop without any.
    """

    def __init__(
        self, linear: Linear, mask_home: Mapping[Block, Block], is_barrier: Callable[[Op], bool], loops: Iterable[Loop] = ()
    ) -> None:
        self.linear = linear
        self.mask_home = mask_home
        structure = linear.structure
        self.loops = {loop.latches[0]: loop for loop in loops}
        self.barriers = {op: block for block in structure.order for op in block.ops if is_barrier(op)}
        self.block_of: dict[Point, Block] = {latch: latch for latch in self.loops}
        self.block_of |= {op: block for op, block in self.barriers.items()}
        self._members: dict[Block, list[Block]] = {}
        for block, home in mask_home.items():
            self._members.setdefault(home, []).append(block)
        self.lifetimes = Lifetimes(structure).of if self.block_of else {}
        self._registers = dict(self._living()) if self.block_of else {}
        self.registers = {reg for registers in self._registers.values() for reg in registers}
        self.lifetimes = {reg: span for reg, span in self.lifetimes.items() if reg in self.registers}
        self.often_written = self._written_in_loops() & self.registers

    def without(self, registers: Collection[Reg]) -> Survivors:
        """The same if some registers need not be kept for a warp."""
        found = copy(self)
        found._registers = {point: [reg for reg in living if reg not in registers] for point, living in self._registers.items()}
        found.registers = self.registers.difference(registers)
        found.lifetimes = {reg: span for reg, span in self.lifetimes.items() if reg not in registers}
        found.often_written = self.often_written.difference(registers)
        return found

    def of(self, point: Point) -> Survivor:
        block = self.block_of[point]
        pending = self.linear.pending(block)
        if isinstance(point, Block):
            header = self.loops[point].header
            pending = list(dict.fromkeys([header, *self.linear.pending(header)]))
        return Survivor(
            self._registers[point],
            [phi for waiting in pending for phi in waiting.phis],
            [waiting for waiting in pending if self.mask_home[waiting] is waiting],
            [home for home in self._members if self._serves(home, block)],
        )

    def _living(self) -> Iterator[tuple[Point, list[Reg]]]:
        """The registers that live on from before each point. Positions are those of :class:`Lifetimes`."""
        begins: dict[Block, int] = {}
        start = 0
        for block in self.linear.structure.order:
            begins[block] = start
            for at, op in enumerate(block.ops, start + 1):
                if op in self.barriers:
                    yield op, [reg for reg, life in self.lifetimes.items() if life.first <= at < life.last]
            start += len(block.ops) + 2
        for latch, loop in self.loops.items():
            first, last = begins[loop.header], max(begins[block] + len(block.ops) + 1 for block in loop.blocks)
            yield latch, [reg for reg, life in self.lifetimes.items() if life.first <= first and last <= life.last]

    def _written_in_loops(self) -> set[Reg]:
        """Registers that are written in a loop without a point."""
        loops, waited = self.linear.structure.loops, set[Loop]()
        for block in self.block_of.values():
            loop = loops.get(block)
            while loop is not None and loop not in waited:
                waited.add(loop)
                loop = loop.parent
        found: set[Reg] = set()
        for block, loop in loops.items():
            if loop not in waited:
                found.update(block.phis.dsts)
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
