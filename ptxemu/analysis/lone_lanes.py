"""Branches that at most one lane of a warp takes, such as that of ``if (threadIdx.x == 0)``.

Where a pattern whose lanes all differ is compared with something uniform, at most one lane finds them equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxemu.analysis.linear import Structure
from ptxemu.analysis.shape import Shape, separate
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import PRED
from ptxemu.passes.lone_lanes import ANY, LoneCode

LEAST_BITS = 32
"""Of a number in which offsets of lanes do not wrap."""


def lone_code(uniformity: Uniformity) -> list[LoneCode]:
    """What single lanes run, behind the outermost of such branches, in linear order."""
    return list(_Search(uniformity).run())


class _Search:
    def __init__(self, uniformity: Uniformity) -> None:
        self.uniformity = uniformity
        self.makers: dict[Reg, Op] = {}
        self.covered: set[Block] = set()

    def run(self) -> Iterator[LoneCode]:
        for block in self.uniformity.structure.order:
            self.makers.update((dst, op) for op in block.ops for dst in op.results)
            if block.cond is None or block.table or len(block.succs) != 2:
                continue
            for target, wanted in zip(block.succs, (not block.negated, block.negated)):
                if target.preds != [block] or target in self.covered or (lane := self.lane(block.cond, wanted)) is None:
                    continue
                if blocks := _behind(self.uniformity.structure, block, target):
                    self.covered.update(blocks)
                    yield LoneCode(blocks, lane)

    def lane(self, predicate: Operand, wanted: bool) -> int | None:
        """The lane that at most finds a predicate as it is wanted, or ``ANY`` one; None if several may."""
        op = self.makers.get(predicate) if isinstance(predicate, Reg) else None
        rule = RULES.get(op.opcode) if op is not None else None
        if op is None or rule is None or op.guard is not None or any(op.negs) or op["d"] is not predicate:
            return None
        return rule(self, op, wanted)


def _behind(structure: Structure, block: Block, target: Block) -> list[Block]:
    """The blocks behind a branch, in linear order: none outside of its loop, where lanes may wait that leave in other trips."""
    loop = structure.loops.get(block)
    if structure.loops.get(target) is not loop:
        return []
    inside = structure.order if loop is None else loop.blocks
    return [other for other in structure.order if other in inside and structure.dominance.dominates(target, other)]


# ---------------------------------------------------------------- predicates

Rule = Callable[[_Search, Op, bool], int | None]
RULES: dict[str, Rule] = {}


def predicate(opcode: str) -> Callable[[Rule], Rule]:
    """Register what an instruction says of the lanes in which its result is as wanted."""

    def add(rule: Rule) -> Rule:
        RULES[opcode] = rule
        return rule

    return add


@predicate("not")
def _not(search: _Search, op: Op, wanted: bool) -> int | None:
    return search.lane(op["a"], not wanted) if op.type() is PRED else None


@predicate("and")
def _and(search: _Search, op: Op, wanted: bool) -> int | None:
    return _either(search, op) if wanted else None


@predicate("or")
def _or(search: _Search, op: Op, wanted: bool) -> int | None:
    return None if wanted else _either(search, op, wanted=False)


def _either(search: _Search, op: Op, wanted: bool = True) -> int | None:
    if op.type() is not PRED:
        return None
    lanes = (search.lane(op[name], wanted) for name in "ab")
    return next((lane for lane in lanes if lane is not None), None)


@predicate("setp")
def _setp(search: _Search, op: Op, wanted: bool) -> int | None:
    """Of a comparison of integers, as wide as their registers: the lane whose operands may be equal."""
    kind = op.type_of("a")
    if kind is None or kind.kind not in "bus" or kind.bits < LEAST_BITS or len(op.srcs) != 2:
        return None
    if op.mods["cmp"] != ("eq" if wanted else "ne") or {it.type.bits for it in op.srcs if isinstance(it, Reg)} != {kind.bits}:
        return None
    for pattern, other in ((op["a"], op["b"]), (op["b"], op["a"])):
        found, bound = search.uniformity.shape(pattern), search.uniformity.shape(other)
        if found is not None and bound is not None and bound.uniform and _differ(found):
            return _known_lane(found, other.bits) if isinstance(other, Imm) else ANY
    return None


def _differ(found: Shape) -> bool:
    """Whether all lanes have different numbers of 32 bits."""
    return not found.widenings and len(set(found.offsets)) == len(found.offsets)


def _known_lane(found: Shape, value: int) -> int:
    """The lane whose offset is the low bits of a number, if the base leaves these alone."""
    offset = value % (1 << min(found.zeros, 63))
    return found.offsets.index(offset) if separate(found) and offset in found.offsets else ANY
