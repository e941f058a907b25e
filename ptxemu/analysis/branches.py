"""``.sync`` instructions of a warp in different branches that must meet one another.

The members of a membermask may execute different instructions, if these have the same qualifiers.  In linearized code one branch
waits while the other runs (:mod:`ptxemu.analysis.linear`), so a kernel with such a pair needs the form in which lanes progress
independently.  A pair counts if a thread passes only one of them on its way, lanes may wait on the way to one while others are
at the other, and the membermasks may be the same.  A mask that a program gets by asking which lanes are there, with
``activemask``, ``vote`` or ``match``, names lanes of its own branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from ptxemu.analysis.linear import Linear
from ptxemu.ir import Imm, Op, Operand, Reg
from ptxemu.passes.graph import Block, Phi, reads
from ptxemu.passes.meetings import Qualifiers, qualifiers

ASKING = {"activemask", "vote", "match"}
Facts = set[tuple[Reg, bool]]


def branches_meet(linear: Linear) -> bool:
    """Whether lanes of different branches may have to meet."""
    found: dict[Qualifiers, list[tuple[Block, Operand]]] = {}
    for block in linear.layout.order:
        for op in block.ops:
            if (key := qualifiers(op)) is not None and _several(members := op.srcs[-1]):
                found.setdefault(key, []).append((block, members))
    groups = [places for places in found.values() if any(linear.pending[block] for block, _ in places)]
    if not any(len({block for block, _ in places}) > 1 for places in groups):
        return False
    ways = _Ways(linear)
    return any(ways.meet(*pair) for places in groups for pair in combinations(places, 2))


def _several(members: Operand) -> bool:
    return not isinstance(members, Imm) or members.bits & members.bits - 1 != 0


@dataclass(slots=True)
class _Place:
    """Where lanes can still come to in this iteration of all loops, and what is known of conditions."""

    ahead: set[Block]
    facts: Facts


class _Ways:
    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        self.places: dict[Block, _Place] = {}
        self.made: dict[Reg, Op | Phi] | None = None

    def meet(self, one: tuple[Block, Operand], other: tuple[Block, Operand]) -> bool:
        (a, masks), (b, other_masks) = one, other
        if a is b or not self._may_agree(masks, other_masks):
            return False
        waits = self._waits(a, b) or self._waits(b, a)
        return waits and self._exclusive(a, b) and not self._asks(masks) and not self._asks(other_masks)

    @staticmethod
    def _may_agree(a: Operand, b: Operand) -> bool:
        return not (isinstance(a, Imm) and isinstance(b, Imm)) or a.bits == b.bits

    def _waits(self, block: Block, other: Block) -> bool:
        """Whether lanes that wait while ``block`` runs may come to ``other``."""
        return any(other is pending or other in self._place(pending).ahead for pending in self.linear.pending[block])

    def _exclusive(self, a: Block, b: Block) -> bool:
        """No thread passes both, because of the ways there are or of a condition."""
        one, other = self._place(a), self._place(b)
        if b not in one.ahead and a not in other.ahead:
            return True
        return any((reg, not value) in other.facts for reg, value in one.facts)

    def _place(self, block: Block) -> _Place:
        if block not in self.places:
            self.places[block] = _Place(self._ahead(block), self._facts(block))
        return self.places[block]

    def _ahead(self, block: Block) -> set[Block]:
        seen: set[Block] = set()
        work = [block]
        latches = self.linear.layout.latches
        while work:
            here = work.pop()
            fresh = [succ for succ in here.succs if succ not in seen] if here not in latches else []
            seen.update(fresh)
            work += fresh
        return seen

    def _facts(self, block: Block) -> Facts:
        """Divergent conditions whose value all threads at a block share, as its dominators tell."""
        dominance = self.linear.layout.dominance
        facts: Facts = set()
        node = dominance.number[block]
        while node != dominance.idom[node]:
            here = dominance.order[node]
            if len(here.preds) == 1 and (above := here.preds[0]) in self.linear.divergent and above.cond is not None:
                facts.add((above.cond, (above.succs[0] is here) != above.negated))
            node = dominance.idom[node]
        return facts

    def _asks(self, members: Operand) -> bool:
        """Whether a membermask comes from asking which lanes are there."""
        if self.made is None:
            self.made = {phi.dst: phi for block in self.linear.layout.order for phi in block.phis}
            self.made |= {dst: op for block in self.linear.layout.order for op in block.ops for dst in op.dsts if dst is not None}
        work, seen = [members], set[Operand]()
        while work:
            reg = work.pop()
            item = self.made.get(reg) if isinstance(reg, Reg) else None
            if item is None or reg in seen:
                continue
            seen.add(reg)
            if isinstance(item, Phi):
                work += item.args.values()
            elif item.row.lower in ASKING:
                return True
            elif item.row.lower != "ld":
                work += reads(item)
        return False
