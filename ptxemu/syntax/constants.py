"""Constant expressions (PTX ISA, "Constant Expressions"): folding with the types that the manual gives.

Integers are ``.s64``, or ``.u64`` where a literal says ``U`` or is too large; an operator with one ``.u64`` side works
in ``.u64``.  Floats are ``.f64``; the two kinds do not mix.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ptxemu.syntax.ast import Float, Int
from ptxemu.syntax.literals import bits_to_double, double_to_bits

Constant = Int | Float

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&&": lambda left, right: bool(left) and bool(right),
    "||": lambda left, right: bool(left) or bool(right),
}
_FLOAT: dict[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}

SIGN_BIT = 1 << 63


class ConstantError(ValueError):
    """The expression has no value; the text says why."""


def wrap(value: int, unsigned: bool) -> int:
    value &= (1 << 64) - 1
    return value if unsigned or value < SIGN_BIT else value - (1 << 64)


def is_unsigned(constant: Int) -> bool:
    return constant.unsigned or constant.value >= SIGN_BIT


def unary(symbol: str, operand: Constant, pos: int, end: int) -> Constant:
    """``+ - ! ~`` applied to a constant."""
    if isinstance(operand, Float):
        value = _double(operand)
        if symbol == "!":
            return Int(int(not value), False, pos, end)
        if symbol == "~":
            raise ConstantError("'~' needs an integer constant")
        return Float(double_to_bits(-value if symbol == "-" else value), 64, pos, end)
    unsigned = is_unsigned(operand)
    if symbol == "!":
        return Int(int(not operand.value), False, pos, end)
    if symbol == "+":
        return Int(operand.value, operand.unsigned, pos, end)
    if symbol == "-" and operand.value == SIGN_BIT and not operand.unsigned:
        return Int(-SIGN_BIT, False, pos, end)
    return Int(wrap(-operand.value if symbol == "-" else ~operand.value, unsigned), unsigned, pos, end)


def cast(type_name: str, operand: Constant, pos: int, end: int) -> Constant:
    """``(.s64)`` and ``(.u64)``."""
    if type_name not in ("s64", "u64") or isinstance(operand, Float):
        raise ConstantError("a constant can be cast from an integer to .s64 or .u64 only")
    unsigned = type_name == "u64"
    return Int(wrap(operand.value, unsigned), unsigned, pos, end)


def binary(symbol: str, left: Constant, right: Constant, pos: int, end: int) -> Constant:
    """A binary operator applied to two constants of one kind."""
    if isinstance(left, Float) or isinstance(right, Float):
        if not (isinstance(left, Float) and isinstance(right, Float)):
            raise ConstantError(f"'{symbol}' mixes an integer and a float constant")
        return _binary_float(symbol, left, right, pos, end)
    unsigned = is_unsigned(left) or is_unsigned(right)
    a, b = wrap(left.value, unsigned), wrap(right.value, unsigned)
    if symbol in _COMPARE:
        return Int(int(_COMPARE[symbol](a, b)), False, pos, end)
    if symbol in ("<<", ">>"):
        return _shift(symbol, left, right, pos, end)
    if symbol in ("/", "%"):
        return Int(wrap(_divide(symbol, a, b), unsigned), unsigned, pos, end)
    return Int(wrap(_INTEGER[symbol](a, b), unsigned), unsigned, pos, end)


def choose(condition: Constant, yes: Constant, no: Constant, pos: int, end: int) -> Constant:
    """``condition ? yes : no``."""
    if isinstance(condition, Float) or isinstance(yes, Float) != isinstance(no, Float):
        raise ConstantError("'?:' needs an integer condition and two values of one kind")
    value = yes if condition.value else no
    if isinstance(value, Float):
        return Float(value.bits, value.width, pos, end)
    return Int(value.value, value.unsigned, pos, end)


def _double(constant: Float) -> float:
    if constant.width != 64:
        raise ConstantError("a 0f constant cannot be part of an expression")
    return bits_to_double(constant.bits)


def _binary_float(symbol: str, left: Float, right: Float, pos: int, end: int) -> Constant:
    a, b = _double(left), _double(right)
    if symbol in _COMPARE:
        return Int(int(_COMPARE[symbol](a, b)), False, pos, end)
    if symbol == "/" and b != 0.0:
        return Float(double_to_bits(a / b), 64, pos, end)
    if symbol == "/":
        raise ConstantError("division by zero in a constant expression")
    if symbol not in _FLOAT:
        raise ConstantError(f"'{symbol}' needs integer constants")
    return Float(double_to_bits(_FLOAT[symbol](a, b)), 64, pos, end)


def _shift(symbol: str, left: Int, right: Int, pos: int, end: int) -> Int:
    unsigned = is_unsigned(left)
    value, count = wrap(left.value, unsigned), right.value % 64  # as the assembler's host shifts
    return Int(wrap(value << count if symbol == "<<" else value >> count, unsigned), unsigned, pos, end)


def _divide(symbol: str, a: int, b: int) -> int:
    if b == 0:
        raise ConstantError("division by zero in a constant expression")
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    return quotient if symbol == "/" else a - quotient * b
