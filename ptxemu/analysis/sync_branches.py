"""``.sync`` instructions of a warp in different branches that must meet one another.

The members of a membermask may execute different instructions, if these have the same qualifiers.  In linearized code one branch
waits while the other runs (:mod:`ptxemu.analysis.linear`), so a kernel with such a pair needs the scheme in which lanes progress
independently.  A pair counts if a thread passes only one of them on its way, lanes may wait on the way to one while others are
at the other, and the membermasks may be the same.  A mask that a program gets by asking which lanes are there, with
``activemask``, ``vote`` or ``match``, names lanes of its own branch.
"""

from __future__ import annotations

from collections import defaultdict

from ptxemu.analysis.linear import Linear
from ptxemu.ir.convergence import Qualifiers, qualifiers
from ptxemu.ir.graph import Block, Phi, reads
from ptxemu.ir.ops import Imm, Op, Operand, Reg

Place = tuple[Block, Operand]  # where an instruction is, and its membermask
Fact = tuple[Reg, bool]  # a divergent condition and its value
Blocks = int  # a set: bit i stands for block i in linear order


def branches_meet(linear: Linear) -> bool:
    """Whether lanes of different branches may have to meet."""
    found: dict[Qualifiers, dict[Place, None]] = defaultdict(dict)
    for block in linear.structure.order:
        for op in block.ops:
            if (key := qualifiers(op)) is not None and _several(members := op["membermask"]):
                found[key][block, members] = None
    groups = [list(places) for places in found.values() if any(linear.waiting[block] for block, _ in places)]
    groups = [places for places in groups if len({block for block, _ in places}) > 1]
    if not groups:
        return False
    ways = _Ways(linear)
    return any(map(ways.meet, groups))


def _several(members: Operand) -> bool:
    return not isinstance(members, Imm) or members.bits & members.bits - 1 != 0


def _may_agree(a: Operand, b: Operand) -> bool:
    return not (isinstance(a, Imm) and isinstance(b, Imm)) or a.bits == b.bits


class _Ways:
    """``ahead`` and ``behind``: the blocks on the ways from and to a block, within one iteration of all loops."""

    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        self.index = linear.structure.index
        self.made: dict[Reg, Op | Phi] = {}
        for block in linear.structure.order:
            self.made |= {phi.dst: phi for phi in block.phis}
            self.made |= {dst: op for op in block.ops for dst in op.dsts if dst is not None}
        self.ahead: dict[Block, Blocks] = {}
        self.behind: dict[Block, Blocks] = dict.fromkeys(linear.structure.order, 0)
        self._follow()
        self.facts: dict[Block, tuple[Fact, ...]] = {}

    def _follow(self) -> None:
        order, latches = self.linear.structure.order, self.linear.structure.latches
        onward = {block: [] if block in latches else block.succs for block in order}
        for block in reversed(order):
            self.ahead[block] = 0
            for succ in onward[block]:
                self.ahead[block] |= self.ahead.get(succ, 0) | 1 << self.index[succ]
        for block in order:
            for succ in onward[block]:
                self.behind[succ] |= self.behind[block] | 1 << self.index[block]

    def meet(self, places: list[Place]) -> bool:
        """Whether some of these instructions may have to meet."""
        places = [(block, members) for block, members in places if not self._asks(members)]
        masks: dict[Block, list[Operand]] = defaultdict(list)
        holding: dict[Fact, Blocks] = defaultdict(int)
        for block, members in places:
            masks[block].append(members)
            for fact in self._facts(block):
                holding[fact] |= 1 << self.index[block]
        everywhere = sum(1 << self.index[block] for block in masks)
        for block, mine in masks.items():
            others = everywhere & self._coming(block) & self._exclusive(block, holding)
            while others:
                other = self.linear.structure.order[others.bit_length() - 1]
                others ^= 1 << self.index[other]
                if other is not block and any(_may_agree(a, b) for a in mine for b in masks[other]):
                    return True
        return False

    def _coming(self, block: Block) -> Blocks:
        """The blocks to which lanes may come that wait while ``block`` runs."""
        coming = 0
        for pending in self.linear.pending(block):
            coming |= self.ahead[pending] | 1 << self.index[pending]
        return coming

    def _exclusive(self, block: Block, holding: dict[Fact, Blocks]) -> Blocks:
        """The blocks that no thread passes besides ``block``, because of the ways there are or of a condition."""
        exclusive = ~(self.ahead[block] | self.behind[block])
        for reg, value in self._facts(block):
            exclusive |= holding.get((reg, not value), 0)
        return exclusive

    def _facts(self, block: Block) -> tuple[Fact, ...]:
        """Conditions whose value all threads at a block share, as its dominators tell."""
        dominance = self.linear.structure.dominance
        chain: list[Block] = []
        while block not in self.facts:
            chain.append(block)
            node = dominance.number[block]
            if node == dominance.idom[node]:
                break
            block = dominance.order[dominance.idom[node]]
        known = self.facts.get(block, ())
        for here in reversed(chain):
            above = here.preds[0] if len(here.preds) == 1 else None
            if above in self.linear.divergent and above.cond is not None and not above.table:
                known = (*known, (above.cond, (above.succs[0] is here) != above.negated))
            self.facts[here] = known
        return known

    def _asks(self, members: Operand) -> bool:
        """Whether a membermask comes from asking which lanes are there."""
        work, seen = [members], set[Operand]()
        while work:
            reg = work.pop()
            item = self.made.get(reg) if isinstance(reg, Reg) else None
            if item is None or reg in seen:
                continue
            seen.add(reg)
            if isinstance(item, Phi):
                work += item.args.values()
            elif item.effects.asks:
                return True
            elif not item.effects.accesses:
                work += reads(item)
        return False
