"""Loops for the trips that unrolled loops have left over make all trips (:mod:`ptxemu.analysis.rests`).

Before the rest, an op finds out how many trips it is to make in place of the unrolled loop, which are all that this would have
or none.  The unrolled loop is entered where it is none.  An op in the rest knows the instructions that the unrolled loop has for
its accesses, for faults to name these.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.ir.graph import Block, Phi, reading, reads, writes
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import PRED, U32, ScalarType
from ptxemu.isa.table import Row
from ptxemu.passes.internal import ALL_OF, BUT_NOT, EQUAL, REST_TRIPS, TRIP, WENT, marker

COMPARISONS = ("slt", "ult", "ne", "sgt", "ugt")
"""By the numbers that ops have for them."""


class Pair(Struct, frozen=True):
    """Numbers of two loops that go through the same ones if the second, with ``base`` added, begins ``ahead`` of the first, which
    goes on by ``step``."""

    first: Phi
    second: Phi
    base: Reg | None
    step: int
    ahead: int


class Test(Struct, frozen=True):
    """When the unrolled loop goes on: where its number ``first``, which ``step`` is added to, compares so with ``bound``. The
    size of ``step`` is a power of two."""

    first: Reg | Imm
    bound: Reg | Imm
    step: int
    compares: str


class Rest(Struct, frozen=True):
    """An unrolled loop ``several`` behind one for the trips that are left over, ``single``; each is one block.

    ``branch`` goes past the rest if that has no trips, through ``before`` else; ``join`` past the unrolled loop, or through
    ``between``.  ``counter`` is the number of trips that the rest has left, at first ``count``.  A trip of the unrolled loop is
    as many of the rest as it has ``copies``; ``positions``: of their accesses, by those of the rest.
    """

    branch: Block
    before: Block
    single: Block
    counter: Phi
    count: Reg
    join: Block
    between: Block
    several: Block
    test: Test
    pairs: list[Pair]
    positions: dict[int, list[int]]
    copies: int


def go_on(found: Sequence[Rest]) -> bool:
    """Rewrite a graph in SSA form, in place; whether there are any."""
    for rest in found:
        _Rewriting(rest).rewrite()
    return bool(found)


class _Rewriting:
    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.type = rest.counter.dst.type
        self.like = rest.single.ops[0]
        self.ops: list[Op] = []  # at the end of the branch's block
        self.values: dict[Reg, Operand] = {}  # what is known there of registers of later blocks
        self.later = {reg: op for block in (rest.join, rest.between) for op in block.ops for reg in writes(op)}
        self.joined = {phi.dst: phi for phi in rest.join.phis}
        assert rest.join.cond is not None
        self.enters = rest.join.cond  # the unrolled loop
        self.if_so = (rest.join.succs[0] is rest.between) != rest.join.negated

    def rewrite(self) -> None:
        rest = self.rest
        more, total = Reg("rest.more", self.type), Reg("rest.total", self.type)
        self.count(more, total)
        none = self.made(EQUAL, Reg("rest.none", PRED), total, Imm(0, self.type))
        rest.branch.ops = [*rest.branch.ops, *rest.before.ops, *self.ops]
        rest.before.ops = []
        rest.branch.cond, rest.branch.negated = none, rest.branch.succs[0] is rest.before
        phis = rest.single.phis
        phis.args[rest.before][phis.dsts.index(rest.counter.dst)] = total
        rest.single.ops = [self.trip(more), *rest.single.ops]
        self.go_past(more)

    # -- before the rest

    def count(self, more: Reg, total: Reg) -> None:
        """The trips in place of the unrolled loop, and all of them."""
        rest, test = self.rest, self.rest.test
        first, bound = self.known(test.first), self.known(test.bound)
        terms = (_number(test.step, first.type), *map(_word, (COMPARISONS.index(test.compares), rest.copies)))
        numbers = [number for pair in rest.pairs for number in self.ends(pair)]
        enters = (self.known(self.enters), _word(int(self.if_so)))
        self.ops.append(marker(REST_TRIPS, self.like, (more, total), (rest.count, *enters, first, bound, *terms, *numbers)))

    def ends(self, pair: Pair) -> tuple[Operand, ...]:
        """Where a number of the unrolled loop begins and where one of the rest does, its step, and by how much the other is
        ahead."""
        kind = pair.first.dst.type
        begun, going = self.known(pair.second.args[self.rest.between]), self.known(pair.first.args[self.rest.before])
        if pair.base is not None:
            begun = self.made(WENT, Reg(f"{pair.second.dst.name}.begun", kind), begun, self.known(pair.base), Imm(1, kind))
        return begun, going, _number(pair.step, kind), _number(pair.ahead, kind)

    def known(self, operand: Reg | Imm) -> Reg | Imm:
        """A value of a later block, of which nothing follows from what the rest computes but where numbers have got to."""
        if not isinstance(operand, Reg):
            return operand
        if operand not in self.values:
            self.values[operand] = self._known(operand)
        value = self.values[operand]
        assert isinstance(value, Reg | Imm)
        return value

    def _known(self, reg: Reg) -> Operand:
        if reg in self.joined:
            return self.reached(self.joined[reg])
        op = self.later.get(reg)
        if op is None:
            return reg
        mapping: dict[Reg, Operand] = {source: self.known(source) for source in reads(op)}
        copy = reading(op, mapping)
        names = {dst: Reg(f"{dst.name}.ahead", dst.type) for dst in op.results}
        self.ops.append(replace(copy, dsts=tuple(names[dst] if dst is not None else None for dst in op.dsts)))
        return names[reg]

    def reached(self, phi: Phi) -> Reg:
        """Where a number has got to behind the rest."""
        rest = self.rest
        step = next(pair.step for pair in rest.pairs if pair.second.args[rest.between] == phi.dst)
        kind = phi.dst.type
        return self.made(WENT, Reg(f"{phi.dst.name}.reached", kind), phi.args[rest.branch], rest.count, _number(step, kind))

    def made(self, row: Row, dst: Reg, *sources: Operand) -> Reg:
        """What an op makes of some values before the rest."""
        self.ops.append(marker(row, self.like, (dst,), sources))
        return dst

    # -- later

    def trip(self, more: Reg) -> Op:
        """What a fault in a trip needs to know: the trips that are left, those of the unrolled loop, and positions."""
        rest = self.rest
        rows = [pos for single, several in rest.positions.items() for pos in (single, *several)]
        return marker(TRIP, self.like, srcs=(rest.counter.dst, more, *map(_word, (rest.copies, *rows))))

    def go_past(self, more: Reg) -> None:
        """The unrolled loop is entered where the rest has left something."""
        join, like = self.rest.join, self.like
        left, enters = Reg("rest.left", PRED), Reg("rest.enters", PRED)
        row = ALL_OF if self.if_so else BUT_NOT
        none = marker(EQUAL, like, (left,), (more, Imm(0, self.type)))
        join.ops = [*join.ops, none, marker(row, like, (enters,), (left, self.enters))]
        join.cond, join.negated = enters, join.succs[0] is not self.rest.between


def _word(value: int) -> Imm:
    return Imm(value, U32)


def _number(value: int, kind: ScalarType) -> Imm:
    return Imm(value % (1 << kind.bits), kind)
