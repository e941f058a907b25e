"""What the units compute, as ops of PTX rows on floats as bits.

Inputs and results that are subnormal become zero of the same sign, NaN becomes 0x7fffffff; with the output modifier
disabled, an operation that chooses one of its sources keeps its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxemu.check.modifiers import Form
from ptxemu.dialects.build import Builder
from ptxemu.dialects.ctm.grammar import float_bits
from ptxemu.dialects.ctm.table import DISABLED, MODIFIERS
from ptxemu.ir.ops import Reg

HALF = 0x3F000000
SIGN, MAGNITUDE = 0x80000000, 0x7FFFFFFF
TESTS = {"PRED_OP_EQUAL": "eq", "PRED_OP_LESS": "lt", "PRED_OP_GREATER_EQUAL": "ge", "PRED_OP_NOT_EQUAL": "neu"}
COMPARES = {"MIN": "lt", "CMP": "ge", "CND": "gt", "MAX": "gt"}
"""MAX takes the second of equal sources, which matters for zeros alone."""


class Arithmetic:
    """The operations of one kernel; ``any_nan``: MIN, MAX, CND and CMP return the second source if any is NaN."""

    def __init__(self, body: Builder, any_nan: bool) -> None:
        self.body = body
        self.any_nan = any_nan

    def result(self, form: Form, sources: Sequence[Reg]) -> Reg:
        """An operation with its output modifier and clamp; a new register."""
        value = OPERATIONS[form.row.opcode](self, form.row.opcode, *sources)
        if form.mods["omod"] == DISABLED:
            return self._made("mov.b32", value)
        clamp = ".sat" if "CLAMP" in form.mods else ""
        return self._made(f"mul.rn.ftz{clamp}.f32", value, self.number(float_bits(str(MODIFIERS[form.mods["omod"]]))))

    def test(self, name: str, value: Reg) -> Reg:
        """Whether a result passes a predicate test. Subnormals are zero, NaN is unequal to it and nothing else."""
        found = self.body.temp("pred")
        self.body.emit(f"setp.{TESTS[name]}.ftz.f32", found, value, self.number(0))
        return found

    def number(self, bits: int) -> Reg:
        return self._made("mov.b32", bits)

    def negative(self, value: Reg) -> Reg:
        return self._made("xor.b32", value, SIGN)

    def absolute(self, value: Reg) -> Reg:
        return self._made("and.b32", value, MAGNITUDE)

    def _made(self, text: str, *operands: Reg | int) -> Reg:
        value = self.body.temp("b32")
        self.body.emit(text, value, *operands)
        return value

    # ------------------------------------------------------------ operations

    def fraction(self, opcode: str, a: Reg) -> Reg:
        """A - floor(A)"""
        return self._made("sub.rn.ftz.f32", a, self._made("cvt.rmi.ftz.f32.f32", a))

    def sum(self, opcode: str, a: Reg, b: Reg) -> Reg:
        return self._made("add.rn.ftz.f32", a, b)

    def product(self, opcode: str, a: Reg, b: Reg) -> Reg:
        return self._made("mul.rn.ftz.f32", a, b)

    def multiply_add(self, opcode: str, a: Reg, b: Reg, c: Reg) -> Reg:
        return self._made("fma.rn.ftz.f32", a, b, c)

    def same(self, opcode: str, a: Reg) -> Reg:
        return a

    def choice(self, opcode: str, a: Reg, b: Reg, c: Reg | None = None) -> Reg:
        """MIN, MAX: A or B by their order; CMP, CND: by C against 0 or 0.5."""
        left = a if c is None else c
        right = b if c is None else self.number(HALF if opcode == "CND" else 0)
        first = self.body.temp("pred")
        self.body.emit(f"setp.{COMPARES[opcode]}.ftz.f32", first, left, right)
        if c is not None and self.any_nan:
            numbers, both = self.body.temp("pred"), self.body.temp("pred")
            self.body.emit("setp.num.f32", numbers, a, b)
            self.body.emit("and.pred", both, numbers, first)
            first = both
        value = self.body.temp("b32")
        self.body.emit("selp.b32", value, a, b, first)
        return value


OPERATIONS: dict[str, Callable[..., Reg]] = {
    "MAD": Arithmetic.multiply_add, "MUL": Arithmetic.product, "ADD": Arithmetic.sum, "FRC": Arithmetic.fraction,
    "MOV": Arithmetic.same, "MIN": Arithmetic.choice, "MAX": Arithmetic.choice, "CND": Arithmetic.choice,
    "CMP": Arithmetic.choice,
}  # fmt: skip
