"""Lifetimes of values in linearized code, and places in memory that values with disjoint lifetimes share.

Lanes that wait keep their values while other lanes run, so a value lives from its first to its last mention in *linear* order,
whatever the control-flow graph says.  What a loop reads from before it lives to the loop's end, as the next trip reads it too.
What is handed over at a loop's exit lives from the loop's start, as lanes that have left keep it while others go round again.
Registers do not leave such a loop in any other way, as SSA form is loop-closed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping
from heapq import heappop, heappush
from itertools import repeat
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct

from ptxemu.analysis.linear import Structure
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, reads, writes
from ptxemu.ir.ops import Imm, Reg

Key = TypeVar("Key", bound=Hashable)


class Lifetime(Struct, gc=False):
    """First and last position, both included."""

    first: int
    last: int


class Lifetimes:
    """Lifetimes in a graph; positions count ops in linear order.

    ``of``: of every register.  ``handed``: for every block with phis, of what is handed over to them, from the first edge that
    does so to the block itself, or to its latch.  ``same``: registers that have the value of another one, which lives as
    long as they do; to phis of which they are the results nothing is handed over.
    """

    def __init__(self, structure: Structure, same: Mapping[Reg, Reg] = MappingProxyType({})) -> None:
        self._structure = structure
        self._same = same
        self._loop_at: list[Loop | None] = []
        self._first: dict[Reg, int] = {}
        self._last: dict[Reg | Imm, int] = {}
        self.handed: dict[Block, Lifetime] = {}
        extents = self._scan()
        self.of = self._covering_loops(extents)

    def _mention(self, reg: Reg, position: int) -> None:
        reg = self._same.get(reg, reg)
        self._first.setdefault(reg, position)
        self._last[reg] = position

    def _scan(self) -> dict[Loop, list[int]]:
        """Each op has a position, and so have the start and the end of each block. Returns the extents of the loops."""
        extents: dict[Loop, list[int]] = {}
        position = 0
        for block in self._structure.order:
            start = position
            self._begin(block, position)
            for op in block.ops:
                position += 1
                for reg in reads(op):
                    self._mention(reg, position)
                for reg in writes(op):
                    self._mention(reg, position)
            position += 1
            self._end(block, position)
            loop = self._structure.loops.get(block)
            self._loop_at += [loop] * (position + 1 - start)
            if loop is not None:
                extents.setdefault(loop, [start, position])[1] = position
            position += 1
        for loop, (_, last) in reversed(extents.items()):  # those inside come first
            if loop.parent is not None:
                extents[loop.parent][1] = max(last, extents[loop.parent][1])
        return extents

    def _begin(self, block: Block, position: int) -> None:
        if block in self.handed:
            self.handed[block].last = position
        self._first.update(zip(block.phis.dsts, repeat(position)))
        self._last.update(zip(block.phis.dsts, repeat(position)))

    def _end(self, block: Block, position: int) -> None:
        if block.cond is not None:
            self._mention(block.cond, position)
        same = self._same
        for succ in block.succs:
            if succ.phis:
                self.handed.setdefault(succ, Lifetime(position, position)).last = position
                given: Iterable[Reg | Imm] = succ.phis.args[block]
                if same:
                    given = [same.get(arg, arg) for dst, arg in zip(succ.phis.dsts, given) if dst not in same]  # type: ignore[arg-type]
                self._last.update(zip(given, repeat(position)))

    def _covering_loops(self, extents: Mapping[Loop, list[int]]) -> dict[Reg, Lifetime]:
        """Lifetimes, widened to the outermost loops around their ends that they cross the border of."""
        chains: dict[Loop, _Chain] = {}
        for loop, (first, last) in extents.items():  # those around come first
            outer = chains[loop.parent] if loop.parent is not None else _Chain([], [])
            chains[loop] = _Chain([*outer.firsts, first], [*outer.ends, -last])
        for life in self.handed.values():
            if (around := self._loop_at[life.first]) is not None:
                life.first = chains[around].first_before(life.first, life.last)
            if (around := self._loop_at[life.last]) is not None:
                life.last = chains[around].last_behind(life.first, life.last)
        found: dict[Reg, Lifetime] = {}
        for reg, first in self._first.items():
            if reg in self._same:
                continue
            last = self._last[reg]
            around = self._loop_at[last]
            if around is not None and first < extents[around][0]:
                last = chains[around].last_behind(first, last)
            found[reg] = Lifetime(first, last)
        return found


class _Chain(Struct, frozen=True):
    """The loops around a block, from the outermost on: their first positions, and their last ones, negated."""

    firsts: list[int]
    ends: list[int]

    def first_before(self, first: int, last: int) -> int:
        """The first position of the outermost loop that has ``first`` in it, but not ``last``; without one, ``first``."""
        crossed = bisect_right(self.ends, -last)
        return self.firsts[crossed] if crossed < len(self.firsts) else first

    def last_behind(self, first: int, last: int) -> int:
        """The last position of the outermost loop that has ``last`` in it, but not ``first``; without one, ``last``."""
        crossed = bisect_right(self.firsts, first)
        return -self.ends[crossed] if crossed < len(self.ends) else last


def place(lifetimes: Iterable[tuple[Key, Lifetime, int]], start: int) -> tuple[dict[Key, int], int]:
    """Offsets for (value, lifetime, bytes), from ``start`` on, and their end. Values of one size share places over time."""
    offsets: dict[Key, int] = {}
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
