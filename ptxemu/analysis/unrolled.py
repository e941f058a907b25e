"""Whether a trip of one loop does what some trips of another one do, as where a compiler has unrolled a loop.

Both are loops of one block that compute, load and store, and nothing else.  Their numbers that go on by constants may start
anywhere: what must be so for both to go through the same places is a distance for each pair of them, to be tested when the loops
begin.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ptxemu.analysis.trips import Makers, makers
from ptxemu.ir.graph import Block, Phi
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg
from ptxemu.ir.types import signed
from ptxemu.passes.rests import Pair

ADD = "add.int"


class Body(Struct, frozen=True):
    """The one block of a loop with ops, and the empty one from which it begins its next trip."""

    block: Block
    latch: Block
    made: Makers

    @classmethod
    def of(cls, block: Block, latch: Block) -> Body:
        return cls(block, latch, makers([block]))

    def next(self, phi: Phi) -> Reg | Imm:
        """What a value is in the next trip."""
        return phi.args[self.latch]

    def step(self, phi: Phi) -> int | None:
        """By which constant a value goes on, if that is all."""
        found = self.place(self.next(phi))
        return found.offset if found is not None and found.phi == phi and found.base is None else None

    def going(self, operand: Operand) -> Place | None:
        """A value as one that goes on by a constant, plus others."""
        found = self.place(operand)
        return found if found is not None and self.step(found.phi) is not None else None

    def place(self, operand: Operand) -> Place | None:
        """A number as one of the trip's begin plus a constant, and perhaps a register from outside."""
        offset, base = 0, None
        while isinstance(operand, Reg):
            maker = self.made.get(operand)
            if isinstance(maker, Phi):
                return Place(maker, signed(offset, operand.type.bits), base)
            terms = _terms(maker) if maker is not None else None
            if terms is None:
                return None
            inside, outside = ([term for term in terms if (term in self.made) == there] for there in (True, False))
            if len(inside) != 1:
                return None
            (operand,), (other,) = inside, outside
            if isinstance(other, Imm):
                offset += other.bits
            elif base is None:
                base = other
            else:
                return None
        return None


class Place(Struct, frozen=True):
    """A number as a value of the trip's begin plus a constant, and a register from outside, if there is one."""

    phi: Phi
    offset: int
    base: Reg | None


def _terms(op: Op) -> list[Reg | Imm] | None:
    """Two different registers, or one and a constant, of which an op makes the sum, which is as wide as they."""
    if op.row.lower != ADD or op.guard is not None or op.mods.get("sat") or len(op.srcs) != 2:
        return None
    terms = [source for source in op.srcs if isinstance(source, Reg | Imm)]
    widths = {term.type.bits for term in (*terms, *op.results)}
    return terms if len(terms) == 2 and terms[0] is not terms[1] and len(widths) == 1 and op.results else None


def _writes(op: Op) -> bool:
    return any(access.stated.writes for access in op.accesses)


class Copies:
    """The comparison of a loop's trip with ``count`` trips of ``single``. ``carried``: values that the trips hand on, by those of
    ``single``.  ``pairs``: of numbers; ``positions``: of the accesses in the trips, by those of ``single``."""

    def __init__(self, single: Body, several: Body, count: int, carried: Mapping[Reg, Phi]) -> None:
        self.single, self.several, self.count = single, several, count
        self.carried = carried
        self.pairs: dict[tuple[Phi, Phi, Reg | None], Pair] = {}
        self.positions: dict[int, list[int]] = {}
        self._known: dict[tuple[Op, Op, int], bool] = {}

    def agree(self, second: Operand, first: Operand, copy: int) -> bool:
        """Whether a value of the one loop is what one of ``single`` is in a trip."""
        if isinstance(first, Addr):
            return isinstance(second, Addr) and self._addresses(second, first, copy)
        if not isinstance(first, Reg) or (maker := self.single.made.get(first)) is None:
            return first is second or (isinstance(first, Imm) and first == second)
        if self.single.going(first) is not None:
            return self._paired(second, 0, first, 0, copy)
        if isinstance(maker, Phi):
            return self._carried(second, maker, copy)
        other = self.several.made.get(second) if isinstance(second, Reg) else None
        if not isinstance(other, Op) or other.dsts.index(second) != maker.dsts.index(first):
            return False
        return self._same(other, maker, copy)

    def writes_agree(self) -> bool:
        """Whether the same is written to the same places, and all accesses come in the order of trips, if any writes. What is
        read and handed on has been compared before."""
        ours, theirs = ([op for op in body.block.ops if op.accesses] for body in (self.single, self.several))
        if not any(map(_writes, ours)):
            return True
        copies = [(other, op, number // len(ours)) for number, (other, op) in enumerate(zip(theirs, ours * self.count))]
        written = [self._same(*copy) for copy in copies if _writes(copy[1])]
        return all(written) and all(self._known.get(copy, False) for copy in copies)

    def _carried(self, second: Operand, phi: Phi, copy: int) -> bool:
        if copy:
            return self.agree(second, self.single.next(phi), copy - 1)
        return phi.dst in self.carried and self.carried[phi.dst].dst is second

    def _addresses(self, second: Addr, first: Addr, copy: int) -> bool:
        if self.single.going(first.base) is not None:
            return self._paired(second.base, second.offset, first.base, first.offset, copy)
        return first.offset == second.offset and self.agree(second.base, first.base, copy)

    def _paired(self, second: Operand, more: int, first: Operand, plus: int, copy: int) -> bool:
        """Whether numbers that go on are the same, if they begin as they have to."""
        ours, theirs = self.single.going(first), self.several.going(second)
        if ours is None or theirs is None or ours.base is not None:
            return False
        step, bits = self.single.step(ours.phi), ours.phi.dst.type.bits
        assert step is not None
        if theirs.phi.dst.type.bits != bits or self.several.step(theirs.phi) != signed(step * self.count, bits):
            return False
        ahead = signed(ours.offset + plus - theirs.offset - more + copy * step, bits)
        pair = Pair(ours.phi, theirs.phi, theirs.base, step, ahead)
        return self.pairs.setdefault((pair.first, pair.second, pair.base), pair).ahead == ahead

    def _same(self, other: Op, op: Op, copy: int) -> bool:
        known = (other, op, copy)
        if known not in self._known:
            self._known[known] = self._alike(other, op) and all(
                self.agree(theirs, ours, copy) for theirs, ours in zip(other.srcs, op.srcs)
            )
            if op.accesses:
                self.positions.setdefault(op.pos, [-1] * self.count)[copy] = other.pos
        return self._known[known]

    @staticmethod
    def _alike(other: Op, op: Op) -> bool:
        """Whether ops do the same with their sources."""
        ours, theirs = ((it.row, it.mods, it.dst_types, it.src_types, it.negs, len(it.srcs), len(it.dsts)) for it in (op, other))
        return ours == theirs and op.guard is None and other.guard is None
