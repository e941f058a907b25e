"""What the operators of the grammar build: constants fold, ``symbol+4`` is an Offset, ``%p|%q`` a Pair.

One expression syntax serves operands, addresses and initialisers, so that the grammar has no conflicts; these functions
decide which combinations mean something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxemu.syntax import constants
from ptxemu.syntax.ast import (
    Address,
    Float,
    Group,
    Index,
    Init,
    Int,
    Name,
    Neg,
    Not,
    Offset,
    Operand,
    Pair,
    Sink,
    Vector,
)
from ptxemu.syntax.literals import INTEGER

if TYPE_CHECKING:
    from ptxemu.syntax.stream import TokenStream

WARP_SIZE = 32
LARGEST = (1 << 64) - 1
MEMBER = re.compile(r"[^.]+(?:\.[xyzwrgba])?(?:\.[bh][0-7]{1,4})?", re.ASCII)  # the last part selects bytes (video instructions)

WIDEST_GAP = 200
DANGLING = re.compile(r"[%$A-Za-z_][\w$]*\s*([-*/&|^])\s*$", re.ASCII)
"""An operator at the end of a line, after a name."""

LABEL = re.compile(r"(?:^|[;{}:])\s*[\w$%]+\s*$", re.ASCII)
"""A word without a dot that is all of a statement."""


def name(stream: TokenStream, text: str, pos: int) -> Operand:
    """A lone word: a register or symbol, ``_`` or ``WARP_SZ``."""
    end = pos + len(text)
    if text == "_":
        return Sink(pos, end)
    if text == "WARP_SZ":
        return Int(WARP_SIZE, False, pos, end)
    if not MEMBER.fullmatch(text) and stream.starts_line(pos):
        wanted = "':' or ';'" if LABEL.search(stream.text, max(0, pos - WIDEST_GAP), pos) else "';'"
        if dangling := DANGLING.search(stream.text, max(0, pos - WIDEST_GAP), pos):  # only sums have a name on their left
            stream.error(f"expected ';' before '{dangling[1]}'", dangling.start(1), dangling.end(1))
        stream.error(f"expected {wanted} before '{text}'", pos, end, stream.line_ended(wanted, pos))
    elif not MEMBER.fullmatch(text):
        stream.error(f"'{text}' is not an operand: expected a register, a symbol or a vector member", pos, end)
    return Name(text, pos, end)


def fold(stream: TokenStream, symbol: str, *operands: Operand, pos: int, end: int) -> Operand:
    """``operands`` under an operator: folded if all are constant, else reported."""
    values: list[Int | Float] = []
    for operand in map(unwrap, operands):
        if not isinstance(operand, Int | Float):
            stream.error(f"'{symbol}' needs constants: this is not one", operand.pos, operand.end)
            return Int(0, False, pos, end)
        values.append(operand)
    try:
        if len(values) == 1:
            return constants.unary(symbol, values[0], pos, end)
        return constants.binary(symbol, values[0], values[1], pos, end)
    except constants.ConstantError as problem:
        stream.error(str(problem), pos, end)
        return Int(0, False, pos, end)


def unary(stream: TokenStream, symbol: str, operand: Operand, pos: int) -> Operand:
    """``-x``, ``!x``, ``+x`` and ``~x``."""
    operand = unwrap(operand)
    if isinstance(operand, Name):
        if symbol == "!":
            return Not(operand, pos, operand.end)
        if symbol == "-":
            return Neg(operand, pos, operand.end)
    return fold(stream, symbol, operand, pos=pos, end=operand.end)


def binary(stream: TokenStream, left: Operand, symbol: str, right: Operand) -> Operand:
    """``left symbol right``."""
    pos, end = left.pos, right.end
    if symbol == "|" and isinstance(left, Name | Sink) and isinstance(right, Name | Sink):
        return Pair(left, right, pos, end)
    if symbol in ("+", "-") and isinstance(left, Name | Offset):
        value = unwrap(right)
        if isinstance(value, Int):
            if symbol == "-" and not isinstance(left, Offset):
                stream.extension(f"write '+-{value.value}': an address takes a constant after '+' only", pos, end)
            base, offset = (left.base, left.offset) if isinstance(left, Offset) else (left, 0)
            return Offset(base, offset + (value.value if symbol == "+" else -value.value), pos, end)
        place = value.pos if symbol == "+" else left.end
        stream.error(f"expected a constant after '{symbol}'", place, value.end)
        return left
    if isinstance(left, Offset) and not isinstance(right, Name | Sink):
        return _displaced(left, fold(stream, symbol, _constant(left), right, pos=pos, end=end), end)
    return fold(stream, symbol, left, right, pos=pos, end=end)


def _constant(offset: Offset) -> Int:
    """What follows the ``+`` after a base: operators that bind less tightly still belong to that constant."""
    return Int(offset.offset, False, offset.pos, offset.end)


def _displaced(base: Offset, value: Operand, end: int) -> Operand:
    return Offset(base.base, value.value, base.pos, end) if isinstance(value, Int) else value


def cast(stream: TokenStream, word: str, operand: Operand, pos: int) -> Operand:
    """``(.u64)x``."""
    value = unwrap(operand)
    try:
        if isinstance(value, Int | Float):
            return constants.cast(word[1:], value, pos, value.end)
        stream.error("only a constant can be cast", value.pos, value.end)
    except constants.ConstantError as problem:
        stream.error(str(problem), pos, value.end)
    return Int(0, False, pos, value.end)


def choose(stream: TokenStream, condition: Operand, yes: Operand, no: Operand) -> Operand:
    """``condition ? yes : no``."""
    if isinstance(condition, Offset):
        return _displaced(condition, choose(stream, _constant(condition), yes, no), no.end)
    values = [unwrap(operand) for operand in (condition, yes, no)]
    pos, end = condition.pos, no.end
    try:
        a, b, c = values
        if isinstance(a, Int | Float) and isinstance(b, Int | Float) and isinstance(c, Int | Float):
            return constants.choose(a, b, c, pos, end)
        stream.error("'?:' needs constants", pos, end)
    except constants.ConstantError as problem:
        stream.error(str(problem), pos, end)
    return Int(0, False, pos, end)


def unwrap(operand: Operand) -> Operand:
    """``(x)`` is ``x`` inside an expression; the grammar reads all parentheses as a Group."""
    while isinstance(operand, Group) and len(operand.items) == 1:
        inner = operand.items[0]
        if isinstance(inner, Int):
            return Int(inner.value, inner.unsigned, operand.pos, operand.end)
        if isinstance(inner, Float):
            return Float(inner.bits, inner.width, operand.pos, operand.end)
        operand = inner
    return operand


def subscript(stream: TokenStream, base: Operand, index: Operand, end: int) -> Operand:
    """``array[index]``."""
    index = unwrap(index)
    if not isinstance(base, Name):
        stream.error("only a variable can be subscripted", base.pos, base.end)
        return Int(0, False, base.pos, end)
    if not isinstance(index, Int | Name | Offset):
        stream.error("expected a constant or a register as subscript", index.pos, index.end)
        index = Int(0, False, index.pos, index.end)
    return Index(base, index, base.pos, end)


def address(stream: TokenStream, base: Operand, rest: Sequence[Operand], pos: int, end: int) -> Address:
    """``[base, rest ...]``."""
    if isinstance(base, Group) and not isinstance(unwrap(base), Int):
        stream.extension("the register or symbol of an address cannot be in parentheses", base.pos, base.end)
    base = unwrap(base)
    rest = tuple(plain(stream, item) for item in rest)
    if isinstance(base, Offset):
        return Address(base.base, base.offset, rest, pos, end)
    if not isinstance(base, Name | Int):
        stream.error("expected a register, a symbol or a constant address", base.pos, base.end)
        base = Int(0, False, base.pos, base.end)
    return Address(base, 0, rest, pos, end)


def operands(stream: TokenStream, opcode: str, items: list[Operand]) -> tuple[Operand, ...]:
    """The operands of an instruction: parentheses stay a Group in ``call`` only."""
    if opcode == "call":
        return tuple(items)
    return tuple(plain(stream, item) for item in items)


def plain(stream: TokenStream, operand: Operand) -> Operand:
    """An operand that may not be a Group, unless of one constant."""
    if not isinstance(operand, Group):
        return operand
    value = unwrap(operand)
    if not isinstance(value, Int | Float):
        stream.error("only the operands of 'call' can be in parentheses", operand.pos, operand.end)
        return Int(0, False, operand.pos, operand.end)
    return value


def initial(stream: TokenStream, value: Operand, generic: bool = False, mask: int | None = None) -> Init:
    """A scalar initialiser."""
    value = unwrap(value)
    if not isinstance(value, Int | Float | Name | Offset):
        stream.error("expected a constant, or an address with a constant offset", value.pos, value.end)
        value = Int(0, False, value.pos, value.end)
    return Init(value, generic, mask, None, value.pos, value.end)


def integer(stream: TokenStream, operand: Operand) -> int:
    """A constant where the syntax wants a plain number: extents, alignments, directive values."""
    value = unwrap(operand)
    if isinstance(value, Int):
        if not INTEGER.fullmatch(stream.text, value.pos, value.end):
            stream.extension("expected a plain integer, not an expression", value.pos, value.end)
        if value.value > LARGEST:
            stream.error(f"{value.value} does not fit .u64", value.pos, value.end)
        return value.value
    stream.error("expected an integer constant", value.pos, value.end)
    return 0


def vector(stream: TokenStream, items: list[Operand], pos: int, end: int) -> Vector:
    """``{a, b}``."""
    return Vector(tuple(plain(stream, item) for item in items), pos, end)


def group(stream: TokenStream, items: list[Operand], pos: int, end: int) -> Group:
    """``(a, b)``; lists are not nested."""
    return Group(tuple(plain(stream, item) for item in items), pos, end)
