"""The PLY lexer and grammar of one line of CTM text.

The guide has no assembly language; names of operations, modifiers and targets are those of its instruction fields.
Productions are the docstrings.
"""

from __future__ import annotations

import re
import struct
from functools import cache

from ptxemu.dialects.ctm.ast import Directive, Instruction, Name, Number, Operand, Pair, Part, Source
from ptxemu.dialects.ctm.table import TABLES
from ptxemu.dialects.rules import listed, p_arguments  # noqa: F401  (a production)
from ptxemu.dialects.text import LineParser, Rule, TextError, Token, bad_character, integer
from ptxemu.text.suggestions import closest

tokens = ("WORD", "DOTTED", "NUMBER", "KIND", "UNIT")
start = "line"
KINDS = ("ALU", "OUTPUT")
UNITS = ("RGB", "ALPHA")
FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|0[fF][0-9a-fA-F]{8}|inf|nan)", re.ASCII)
LONGEST = 40


class Rules:
    """The tokens. Values stay texts."""

    tokens = tokens
    literals = "|,;-+="
    t_ignore = " \t\r\f"
    t_NUMBER = r"[0-9](?:[eE][+-]?[0-9]+|[\w.])*"
    t_DOTTED = r"\.[A-Za-z_]\w*"
    t_error = staticmethod(bad_character)

    @staticmethod
    def t_WORD(token: Token) -> Token:
        r"[A-Za-z_]\w*(?:\.\w+)*"
        token.type = "KIND" if token.value in KINDS else "UNIT" if token.value in UNITS else "WORD"
        return token


# ---------------------------------------------------------------- lines


def p_line(p: Rule) -> None:
    """line : instruction
    | directive"""
    p[0] = p[1]


def p_directive(p: Rule) -> None:
    """directive : DOTTED
    | DOTTED arguments"""
    p[0] = Directive(_name(p, 1), tuple(p[2]) if len(p) > 2 else ())


def p_argument(p: Rule) -> None:
    """argument : word"""
    p[0] = p[1]


def p_argument_number(p: Rule) -> None:
    """argument : NUMBER
    | '-' NUMBER
    | '+' NUMBER"""
    text, pos = ("-" if p[1] == "-" else "") + p[len(p) - 1], p.lexpos(1)
    plain = re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)", text)
    p[0] = integer(text, pos) if plain else _number(text, pos, p.lexpos(len(p) - 1) + len(p[len(p) - 1]))


def p_instruction(p: Rule) -> None:
    """instruction : parts end
    | KIND parts end"""
    parts = p[len(p) - 2]
    kind = _name(p, 1) if len(p) == 4 else None
    p[0] = Instruction(kind, tuple(parts), kind.pos if kind else parts[0].pos, parts[-1].end)


def p_end(p: Rule) -> None:
    """end :
    | ';'"""


def p_parts(p: Rule) -> None:
    """parts : part
    | parts ';' part"""
    p[0] = listed(p)


def p_part(p: Rule) -> None:
    """part : core"""
    p[0] = _part(None, *p[1])


def p_part_unit(p: Rule) -> None:
    """part : UNIT core"""
    p[0] = _part(_name(p, 1), *p[2])


def p_core(p: Rule) -> None:
    """core : word
    | word operands"""
    p[0] = (p[1], p[2] if len(p) == 3 else [])


def p_core_unknown(p: Rule) -> None:
    """core : word word operands
    | word UNIT core"""
    name, found = p[1], _name(p, 2) if isinstance(p[2], str) else p[3][0].names[0]
    if any(name.text.partition(".")[0] in table for table in TABLES.values()):
        wanted = "a name" if isinstance(p[2], str) else "','"
        raise TextError(f"expected {wanted}, found '{found.text}'", found.pos, found.end)
    raise TextError(f"unknown kind of instruction '{name.text}'{closest(name.text, (*KINDS, *UNITS))}", name.pos, name.end)


def _part(unit: Name | None, name: Name, operands: list[Operand]) -> Part:
    pos = name.pos if unit is None else unit.pos
    return Part(unit, name, tuple(operands), pos, operands[-1].end if operands else name.end)


# ---------------------------------------------------------------- operands


def p_operands(p: Rule) -> None:
    """operands : pair
    | pair ',' sources"""
    p[0] = [p[1]] if len(p) == 2 else [p[1], *p[3]]


def p_pair(p: Rule) -> None:
    """pair : word
    | word '|' word"""
    names = (p[1],) if len(p) == 2 else (p[1], p[3])
    p[0] = Pair(names, names[0].pos, names[-1].end)


def p_sources(p: Rule) -> None:
    """sources : source
    | sources ',' source"""
    p[0] = listed(p)


def p_source(p: Rule) -> None:
    """source : value
    | '-' value"""
    value = p[len(p) - 1]
    pos = p.lexpos(1) if len(p) == 3 else value.pos
    p[0] = Source(value, len(p) == 3, False, pos, value.end)


def p_source_absolute(p: Rule) -> None:
    """source : '|' value '|'
    | '-' '|' value '|'"""
    size = len(p) - 1
    p[0] = Source(p[size - 1], size == 4, True, p.lexpos(1), p.lexpos(size) + 1)


def p_value(p: Rule) -> None:
    """value : word"""
    p[0] = p[1]


def p_value_number(p: Rule) -> None:
    """value : NUMBER"""
    p[0] = _number(p[1], p.lexpos(1), p.lexpos(1) + len(p[1]))


def p_word(p: Rule) -> None:
    """word : WORD"""
    p[0] = _name(p, 1)


def _name(p: Rule, index: int) -> Name:
    return Name(p[index], p.lexpos(index), p.lexpos(index) + len(p[index]))


def _number(text: str, pos: int, end: int) -> Number:
    if not FLOAT.fullmatch(text) or len(text) > LONGEST:
        raise TextError(f"invalid number '{text[:LONGEST]}'", pos, end)
    return Number(float_bits(text), pos, end)


def float_bits(text: str) -> int:
    """The bits of the nearest float; ``0f`` with eight digits are the bits themselves."""
    sign, digits = text.startswith("-"), text.lstrip("+-")
    if digits[:2] in ("0f", "0F"):
        return int(digits[2:], 16) ^ sign << 31
    try:
        return int(struct.unpack("<I", struct.pack("<f", float(text)))[0])
    except OverflowError:
        return 0x7F800000 | sign << 31


def p_error(token: Token) -> None:
    """Replaced by the parser of each line."""


COMMENTS = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
WORDS = {
    "NUMBER": "an operand", "DOTTED": "an instruction or a directive", "WORD": "a name", ",": "','", ";": "';'", "|": "'|'",
}  # fmt: skip


@cache
def parser() -> LineParser:
    """The parser of CTM."""
    import ptxemu.dialects.ctm.grammar as grammar

    return LineParser(Rules(), grammar, COMMENTS, WORDS)
