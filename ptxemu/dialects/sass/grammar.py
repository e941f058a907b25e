"""The PLY lexer and grammar of one line of SASS (SURED and RED reference, "Format"; nvdisasm's notation).

Productions are the docstrings.
"""

from __future__ import annotations

import re
from functools import cache

from ptxemu.dialects.rules import listed, p_arguments  # noqa: F401  (a production)
from ptxemu.dialects.sass.ast import Address, Constant, Directive, Instruction, Line, Negative, Operand
from ptxemu.dialects.text import LineParser, Rule, TextError, Token, bad_character, integer
from ptxemu.syntax.ast import Name, Not

tokens = ("WORD", "DOTTED", "INTEGER", "ANNOTATION")
start = "line"
BLANKS = r"[ \t]*"
ANNOTATION = rf"[&?]{BLANKS}\w+(?:{BLANKS}={BLANKS}(?:\w+|\{{[\w, \t]*\}}))?"


class Rules:
    """The tokens. Values stay texts."""

    tokens = tokens
    literals = "[]{}(),;:@!+-=`"
    t_ignore = " \t\r\f"
    t_ANNOTATION = rf"\{{{BLANKS}{ANNOTATION}{BLANKS}\}}|{ANNOTATION}"
    t_INTEGER = r"[0-9]\w*"
    t_DOTTED = r"\.[A-Za-z_$]\w*"
    t_WORD = r"[A-Za-z_$][\w$]*(?:\.\w+)*"
    t_error = staticmethod(bad_character)


# ---------------------------------------------------------------- lines


def p_line_label(p: Rule) -> None:
    """line : name ':'
    | name ':' instruction"""
    p[0] = Line(p[1], p[3] if len(p) > 3 else None)


def p_line(p: Rule) -> None:
    """line : instruction
    | directive"""
    p[0] = Line(None, p[1])


def p_line_brace(p: Rule) -> None:
    """line : '{'
    | '}'
    | ';'"""


def p_directive(p: Rule) -> None:
    """directive : DOTTED
    | DOTTED arguments"""
    p[0] = Directive(_name(p, 1), tuple(p[2]) if len(p) > 2 else ())


def p_argument(p: Rule) -> None:
    """argument : word
    | literal
    | constant"""
    p[0] = p[1]


def p_instruction(p: Rule) -> None:
    """instruction : core
    | '{' core"""
    p[0] = p[len(p) - 1]


def p_core(p: Rule) -> None:
    """core : word operands annotations end"""
    p[0] = _instruction(None, p[1], p[2], p[1].pos)


def p_core_guarded(p: Rule) -> None:
    """core : '@' word word operands annotations end
    | '@' '!' word word operands annotations end"""
    negated = len(p) == 8
    p[0] = _instruction((p[2 + negated], negated), p[3 + negated], p[4 + negated], p.lexpos(1))


def _instruction(guard: tuple[Name, bool] | None, name: Name, operands: list[Operand], pos: int) -> Instruction:
    return Instruction(guard, name, tuple(operands), pos, operands[-1].end if operands else name.end)


def p_end(p: Rule) -> None:
    """end :
    | ';'
    | '}'
    | ';' '}'
    | '}' ';'"""


def p_annotations(p: Rule) -> None:
    """annotations :
    | annotations ANNOTATION"""


# ---------------------------------------------------------------- operands


def p_operands(p: Rule) -> None:
    """operands :
    | list"""
    p[0] = p[1] if len(p) == 2 else []


def p_list(p: Rule) -> None:
    """list : operand
    | list ',' operand"""
    p[0] = listed(p)


def p_operand(p: Rule) -> None:
    """operand : name
    | literal
    | constant
    | address"""
    p[0] = p[1]


def p_operand_target(p: Rule) -> None:
    """operand : '(' name ')'
    | '`' '(' name ')'"""
    p[0] = p[len(p) - 2]


def p_operand_not(p: Rule) -> None:
    """operand : '!' word"""
    p[0] = Not(p[2], p.lexpos(1), p[2].end)


def p_operand_negative(p: Rule) -> None:
    """operand : '-' word"""
    p[0] = Negative(p[2], p.lexpos(1), p[2].end)


def p_literal(p: Rule) -> None:
    """literal : INTEGER
    | '-' INTEGER
    | '+' INTEGER"""
    sign = p[1] if len(p) == 3 else ""
    p[0] = integer(sign + p[len(p) - 1], p.lexpos(1))


def p_constant(p: Rule) -> None:
    """constant : word '[' INTEGER ']' '[' INTEGER ']'"""
    bank, offset = integer(p[3], p.lexpos(3)), integer(p[6], p.lexpos(6))
    _expect(p[1], "c", "a constant bank is written c[bank][offset]")
    p[0] = Constant(bank.value, offset.value, p[1].pos, p.lexpos(7) + 1)


def p_address(p: Rule) -> None:
    """address : '[' word ']'
    | '[' word '+' INTEGER ']'
    | '[' word '-' INTEGER ']'
    | '[' word '+' '-' INTEGER ']'"""
    size = len(p) - 1
    offset = integer(p[size - 1], p.lexpos(size - 1)).value if size > 3 else 0
    negative = size > 3 and p[size - 2] == "-"
    p[0] = Address(p[2], -offset if negative else offset, p.lexpos(1), p.lexpos(size) + 1)


def p_address_literal(p: Rule) -> None:
    """address : '[' literal ']'"""
    p[0] = Address(None, p[2].value, p.lexpos(1), p.lexpos(3) + 1)


def p_name(p: Rule) -> None:
    """name : word
    | dotted"""
    p[0] = p[1]


def p_word(p: Rule) -> None:
    """word : WORD"""
    p[0] = _name(p, 1)


def p_dotted(p: Rule) -> None:
    """dotted : DOTTED"""
    p[0] = _name(p, 1)


def _name(p: Rule, index: int) -> Name:
    return Name(p[index], p.lexpos(index), p.lexpos(index) + len(p[index]))


def _expect(name: Name, text: str, message: str) -> None:
    if name.text != text:
        raise TextError(message, name.pos, name.end)


def p_error(token: Token) -> None:
    """Replaced by the parser of each line."""


COMMENTS = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
WORDS: dict[str | tuple[str, str], str] = {
    ("INTEGER", "WORD"): "an operand", "INTEGER": "a number", "DOTTED": "an instruction or a directive", "WORD": "a name",
    "]": "']'", ",": "',' or ';'", ":": "':'", "[": "'['",
}  # fmt: skip


NEWER = re.compile(r"\bdesc\[|\bUR[0-9XxZ]+|\bUP[0-6T]\b|\bR[0-9Z]+\.(?:64|U32)\b|\bREDG\b|\.(?:STRONG|GPU|SYS|SM|CTA)\b")
"""Uniform registers, descriptors, memory orders and addresses of later targets."""
LATER = "belongs to the SASS of sm_70 and later, an unsupported SASS dialect"


@cache
def parser() -> LineParser:
    """The parser of SASS."""
    import ptxemu.dialects.sass.grammar as grammar

    return LineParser(Rules(), grammar, COMMENTS, WORDS, (NEWER, f"'{{}}' {LATER}"))
