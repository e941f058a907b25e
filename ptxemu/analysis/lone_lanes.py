"""Branches that at most one lane of a warp takes, such as that of ``if (threadIdx.x == 0)``.

Where a pattern whose lanes all differ is compared with something uniform, at most one lane finds them equal; and with a number,
those lanes may whose offsets are its low bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from ptxemu.analysis.linear import Structure
from ptxemu.analysis.shape import Shape, separate
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import PRED
from ptxemu.passes.lone_lanes import ANY, LoneCode

LEAST_BITS = 32
"""Of a number in which offsets of lanes do not wrap."""
DEEPEST = 6  # of conditions that are looked through


def lone_code(uniformity: Uniformity) -> list[LoneCode]:
    """What single lanes run, behind the outermost of such branches, in linear order."""
    return list(_Search(uniformity).run())


class Lanes(Struct, frozen=True):
    """``lanes`` that may; ``one``: at most one of them."""

    lanes: frozenset[int]
    one: bool = False


EVERYONE = frozenset(range(LANES))
ALL = Lanes(EVERYONE)


class _Search:
    def __init__(self, uniformity: Uniformity) -> None:
        self.uniformity = uniformity
        self.makers: dict[Reg, Op] = {}
        self.covered: set[Block] = set()
        self.depth = 0  # of what is looked at

    def run(self) -> Iterator[LoneCode]:
        for block in self.uniformity.structure.order:
            self.makers.update((dst, op) for op in block.ops for dst in op.results)
            if block.cond is None or block.table or len(block.succs) != 2:
                continue
            for target, wanted in zip(block.succs, (not block.negated, block.negated)):
                if target.preds != [block] or target in self.covered or not (found := self.lanes(block.cond, wanted)).one:
                    continue
                if blocks := _behind(self.uniformity.structure, block, target):
                    self.covered.update(blocks)
                    yield LoneCode(blocks, min(found.lanes) if len(found.lanes) == 1 else ANY)

    def lanes(self, predicate: Operand, wanted: bool) -> Lanes:
        """Those that may find a predicate as it is wanted."""
        op = self.maker(predicate)
        rule = RULES.get(op.opcode) if op is not None else None
        if op is None or rule is None or op["d"] is not predicate:
            return ALL
        self.depth += 1
        found = rule(self, op, wanted)
        self.depth -= 1
        return found

    def maker(self, operand: Operand) -> Op | None:
        """What makes a register, in all lanes; None of those beyond some depth, too."""
        op = self.makers.get(operand) if isinstance(operand, Reg) and self.depth < DEEPEST else None
        return None if op is None or op.guard is not None or any(op.negs) else op

    def zeros(self, operand: Operand) -> frozenset[int]:
        """The lanes in which a number may be 0: of a pattern, those whose offset is."""
        op = self.maker(operand)
        if op is not None and op.opcode in JOINING:
            self.depth += 1
            found = self.zeros(op["a"]) & self.zeros(op["b"])
            self.depth -= 1
            return found
        shape = self.uniformity.shape(operand)
        return EVERYONE if shape is None else _equal(shape, 0)


def _behind(structure: Structure, block: Block, target: Block) -> list[Block]:
    """The blocks behind a branch, in linear order: none outside of its loop, where lanes may wait that leave in other trips."""
    loop = structure.loops.get(block)
    if structure.loops.get(target) is not loop:
        return []
    found = structure.dominance.dominated(target)
    return sorted((other for other in found if loop is None or other in loop.blocks), key=structure.index.__getitem__)


# ---------------------------------------------------------------- predicates

Rule = Callable[[_Search, Op, bool], Lanes]
RULES: dict[str, Rule] = {}
JOINING: set[str] = set()  # instructions of integers whose result is 0 only where both operands are


def predicate(opcode: str, joins: bool = False) -> Callable[[Rule], Rule]:
    """Register what an instruction says of the lanes in which its result is as wanted; ``joins``: of integers, it is 0
    only where both operands are."""

    def add(rule: Rule) -> Rule:
        RULES[opcode] = rule
        JOINING.update([opcode] if joins else [])
        return rule

    return add


@predicate("not")
def _not(search: _Search, op: Op, wanted: bool) -> Lanes:
    return search.lanes(op["a"], not wanted) if op.type() is PRED else ALL


@predicate("and")
def _and(search: _Search, op: Op, wanted: bool) -> Lanes:
    return _both(search, op, wanted) if wanted else ALL


@predicate("or", joins=True)
def _or(search: _Search, op: Op, wanted: bool) -> Lanes:
    return ALL if wanted else _both(search, op, wanted)


def _both(search: _Search, op: Op, wanted: bool) -> Lanes:
    """Where both operands are as wanted."""
    if op.type() is not PRED:
        return ALL
    a, b = search.lanes(op["a"], wanted), search.lanes(op["b"], wanted)
    return _lanes(a.lanes & b.lanes, a.one or b.one)


@predicate("setp")
def _setp(search: _Search, op: Op, wanted: bool) -> Lanes:
    """Of a comparison of integers, as wide as their registers: where the operands may be equal."""
    kind = op.type_of("a")
    if kind is None or kind.kind not in "bus" or kind.bits < LEAST_BITS or len(op.srcs) != 2:
        return ALL
    if op.mods["cmp"] != ("eq" if wanted else "ne") or {it.type.bits for it in op.srcs if isinstance(it, Reg)} != {kind.bits}:
        return ALL
    for pattern, other in ((op["a"], op["b"]), (op["b"], op["a"])):
        found, bound = search.uniformity.shape(pattern), search.uniformity.shape(other)
        if isinstance(other, Imm) and other.bits == 0:
            return _lanes(search.zeros(pattern), found is not None and _differ(found))
        if found is not None and bound is not None and bound.uniform:
            return _lanes(_equal(found, other.bits) if isinstance(other, Imm) else EVERYONE, _differ(found))
    return ALL


def _lanes(lanes: frozenset[int], one: bool) -> Lanes:
    return Lanes(lanes, one or len(lanes) == 1)


def _differ(found: Shape) -> bool:
    """Whether all lanes have different numbers of 32 bits."""
    return not found.widenings and len(set(found.offsets)) == len(found.offsets)


def _equal(found: Shape, value: int) -> frozenset[int]:
    """The lanes that may have a value: those whose offsets are its low bits, if the base leaves these alone."""
    if found.widenings or not separate(found):
        return EVERYONE
    offset = value % (1 << min(found.zeros, 63))
    return frozenset(lane for lane, own in enumerate(found.offsets) if own == offset)
