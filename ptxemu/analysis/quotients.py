"""How quotients are expected to vary over the lanes of a warp: as those of the offsets alone.

Threads that fill a tile by their number find rows and columns by quotients and remainders: neighbours as a rule, some of which
are in the next row. What is found here is expected, not known (:mod:`ptxemu.analysis.runs`).
"""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import UNIFORM, Shapes, keeps_widths
from ptxemu.ir.ops import Imm, Op

Estimate = Callable[[Shapes, Op], Shape | None]
ESTIMATES: dict[str, Estimate] = {}


def estimate(opcode: str) -> Callable[[Estimate], Estimate]:
    """Register how the results of an instruction are expected to vary; None where nothing is."""

    def add(rule: Estimate) -> Estimate:
        ESTIMATES[opcode] = rule
        return rule

    return add


@estimate("div")
def _div(known: Shapes, op: Op) -> Shape | None:
    """A divisor that is not in the text is expected to be large."""
    dividend, divisor = known.shape(op["a"]), known.shape(op["b"])
    if dividend is None or divisor is None or not divisor.uniform or op.type().kind not in "us":
        return None
    number = op["b"].bits if isinstance(op["b"], Imm) else 0
    return _scaled(dividend, lambda offset: offset // number) if number else UNIFORM


@estimate("mul")
def _mul(known: Shapes, op: Op) -> Shape | None:
    """The upper half of a product by a number: what compilers make of quotients."""
    kind, number = op.type(), op["b"]
    found = known.shape(op["a"])
    if "hi" not in op.mods.values() or found is None or not isinstance(number, Imm) or not keeps_widths(known, op):
        return None
    if kind.is_signed and number.bits >> (kind.bits - 1):
        return None
    return _scaled(found, lambda offset: offset * number.bits >> kind.bits)


@estimate("shr")
def _shr(known: Shapes, op: Op) -> Shape | None:
    found, amount = known.shape(op["a"]), op["b"]
    if found is None or not isinstance(amount, Imm):
        return None
    return _scaled(found, lambda offset: offset >> amount.bits)


def _scaled(found: Shape, by: Callable[[int], int]) -> Shape | None:
    return Shape(tuple(map(by, found.offsets))) if min(found.offsets) >= 0 else None
