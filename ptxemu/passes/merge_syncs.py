"""Instructions that the lanes of a warp execute together at different places (the manual's rules for ``.sync``).

All members execute an instruction with the same qualifiers and membermask, not necessarily the same one.  Where lanes progress
independently (:mod:`ptxemu.passes.lane_private`), such instructions become one: each place leaves its operands in registers that
the places share, and takes its results from others.  Whatever place completes the meeting executes it for all lanes.
"""

from __future__ import annotations

from itertools import zip_longest

from msgspec.structs import replace

from ptxemu.ir.convergence import Qualifiers, membermask, only_meets, qualifiers
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import ScalarType
from ptxemu.passes.internal import keep, move


def share(graph: Graph) -> list[list[Op]]:
    """Rewrite instructions that may meet one another; the groups of those that now share their registers."""
    groups = [group for group in _groups(graph) if len(group) > 1]
    made: list[list[Op]] = []
    parts: dict[Op, list[Op]] = {}
    for number, group in enumerate(groups):
        shared = _Shared(number, group)
        parts |= {op: shared.parts(op) for op in group}
        made.append(shared.ops)
    for block in graph.blocks:
        block.ops = [part for op in block.ops for part in parts.get(op, [op])]
    return made


def _groups(graph: Graph) -> list[list[Op]]:
    """Instructions of the same qualifiers, and if all their membermasks are constant, of the same membermask."""
    found: dict[Qualifiers, list[Op]] = {}
    for block in graph.blocks:
        for op in block.ops:
            key = qualifiers(op)
            if key is not None and not only_meets(op):
                found.setdefault(key, []).append(op)
    groups: list[list[Op]] = []
    for ops in found.values():
        masks: dict[int, list[Op]] = {}
        for op in ops:
            members = membermask(op)
            masks.setdefault(members.bits if isinstance(members, Imm) else -1, []).append(op)
        groups += [ops] if -1 in masks else masks.values()
    return groups


class _Shared:
    """The registers of one group: operands (constants that all have in common stay), and results of every lane.

    Every place leaves all results that any of them takes: an optional one, or one that others discard.
    """

    def __init__(self, number: int, group: list[Op]) -> None:
        first = group[0]
        self.ops: list[Op] = []
        given = zip(first.src_types, zip(*(op.srcs for op in group)))
        self.operands = [self._operand(f"%joint{number}.operand{index}", *each) for index, each in enumerate(given)]
        self.types = max((op.dst_types for op in group), key=len)
        wanted = [any(each) for each in zip_longest(*(op.dsts for op in group))]
        self.results = [
            Reg(f"%joint{number}.result{index}", kind) if taken else None
            for index, (kind, taken) in enumerate(zip(self.types, wanted))
        ]

    @staticmethod
    def _operand(name: str, kind: ScalarType | None, sources: tuple[Operand, ...]) -> Operand:
        first = sources[0]
        same = isinstance(first, Imm) and all(isinstance(source, Imm) and source.bits == first.bits for source in sources)
        assert kind is not None
        return first if same else Reg(name, kind)

    def parts(self, op: Op) -> list[Op]:
        """Split an instruction: store operands, execute once for all members, store results, load them (each lane by itself)."""
        leave = [keep(to, source, op) for to, source in zip(self.operands, op.srcs) if isinstance(to, Reg)]  # type: ignore[arg-type]
        made = [None if result is None else Reg(f"{result.name}.new", result.type) for result in self.results]
        meeting = replace(op, srcs=tuple(self.operands), dsts=tuple(made), dst_types=self.types)
        kept = [keep(result, new, op) for result, new in zip(self.results, made) if result is not None and new is not None]
        taken = [(dst, result) for dst, result in zip(op.dsts, self.results) if dst is not None and result is not None]
        take = [move(dst, result, result.type, op) for dst, result in taken]
        self.ops.append(meeting)
        return [*leave, meeting, *kept, *take]
