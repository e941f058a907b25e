"""Lifetimes of values in linearized code, and places in memory that values with disjoint lifetimes share.

Lanes that wait keep their values while other lanes run, so a value lives from its first to its last mention in *linear* order,
whatever the control-flow graph says.  If that interval covers part of a loop it covers all of it: lanes may have left the
loop, or wait to run the rest, while others go round again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from ptxemu.analysis.linear import Layout
from ptxemu.ir.graph import Block, Phi, reads, writes
from ptxemu.ir.ops import Reg

Value = Reg | Phi  # a phi stands for what is handed over to it: it lives apart from its result


@dataclass(slots=True)
class Lifetime:
    """First and last position, both included."""

    first: int
    last: int


class Lifetimes:
    """The lifetime of every register and phi of a graph; positions count ops in linear order."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._span: dict[Block, tuple[int, int]] = {}
        self.of: dict[Value, Lifetime] = {}
        self._scan()
        self._cover_loops()

    def _mention(self, value: Value, position: int) -> None:
        found = self.of.get(value)
        if found is None:
            self.of[value] = Lifetime(position, position)
        else:
            found.first, found.last = min(found.first, position), max(found.last, position)

    def _scan(self) -> None:
        """Each op has a position, and so have the start and the end of each block."""
        position = 0
        for block in self._layout.order:
            start = position
            for phi in block.phis:
                self._mention(phi, position)
                self._mention(phi.dst, position)
            for op in block.ops:
                position += 1
                for reg in reads(op):
                    self._mention(reg, position)
                for reg in writes(op):
                    self._mention(reg, position)
            position += 1
            self._end(block, position)
            self._span[block] = start, position
            position += 1

    def _end(self, block: Block, position: int) -> None:
        if block.cond is not None:
            self._mention(block.cond, position)
        for succ in block.succs:
            for phi in succ.phis:
                self._mention(phi, position)
                if isinstance(arg := phi.args[block], Reg):
                    self._mention(arg, position)

    def _cover_loops(self) -> None:
        extents = {
            id(loop): (min(self._span[block][0] for block in loop.blocks), max(self._span[block][1] for block in loop.blocks))
            for loop in dict.fromkeys(self._layout.loops.values())
        }
        chains = {block: self._chain(block, extents) for block in self._layout.order}
        at = [block for block in self._layout.order for _ in range(self._span[block][0], self._span[block][1] + 1)]
        for life in self.of.values():
            while any([self._cover(life, chains[at[end]]) for end in (life.first, life.last)]):
                pass

    @staticmethod
    def _cover(life: Lifetime, chain: list[tuple[int, int]]) -> bool:
        """Widen a lifetime to the outermost loop of a chain that it crosses the border of; whether it grew."""
        inside = bisect_left(chain, True, key=lambda extent: extent[0] <= life.first and extent[1] >= life.last)
        if not inside:
            return False
        first, last = min(life.first, chain[inside - 1][0]), max(life.last, chain[inside - 1][1])
        grown = (first, last) != (life.first, life.last)
        life.first, life.last = first, last
        return grown

    def _chain(self, block: Block, extents: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
        """The extents of the loops around a block, from the innermost on."""
        found = []
        loop = self._layout.loops.get(block)
        while loop is not None:
            found.append(extents[id(loop)])
            loop = loop.parent
        return found


def place(lifetimes: Iterable[tuple[Hashable, Lifetime, int]], start: int) -> tuple[dict[Hashable, int], int]:
    """Offsets for (value, lifetime, bytes), from ``start`` on, and their end. Values of one size share places over time."""
    offsets: dict[Hashable, int] = {}
    free: dict[int, list[int]] = {}
    live: list[tuple[int, int, int]] = []  # last position, offset, size
    end = start
    for value, life, size in sorted(lifetimes, key=lambda item: item[1].first):
        while live and live[0][0] < life.first:
            _, offset, freed = heappop(live)
            free.setdefault(freed, []).append(offset)
        if free.get(size):
            offset = free[size].pop()
        else:
            offset, end = end, end + size
        offsets[value] = offset
        heappush(live, (life.last, offset, size))
    return offsets, end
