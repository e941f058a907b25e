"""Integer division that never traps, exact on vectors through floating-point division."""

from __future__ import annotations

from ptxemu.lower.bits import constant, sign_mask
from ptxemu.lower.emit import Emitter
from ptxemu.types import ScalarType


def quotient_remainder(e: Emitter, kind: ScalarType, a: str, b: str) -> tuple[str, str]:
    """a / b rounded toward zero, and a - b * (a / b).

    The manual leaves division by zero unspecified: quotient and remainder are all ones, which is what the code made by
    NVIDIA's assembler yields for every type.  The lowest integer divided by -1 is itself, remainder 0.
    """
    t = kind.llvm
    zero = e.icmp("eq", t, b, constant(e, t, 0))
    replaced = zero
    if kind.is_signed:
        lowest = e.icmp("eq", t, a, constant(e, t, sign_mask(t)))
        overflow = e.bin("and", "i1", lowest, e.icmp("eq", t, b, constant(e, t, -1)))
        replaced = e.bin("or", "i1", zero, overflow)
    divisor = e.select(replaced, t, constant(e, t, 1), b)
    quotient = _divide(e, kind, a, divisor)
    remainder = e.bin("sub", t, a, e.bin("mul", t, quotient, divisor))
    ones = constant(e, t, -1)
    return e.select(zero, t, ones, quotient), e.select(zero, t, ones, remainder)


def _divide(e: Emitter, kind: ScalarType, a: str, b: str) -> str:
    """Hosts have no vector integer division: up to 32 bits divide as floats.

    With n-bit operands and p > n + 1 significant bits the quotient, rounded once, never reaches the next integer: that is
    at least 1/b away, the rounding error at most (a/b) * 2**-p < 1/b.
    """
    t = kind.llvm
    if not e.lanes or kind.bits == 64:
        return e.bin("sdiv" if kind.is_signed else "udiv", t, a, b)
    number = "double" if kind.bits == 32 else "float"
    sign = "s" if kind.is_signed else "u"
    a, b = (e.cast(sign + "itofp", t, x, number) for x in (a, b))
    quotient = e.bin("fdiv", number, a, b)
    if kind.bits == 32:
        return e.cast(f"fpto{sign}i", number, quotient, t)
    return e.cast("trunc", "i32", e.cast("fptosi", number, quotient, "i32"), t)
