"""What the branches of a graph in SSA form say of the integers that they compare.

The registers of a comparison hold what was compared wherever its predicate may be read: if one of them is made anew, so is the
predicate before it is read again.  So what a branch says of them holds at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec import Struct

from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Phi, writes
from ptxemu.ir.ops import Imm, Op, Operand, Reg

ORDERS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge", **{name: name for name in ("lt", "le", "gt", "ge")}}
INVERSE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
SIGNS = {"lt": "<", "le": "<=", "eq": "=", "ne": "<>", "ge": ">=", "gt": ">"}
OUTCOMES = {name: frozenset(signs) for name, signs in SIGNS.items()}
MIRRORED_SIGNS = {"<": ">", "=": "=", ">": "<"}
DIFFERENT, ANY = OUTCOMES["ne"], frozenset("<=>")
Homes = Mapping[Reg, tuple[Block, Op | Phi]]
"""The block in which each register is made, and what makes it."""


def compares_two(op: Op) -> bool:
    """Whether an op has one predicate for a result, of a comparison of two values alone."""
    return "cmp" in op.mods and len(op.srcs) == 2 and len(op.dsts) == 1


def takes_both(op: Op, value: bool) -> bool:
    """Whether a predicate made of two others has this value only if both of them have it."""
    return f"absorbs:{1 - value}" in op.row.traits


class Relation(Struct, frozen=True):
    """How two integers of a width may compare: ``outcomes`` are some of < = >. A constant stands for itself."""

    a: Reg | int
    b: Reg | int
    outcomes: frozenset[str]
    signed: bool
    bits: int

    def outcomes_of(self, other: Relation) -> frozenset[str]:
        """Those of another comparison that this leaves it."""
        if self.bits != other.bits or {self.a, self.b} != {other.a, other.b}:
            return ANY
        outcomes = self.outcomes if self.a == other.a else frozenset(MIRRORED_SIGNS[sign] for sign in self.outcomes)
        return outcomes | DIFFERENT if self.signed != other.signed and outcomes & DIFFERENT else outcomes

    def can_hold(self, known: Iterable[Relation]) -> bool:
        """Whether it can, where others do."""
        return bool(self.outcomes.intersection(*(one.outcomes_of(self) for one in known)))


class Handed(Struct, frozen=True):
    """What registers hold at the end of some blocks that follow each other, in terms of what they held before these.

    ``now``: those made in the blocks, None where the value is a new one. All others are as they were.
    """

    now: Mapping[Reg, Operand | None] = {}

    def of(self, operand: Operand) -> Operand | None:
        return self.now.get(operand, operand) if isinstance(operand, Reg) else operand


AS_BEFORE = Handed()


def leads_out(homes: Homes, loop: Loop, pred: Block, block: Block) -> bool:
    """Whether all who come from one block of a loop to another leave the loop by the next branch.

    They do if going on takes something that contradicts what the branches before have found."""
    way = _to_next_branch(pred, block)
    inside = [succ for succ in way[-1].succs if succ in loop.blocks]
    if pred not in loop.blocks or not _branches(way[-1]) or len(inside) != 1:
        return False
    found = list(_found(homes, loop, pred, block))
    needed = _decided(homes, way[-1], inside[0], _handed(way)) if found else ()
    return not all(relation.can_hold(found) for relation in needed)


def _branches(block: Block) -> bool:
    return len(block.succs) == 2 and not block.table


def _to_next_branch(pred: Block, block: Block) -> list[Block]:
    """Two blocks, and those that follow, up to one that ends in no jump."""
    way = [pred, block]
    while len(block.succs) == 1 and block.succs[0] not in way:
        block = block.succs[0]
        way.append(block)
    return way


def _handed(way: list[Block]) -> Handed:
    """By the first block of a way to the end of the last one."""
    now: dict[Reg, Operand | None] = {}
    for before, block in pairwise(way):
        came = Handed(dict(now))
        now |= {dst: came.of(arg) for dst, arg in zip(block.phis.dsts, block.phis.args.get(before, ()))}
        now |= {dst: None for op in block.ops for dst in writes(op)}
    return Handed(now)


def _found(homes: Homes, loop: Loop, block: Block, succ: Block) -> Iterator[Relation]:
    """What holds for those who go from a block to another: what its branch says, and those above to which there is one way."""
    yield from _decided(homes, block, succ)
    while block is not loop.header and len(block.preds) == 1:
        block, succ = block.preds[0], block
        yield from _decided(homes, block, succ)


def _decided(homes: Homes, block: Block, succ: Block, handed: Handed = AS_BEFORE) -> Iterator[Relation]:
    """What holds for those who go to one of the successors of a block, of values as they were before."""
    if block.cond is not None and _branches(block):
        yield from _relations(homes, block.cond, (succ is block.succs[0]) != block.negated, handed)


def _relations(homes: Homes, operand: Operand | None, value: bool, handed: Handed) -> Iterator[Relation]:
    """What follows from the value of a predicate."""
    if operand is None:
        return
    before = handed.of(operand)
    operand, handed = (operand, handed) if before is None else (before, handed if before is operand else AS_BEFORE)
    _, op = homes.get(operand, (None, None)) if isinstance(operand, Reg) else (None, None)
    if not isinstance(op, Op) or op.guard is not None or any(op.negs):
        return
    if compares_two(op):
        yield from _relation(op, value, handed)
    elif takes_both(op, value):
        for source in op.srcs:
            yield from _relations(homes, source, value, handed)
    elif op.opcode == "not":
        yield from _relations(homes, op["a"], not value, handed)


def _relation(op: Op, value: bool, handed: Handed) -> Iterator[Relation]:
    """What a comparison says of integers, if it has this value."""
    kind, name = op.type_of("a"), op.mods["cmp"]
    outcomes = OUTCOMES.get(ORDERS.get(name, name))
    if kind is None or kind.kind not in "usb" or outcomes is None:
        return
    a, b = (_compared(handed.of(op[source]), kind.bits) for source in "ab")
    if a is not None and b is not None:
        yield Relation(a, b, outcomes if value else ANY - outcomes, kind.is_signed, kind.bits)


def _compared(operand: Operand | None, bits: int) -> Reg | int | None:
    if isinstance(operand, Imm):
        return operand.bits if operand.type.bits == bits else None
    return operand if isinstance(operand, Reg) else None
