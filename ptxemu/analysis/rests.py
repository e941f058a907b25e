"""Loops that a compiler has unrolled, behind loops for the trips that are left over.

``for (k = a; k < b; ++k)`` becomes a loop of ``(b - a) % 4`` trips and another one with four bodies in each.  Where lanes have
different numbers of trips, they leave the first one at different times, and what were neighbours in it are none in the second.
The first one could make all trips (:mod:`ptxemu.passes.rests`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.analysis.comparisons import ORDERS, compares_two
from ptxemu.analysis.streams import alone, readers, streams
from ptxemu.analysis.trips import Makers, makers, sources
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.analysis.unrolled import Body, Copies
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Phi, reads, writes
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.passes.rests import COMPARISONS, Rest, Test
from ptxemu.process.lazy import lazy_property

COUNTS = (2, 4, 8)
MOST = 100  # ops of a block: what they compute is followed from one to the next, which takes stack
EQUALITY = ("eq", "ne")


def rests(uniformity: Uniformity) -> list[Rest]:
    """Those of a graph for which it is better to make all trips."""
    search = _Search(uniformity)
    return [
        rest for loop in dict.fromkeys(uniformity.structure.loops.values()) if (rest := search.rest(loop)) and search.pays(rest)
    ]


class _Search:
    def __init__(self, uniformity: Uniformity) -> None:
        self.uniformity = uniformity
        self.loops = uniformity.structure.loops

    # -- whether it pays

    def pays(self, rest: Rest) -> bool:
        """Where lanes leave at different times, if the rest alone accesses places that form a pattern for certain, and lanes do
        not go one after another, who have no need of that."""
        loops = {rest.single, rest.several}
        if not loops <= self.uniformity.linear.divergent:
            return False
        if not any(map(self._is_pattern, rest.single.ops)) or any(map(self._is_pattern, rest.several.ops)):
            return False
        return not loops <= self._streams

    @lazy_property
    def _streams(self) -> set[Block]:
        """The headers of loops that each lane can run by itself."""
        return {stream.header for stream in streams(self.uniformity.structure.graph, self.uniformity)}

    def _is_pattern(self, op: Op) -> bool:
        return bool(op.accesses) and self.uniformity.shape(op.access.address) is not None

    @lazy_property
    def _readers(self) -> dict[Reg, set[Block]]:
        return readers(self.uniformity.structure.order)

    @lazy_property
    def made(self) -> Makers:
        """What makes the registers of the graph."""
        return makers(self.uniformity.structure.order)

    # -- the blocks

    def rest(self, loop: Loop) -> Rest | None:
        """The loop as an unrolled one with what belongs to it, if it is one."""
        several = self._body(loop)
        if several is None or (between := _other(several.block.preds, several.latch)) is None:
            return None
        join = _only(between.preds)
        past = _other(join.succs, between) if join is not None and join.cond is not None and not join.table else None
        if join is None or past is None or _after(several) is not past:
            return None
        for leaving in join.preds:
            single = self._left(leaving)
            branch = _other(join.preds, leaving)
            if single is None or branch is None or (before := _other(single.block.preds, single.latch)) is None:
                continue
            if _only(before.preds) is branch and branch.cond is not None and set(branch.succs) == {before, join}:
                return self._compared(branch, before, single, leaving, join, between, several, past)
        return None

    def _body(self, loop: Loop | None) -> Body | None:
        """The one block of a loop that only computes, loads and stores, in all lanes that come to it."""
        if loop is None or len(loop.blocks) != 2 or len(loop.latches) != 1:
            return None
        (latch,) = loop.latches
        block = loop.header
        plain = all(alone(self.uniformity, op) and op.guard is None for op in block.ops)
        if latch.ops or latch.phis or block is latch or block.table or len(block.preds) != 2 or not plain:
            return None
        if len(block.ops) > MOST:
            return None
        return None if latch in self.uniformity.structure.graph.spins else Body.of(block, latch)

    def _left(self, leaving: Block) -> Body | None:
        """The loop that leads to a block, and nowhere else."""
        block = _only(leaving.preds)
        if block is None or leaving.ops or leaving.cond is not None or self.loops.get(block) is self.loops.get(leaving):
            return None
        loop = self.loops.get(block)
        return self._body(loop) if loop is not None and loop.header is block else None

    # -- what they compute

    def _compared(
        self, branch: Block, before: Block, single: Body, leaving: Block, join: Block, between: Block, several: Body, past: Block
    ) -> Rest | None:
        counter, test = self._counter(branch, before, single), self._test(several, between)
        count = _copies(single, several)
        if counter is None or test is None or count not in COUNTS or not all(map(_computes, (before, join, between))):
            return None
        carried = self._carried(branch, before, single, leaving, join, between, several)
        if carried is None or not _handed(join, between, several, past, carried) or not self._closed(join, between, several):
            return None
        copies = Copies(single, several, count, carried)
        first, last = {phi.dst: phi for phi in single.block.phis}, count - 1
        for reg, phi in carried.items():
            if single.step(first[reg]) is not None:
                agrees = copies.agree(phi.dst, reg, 0)
            else:
                agrees = copies.agree(several.next(phi), single.next(first[reg]), last)
            if not agrees:
                return None
        if not copies.writes_agree():
            return None
        pairs = list(copies.pairs.values())
        begins = [test.first, join.cond, *(pair.second.args[between] for pair in pairs), *(pair.base for pair in pairs)]
        if not pairs or not _covers(copies, single, several) or not _is_known(begins, join, between, copies):
            return None
        return Rest(branch, before, single.block, *counter, join, between, several.block, test, pairs, copies.positions, count)

    def _counter(self, branch: Block, before: Block, single: Body) -> tuple[Phi, Reg] | None:
        """The number of trips that are left, which goes down to 0, and its first value, which ``branch`` compares with 0."""
        found = _equality(single.block, self.made)
        if found is None or (single.block.succs[0] is single.latch) != (found[1] != single.block.negated):
            return None  # goes on where they differ
        place = single.place(found[0])
        phi = place.phi if place is not None and place.offset == -1 and place.base is None else None
        if phi is None or single.step(phi) != -1:
            return None
        count, compared = phi.args[before], _equality(branch, self.made)
        if not isinstance(count, Reg) or compared is None or compared[0] is not count:
            return None
        enters = branch.succs[0] is before
        return (phi, count) if enters == (compared[1] != branch.negated) else None

    def _test(self, several: Body, between: Block) -> Test | None:
        block = several.block
        op = self.made.get(block.cond) if block.cond is not None else None
        if not isinstance(op, Op) or not compares_two(op) or op.guard is not None:
            return None
        goes_on = (block.succs[0] is several.latch) != block.negated
        kind, bound = op.type_of("a"), op["b"]
        place = several.place(op["a"])
        if kind is None or place is None or not isinstance(bound, Reg | Imm) or bound in several.made or any(op.negs):
            return None
        phi, step = place.phi, place.offset
        if place.base is not None or several.step(phi) != step or step.bit_count() != 1:
            return None
        if kind.bits != phi.dst.type.bits or kind.bits not in (32, 64):
            return None
        compares = _compares(op.mods["cmp"], kind.kind, goes_on)
        return None if compares is None else Test(phi.args[between], bound, step, compares)

    def _carried(
        self, branch: Block, before: Block, single: Body, leaving: Block, join: Block, between: Block, several: Body
    ) -> dict[Reg, Phi] | None:
        """The values that the rest hands to the unrolled loop: phis of that, by the registers of the rest."""
        begun = {_key(single.next(phi)): phi for phi in single.block.phis}
        left = {phi.dst: phi.args[single.block] for phi in leaving.phis}
        joined = {phi.dst: phi for phi in join.phis}
        carried: dict[Reg, Phi] = {}
        for phi in several.block.phis:
            given = joined.get(phi.args[between]) if isinstance(phi.args[between], Reg) else None  # type: ignore[arg-type]
            if given is None:
                if several.step(phi) is None:
                    return None
                continue
            value = given.args[leaving]
            source = begun.get(_key(left.get(value, value))) if isinstance(value, Reg) else None
            if source is None or _key(source.args[before]) != _key(given.args[branch]):
                return None
            carried[source.dst] = phi
        return carried

    def _closed(self, join: Block, between: Block, several: Body) -> bool:
        """Whether what follows from the number of trips of the rest is read where it is known, or handed over, or in the unrolled
        loop, which is entered if that is what it would be."""
        follows = set(join.phis.dsts)
        for op in (*join.ops, *between.ops):
            if not follows.isdisjoint(reads(op)):
                follows.update(writes(op))
        inside = set(several.block.phis.dsts) | {reg for op in several.block.ops for reg in writes(op)}
        after = {block for block in several.block.succs if block is not several.latch}
        return all(self._readers.get(reg, set()) <= {join, between, several.block} for reg in follows) and all(
            self._readers.get(reg, set()) <= {several.block, several.latch, *after} for reg in inside
        )


def _copies(single: Body, several: Body) -> int:
    """How many trips of the one loop a trip of the other may be, by their accesses."""
    ours, theirs = (sum(bool(op.accesses) for op in body.block.ops) for body in (single, several))
    return theirs // max(ours, 1)


def _handed(join: Block, between: Block, several: Body, past: Block, carried: dict[Reg, Phi]) -> bool:
    """Whether what is left behind both ways is what the loops hand on."""
    after = next(pred for pred in past.preds if _only(pred.preds) is several.block)
    left = {phi.dst: phi.args[several.block] for phi in after.phis}
    ends = {_key(several.next(phi)): phi for phi in carried.values()}
    for phi in past.phis:
        straight, around = phi.args[join], phi.args[after]
        if _key(straight) != _key(around):
            end = ends.get(_key(left.get(around, around))) if isinstance(around, Reg) else None
            if end is None or end.args[between] is not straight:
                return False
    return True


def _is_known(values: Iterable[Reg | Imm | None], join: Block, between: Block, copies: Copies) -> bool:
    """Whether values behind the rest follow from what is known before it, and from where numbers have got to."""
    numbers = {pair.second.args[between] for pair in copies.pairs.values()}
    inside = makers((join, between))
    found, _ = sources((value for value in values if isinstance(value, Reg)), inside)
    return all(isinstance(source, Op) or source.dst in numbers for source in found)


def _covers(copies: Copies, single: Body, several: Body) -> bool:
    """Whether all accesses of both loops have been compared."""
    ours = {op.pos for op in single.block.ops if op.accesses}
    theirs = {op.pos for op in several.block.ops if op.accesses}
    found = {pos for row in copies.positions.values() for pos in row}
    return ours == set(copies.positions) and theirs == found and len(theirs) == len(ours) * copies.count


def _computes(block: Block) -> bool:
    return len(block.ops) <= MOST and all(op.effects.pure and op.guard is None and op.call is None for op in block.ops)


def _key(value: Reg | Imm) -> object:
    """By which values are the same: registers are themselves."""
    return value if isinstance(value, Imm) else id(value)


def _only(blocks: list[Block]) -> Block | None:
    return blocks[0] if len(blocks) == 1 else None


def _other(blocks: list[Block], one: Block) -> Block | None:
    """The other one of two."""
    others = [block for block in blocks if block is not one]
    return others[0] if len(blocks) == 2 and len(others) == 1 else None


def _after(body: Body) -> Block | None:
    """Where a loop leads to, behind a block in which nothing is done."""
    leaving = _other(body.block.succs, body.latch)
    if leaving is None or leaving.ops or leaving.cond is not None or leaving.preds != [body.block]:
        return None
    return _only(leaving.succs)


def _equality(block: Block, made: Makers) -> tuple[Reg, bool] | None:
    """The register that a block compares with 0 at its end, and whether its predicate says that they differ."""
    op = made.get(block.cond) if block.cond is not None and not block.table else None
    if not isinstance(op, Op) or not compares_two(op) or any(op.negs):
        return None
    kind, (number, zero) = op.type_of("a"), op.srcs
    if op.guard is not None or op.mods["cmp"] not in EQUALITY or not isinstance(number, Reg) or not isinstance(zero, Imm):
        return None
    fits = kind is not None and kind.kind in "bus" and kind.bits == number.type.bits and not zero.bits
    return (number, op.mods["cmp"] == "ne") if fits else None


def _compares(how: str, kind: str, holds: bool) -> str | None:
    """An order of integers, or that they differ."""
    if how in EQUALITY:
        return "ne" if kind in "bus" and (how == "ne") == holds else None
    order = kind + ORDERS.get(how, how)
    return order if holds and order in COMPARISONS else None
