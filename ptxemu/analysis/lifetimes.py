"""Lifetimes of values in linearized code, and places in memory that values with disjoint lifetimes share.

Lanes that wait keep their values while other lanes run, so a value lives from its first to its last mention in *linear* order,
whatever the control-flow graph says.  If that interval covers part of a loop it covers all of it: lanes may have left the
loop, or wait to run the rest, while others go round again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from types import MappingProxyType
from typing import TypeVar

from ptxemu.analysis.linear import Structure
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Phi, reads, writes
from ptxemu.ir.ops import Reg

Key = TypeVar("Key", bound=Hashable)
Value = Reg | Phi  # a phi stands for what is handed over to it: it lives apart from its result


@dataclass(slots=True)
class Lifetime:
    """First and last position, both included."""

    first: int
    last: int


class Lifetimes:
    """The lifetime of every register and phi of a graph; positions count ops in linear order.

    ``homes``: values that are kept where another one is, which lives as long as all of them; None where a phi's value needs no
    handing over.
    """

    def __init__(self, structure: Structure, homes: Mapping[Value, Value | None] = MappingProxyType({})) -> None:
        self._structure = structure
        self._homes = homes
        self._first: dict[Value, int] = {}
        self._last: dict[Value, int] = {}
        self._loop_at: list[Loop | None] = []
        extents = self._scan()
        self.of = {value: Lifetime(first, self._last[value]) for value, first in self._first.items()}
        if extents:
            self._cover_loops(extents)

    def _mention(self, value: Value, position: int) -> None:
        home = self._homes.get(value, value)
        if home is not None:
            self._first.setdefault(home, position)
            self._last[home] = position

    def _scan(self) -> dict[Loop, list[int]]:
        """Each op has a position, and so have the start and the end of each block. Returns the extents of the loops."""
        extents: dict[Loop, list[int]] = {}
        position = 0
        for block in self._structure.order:
            start = position
            for phi in block.phis:
                if self._homes.get(phi, phi) is not None:
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
            loop = self._structure.loops.get(block)
            self._loop_at += [loop] * (position + 1 - start)
            if loop is not None:
                extents.setdefault(loop, [start, position])[1] = position
            position += 1
        for loop, (_, last) in reversed(extents.items()):  # those inside come first
            if loop.parent is not None:
                extents[loop.parent][1] = max(last, extents[loop.parent][1])
        return extents

    def _end(self, block: Block, position: int) -> None:
        if block.cond is not None:
            self._mention(block.cond, position)
        for succ in block.succs:
            for phi in succ.phis:
                if self._homes.get(phi, phi) is None:
                    continue
                self._mention(phi, position)
                if isinstance(arg := phi.args[block], Reg):
                    self._mention(arg, position)

    def _cover_loops(self, extents: dict[Loop, list[int]]) -> None:
        """Widen each lifetime to the outermost loops around its ends that it crosses the border of."""
        chains: dict[Loop, _Chain] = {}
        for loop, (first, last) in extents.items():  # those around come first
            outer = chains[loop.parent] if loop.parent is not None else _Chain([], [])
            chains[loop] = _Chain([*outer.firsts, first], [*outer.ends, -last])
        for life in self.of.values():
            first, last = life.first, life.last
            if (around := self._loop_at[first]) is not None:
                life.first = chains[around].first_before(first, last)
            if (around := self._loop_at[last]) is not None:
                life.last = chains[around].last_behind(first, last)


@dataclass(slots=True, frozen=True)
class _Chain:
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
