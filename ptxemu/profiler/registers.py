"""An estimate of the registers of a thread: the most 32-bit registers whose values are needed at one place of the PTX.

It looks at the text, not at what ptxas would make of it, which schedules loads early, computes values again and spills.  Values
live from their first to their last mention, and through every loop that they cross the border of; predicates count nothing, and
the called function that needs most is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from ptxemu.ir.graph import reads, writes
from ptxemu.ir.ops import Function, LabelMark, Reg
from ptxemu.ir.types import PRED

DEEPEST = 32  # nested loops that are told apart


def registers_of(functions: Sequence[Function]) -> int:
    """32-bit registers of a thread of the first function, a kernel; the others are those that it may call."""
    kernel, *called = map(_most_live, functions)
    return kernel + max(called, default=0)


def _most_live(function: Function) -> int:
    first, last = _mentions(function)
    loops = _Loops(function)
    changes: Counter[int] = Counter()
    for reg in first:
        size = 0 if reg.type is PRED else -(-reg.type.bits // 32)
        changes[first[reg]] += size
        changes[loops.end_of(first[reg], last[reg])] -= size
    return max(accumulate(changes[position] for position in sorted(changes)), default=0)


def _mentions(function: Function) -> tuple[dict[Reg, int], dict[Reg, int]]:
    first: dict[Reg, int] = {}
    last: dict[Reg, int] = {}
    for position, op in enumerate(function.ops):
        for reg in (*reads(op), *writes(op)):
            first.setdefault(reg, position)
            last[reg] = position
    return first, last


class _Loop(Struct):
    """From a label to the last branch back to it, as positions of instructions; ``outer`` is the loop around it."""

    start: int
    end: int
    outer: _Loop | None


class _Loops:
    def __init__(self, function: Function) -> None:
        ends = _back_branches(function)
        self._innermost: list[_Loop | None] = []
        around: list[_Loop] = []
        for position in range(sum(1 for _ in function.ops)):
            while around and around[-1].end < position:
                around.pop()
            if position in ends and len(around) < DEEPEST:
                around.append(_Loop(position, ends[position], around[-1] if around else None))
                for loop in around:  # those that overlap are taken as nested
                    loop.end = max(loop.end, ends[position])
            self._innermost.append(around[-1] if around else None)

    def end_of(self, first: int, last: int) -> int:
        """Where a value ends that is mentioned from ``first`` to ``last``: behind the loops that begin while it lives."""
        loop, end = self._innermost[last], last
        while loop is not None and loop.start > first:
            end, loop = loop.end, loop.outer
        return end


def _back_branches(function: Function) -> dict[int, int]:
    """The last branch back to each position."""
    labels: dict[str, int] = {}
    found: dict[int, int] = {}
    position = 0
    for item in function.body or ():
        if isinstance(item, LabelMark):
            labels[item.name] = position
        else:
            found |= {labels[name]: position for name in item.labels if name in labels}
            position += 1
    return found
