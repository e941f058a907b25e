"""Registers that nobody has written: what the checker ``init`` is told of them.

Each register that may be read before it is written on some path has a *shadow*, a predicate that says in which lanes nothing has
been written yet.  Shadows follow values through pure ops.  What depends on a value tells where the shadow is set: branches,
guards, addresses, and stores that others may read.  Code in which every register is written before it is read stays as it is.

A value is taken to be defined rather than not: if one of the operands is that fill a part of it each; if it comes from memory or
another lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from msgspec.structs import replace

from ptxemu.ir.graph import Block, Graph, reads, registers, writes
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, Vec, items_of
from ptxemu.ir.types import PRED
from ptxemu.isa.table import Row
from ptxemu.passes.internal import (
    ALL_OF,
    ANY_OF,
    BUT_NOT,
    INDIRECT_CALL,
    STACK_POINTER,
    UNSET_ADDRESS,
    UNSET_CHOICE,
    UNSET_VALUE,
    move,
)
from ptxemu.passes.ssa import live_in

OBSERVABLE = frozenset({"global", "generic", "surface"})
"""Spaces in which stores tell: programs copy what they do not use by way of the others, as spills and exchanges of tiles do."""
GENERIC_BITS = 64


def watch(graph: Graph) -> None:
    """Give shadows to the registers that need them, and let ops tell."""
    unset = live_in(graph)[graph.entry]
    if unset:
        _Watch(graph, unset).run()


class _Watch:
    def __init__(self, graph: Graph, unset: set[Reg]) -> None:
        self.graph = graph
        self.unset = unset
        self.shadows = {reg: Reg(f"%unset.{reg.name}", PRED) for reg in _reached(graph, unset)}
        self.ops: list[Op] = []
        self.like = graph.entry.ops[0]
        self.made = 0

    def run(self) -> None:
        for block in self.graph.blocks:
            self.ops = []
            for op in block.ops:
                self.op(op)
            self.choice(block)
            block.ops = self.ops

    def choice(self, block: Block) -> None:
        """How a block ends."""
        if block.cond in self.shadows and block.cond is not None:
            self.like = replace(self.like, pos=block.pos, end=block.pos, guard=None)
            self.tell(UNSET_CHOICE, [block.cond])

    def op(self, op: Op) -> None:
        self.like = replace(op, guard=None)
        if self.shadows.keys().isdisjoint(reads(op)) and self.shadows.keys().isdisjoint(writes(op)):
            self.ops.append(op)
        else:
            self.uses(op)
            results = [dst for dst in writes(op) if dst in self.shadows]
            shadow = self.of_result(op) if results and propagates(op) else None
            self.ops.append(op)
            for dst in results:
                self.set(self.shadows[dst], shadow or Imm(0, PRED), op.guard)
        if op.row is STACK_POINTER and self.unset:
            for reg in sorted(self.unset, key=lambda reg: reg.name):
                self.set(self.shadows[reg], Imm(1, PRED))
            self.unset = set()

    # -- uses

    def uses(self, op: Op) -> None:
        """What an op tells before it happens."""
        if op.guard is not None and op.guard[0] in self.shadows:
            self.tell(UNSET_CHOICE, [op.guard[0]])
        for address in _addresses(op):
            if address in self.shadows:
                self.tell(UNSET_ADDRESS, [address], op.guard)
        for values, place in _stored(op):
            if values and all(value in self.shadows for value in values):
                self.tell(UNSET_VALUE, values, op.guard, place)

    def tell(self, row: Row, values: list[Reg], guard: tuple[Reg, bool] | None = None, place: tuple[Reg, ...] = ()) -> None:
        """Tell where all are unset, and take them for written from then on.  ``place``: the generic address, if it matters."""
        hit, *others = (self.shadows[value] for value in values)
        for other in others:
            hit = self.made_by(ALL_OF, hit, other)
        if guard is not None:
            hit = self.made_by(BUT_NOT if guard[1] else ALL_OF, hit, guard[0])
        like = self.like
        types = tuple(reg.type for reg in place)
        self.ops.append(Op(row, {}, (), place, (), types, like.pos, like.end, guard=(hit, False), loc=like.loc))
        for value in values:
            self.set(self.shadows[value], Imm(0, PRED), guard)

    # -- results

    def of_result(self, op: Op) -> Reg | None:
        """In which lanes what a pure op computes is not defined; None: in none."""
        traits = op.row.traits
        shadows = [self.shadow(source) for source in op.srcs]
        if "selects" in traits:
            return self.of_choice(op, shadows)
        if PRED in op.dst_types and {"absorbs:0", "absorbs:1"} & traits:
            return self.of_absorbing(op, "absorbs:1" in traits)
        if "assembles" in traits or "bool" in op.mods:
            return reduce(self.all_of, [shadow for source, shadow in zip(op.srcs, shadows) if isinstance(source, Reg)])
        return reduce(self.any_of, shadows, None)

    def of_choice(self, op: Op, shadows: list[Reg | None]) -> Reg | None:
        """A choice of ``a`` or ``b`` by ``c``."""
        a, b, c = shadows
        if op.type_of("c") is not PRED:
            return self.any_of(self.all_of(a, b), c)
        return self.any_of(self.any_of(self.where(a, op, "c"), self.where(b, op, "c", False)), c)

    def of_absorbing(self, op: Op, absorbs: bool) -> Reg | None:
        """Of predicates: one operand may decide, whatever the other is."""
        a, b = self.shadow(op["a"]), self.shadow(op["b"])
        matters = self.any_of(self.where(a, op, "b", not absorbs), self.where(b, op, "a", not absorbs))
        return self.any_of(self.all_of(a, b), matters)

    def where(self, shadow: Reg | None, op: Op, source: str, value: bool = True) -> Reg | None:
        """The shadow where a source, which is a predicate, is of some value."""
        if shadow is None:
            return None
        return self.made_by(ALL_OF if value != op.negated(source) else BUT_NOT, shadow, op[source])

    # -- shadows

    def shadow(self, operand: Operand) -> Reg | None:
        if isinstance(operand, Vec):
            return reduce(self.all_of, map(self.shadow, operand.items))
        return self.shadows.get(operand) if isinstance(operand, Reg) else None

    def any_of(self, a: Reg | None, b: Reg | None) -> Reg | None:
        return self.made_by(ANY_OF, a, b) if a is not None and b is not None else a or b

    def all_of(self, a: Reg | None, b: Reg | None) -> Reg | None:
        return self.made_by(ALL_OF, a, b) if a is not None and b is not None else None

    def made_by(self, row: Row, a: Operand, b: Operand) -> Reg:
        self.made += 1
        made = Reg(f"%unset.{self.made}", PRED)
        like = self.like
        self.ops.append(Op(row, {}, (made,), (a, b), (PRED,), (PRED, PRED), like.pos, like.end, loc=like.loc))
        return made

    def set(self, shadow: Reg, value: Reg | Imm, guard: tuple[Reg, bool] | None = None) -> None:
        self.ops.append(replace(move(shadow, value, PRED, self.like), guard=guard))


def propagates(op: Op) -> bool:
    """Whether what an op computes is defined if its operands are."""
    return op.effects.pure and op.call is None


def _reached(graph: Graph, unset: set[Reg]) -> set[Reg]:
    """Registers that may depend on one of ``unset``, and these."""
    readers: dict[Reg, list[Op]] = {}
    for block in graph.blocks:
        for op in filter(propagates, block.ops):
            for source in op.srcs:
                for reg in registers(source):
                    readers.setdefault(reg, []).append(op)
    found, work = set(unset), list(unset)
    while work:
        for op in readers.get(work.pop(), ()):
            new = [dst for dst in op.dsts if dst is not None and dst not in found]
            found.update(new)
            work += new
    return found


def _addresses(op: Op) -> Iterator[Reg]:
    if op.row is INDIRECT_CALL:
        yield op["callee"]
    if not op.effects.pure:
        yield from (source.base for source in op.srcs if isinstance(source, Addr) and isinstance(source.base, Reg))


def _stored(op: Op) -> Iterator[tuple[list[Reg], tuple[Reg, ...]]]:
    """The registers of each value that an op leaves where others may read it, none if one is no register; and the address, if
    it tells whether they may."""
    for access in op.accesses if op.effects.writes else ():
        if access.stated.writes and access.stated.data and access.space in OBSERVABLE:
            items = items_of(op[access.stated.data])
            base = access.address.base if access.space == "generic" else None
            known = access.space != "generic" or (isinstance(base, Reg) and base.type.bits == GENERIC_BITS)
            if known and all(isinstance(item, Reg) for item in items):
                yield [item for item in items if isinstance(item, Reg)], (base,) if isinstance(base, Reg) else ()
