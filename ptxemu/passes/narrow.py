"""Integers of 32 bits that 16 hold, and what is computed from them, become integers of 16 bits, twice as many in a register.

What other instructions read of them is extended again.  Which these are is found by :mod:`ptxemu.analysis.narrowing`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.ir.graph import Block, reading
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import PRED, TYPES, ScalarType
from ptxemu.isa.operands import OperandPattern
from ptxemu.isa.table import ROWS, Row
from ptxemu.passes.internal import move

HALF = 16
B16, U16 = TYPES["b16"], TYPES["u16"]


class Narrowing(Struct, frozen=True):
    """``kinds``: how registers that become narrow are extended; ``wide``: those of them that others read as they are.

    ``typed``: the types that ops are computed in, whose results are all narrow, or predicates; ``moved``: loads and stores of
    narrow registers; ``converted``: ops that make them of registers of 16 bits, or these of them.
    """

    kinds: Mapping[Reg, ScalarType]
    wide: set[Reg]
    typed: Mapping[Op, ScalarType]
    moved: set[Op]
    converted: set[Op]


def narrow(blocks: list[Block], plan: Narrowing) -> bool:
    """Rewrite the ops of a graph in SSA form, in place; whether there are any."""
    if plan.kinds:
        rewriter = _Rewriter(plan)
        for block in blocks:
            block.ops = list(rewriter.ops(block))
    return bool(plan.kinds)


class _Rewriter:
    def __init__(self, plan: Narrowing) -> None:
        self.plan = plan
        self.own: dict[Reg, Operand] = {reg: Reg(f"{reg.name}.narrow", B16) for reg in plan.kinds}

    def ops(self, block: Block) -> Iterator[Op]:
        cut: dict[Reg, Operand] = {}  # the lower halves of registers that all lanes share
        for op in block.ops:
            if op in self.plan.typed:
                yield from self._cut(op, cut)
                yield self._typed(op, self.plan.typed[op], ChainMap(self.own, cut))
            elif op in self.plan.moved:
                yield replace(reading(op, self.own), dsts=self._dsts(op))
            elif op in self.plan.converted:
                dst, source = op["d"], op["a"]
                yield move(self.own.get(dst, dst), self.own.get(source, source), U16, op)
            else:
                yield op
            for reg in op.results:
                if reg in self.plan.wide:
                    yield move(reg, self.own[reg], self.plan.kinds[reg], op)

    def _cut(self, op: Op, cut: dict[Reg, Operand]) -> Iterator[Op]:
        """Moves of halves that an op reads."""
        for pattern, source in _operands(op):
            if not _is_number(pattern) or not isinstance(source, Reg) or source.type.bits <= HALF:
                continue
            if source not in self.own and source not in cut:
                cut[source] = half = Reg(f"{source.name}.cut", B16)
                yield move(half, source, U16, op)

    def _typed(self, op: Op, kind: ScalarType, own: Mapping[Reg, Operand]) -> Op:
        numbers = [_is_number(pattern) for pattern, _ in _operands(op)]
        srcs = tuple(_halved(source, own) if number else source for number, source in zip(numbers, op.srcs))
        src_types = tuple(kind if number else old for number, old in zip(numbers, op.src_types))
        dst_types = tuple(old if old is PRED else kind for old in op.dst_types)
        mods = {**op.mods, "type": kind.name, **({"mode": "lo"} if "mode" in op.mods else {})}
        return replace(
            op, row=_row(op, mods), mods=mods, dsts=self._dsts(op), srcs=srcs, dst_types=dst_types, src_types=src_types
        )

    def _dsts(self, op: Op) -> tuple[Reg | None, ...]:
        found = (self.own.get(dst, dst) if dst is not None else None for dst in op.dsts)
        return tuple(dst if isinstance(dst, Reg) else None for dst in found)


def _operands(op: Op) -> Iterator[tuple[OperandPattern, Operand]]:
    """The sources, each with its pattern, of an op whose sources are no vectors."""
    return zip((pattern for pattern in op.row.operands if pattern.role == "src"), op.srcs)


def _is_number(pattern: OperandPattern) -> bool:
    """Whether an operand has the type that the instruction is of, or twice that."""
    return "type" in pattern.type


def _halved(source: Operand, own: Mapping[Reg, Operand]) -> Operand:
    if isinstance(source, Imm):
        return Imm(source.bits % (1 << HALF), U16)
    return own.get(source, source) if isinstance(source, Reg) else source


def _row(op: Op, mods: Mapping[str, str]) -> Row:
    """The row of an opcode that has some modifiers."""
    for row in (op.row, *ROWS[op.opcode]):
        values = {qualifier.name: qualifier.values for qualifier in row.qualifiers}
        if len(row.operands) == len(op.row.operands) and all(value in values.get(name, ()) for name, value in mods.items()):
            return row
    raise AssertionError(f"{op.opcode} has no row of {mods}")
