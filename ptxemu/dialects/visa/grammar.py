"""The PLY lexer and grammar of one line of textual vISA (vISA "TYPED_ATOMIC", Text; the notation of ISA assembly files).

Productions are the docstrings.
"""

from __future__ import annotations

import re
from functools import cache

from ptxemu.dialects.rules import listed
from ptxemu.dialects.text import LineParser, Rule, TextError, Token, bad_character, integer
from ptxemu.dialects.visa.ast import Alias, Directive, Execution, Guard, Instruction, Label, Number, Region, Text
from ptxemu.syntax.ast import Name

tokens = ("WORD", "DOTTED", "NUMBER", "STRING", "MODIFIER")
start = "line"


class Rules:
    """The tokens. Values stay texts."""

    tokens = tokens
    literals = "(),;:<>=!"
    t_ignore = " \t\r\f"
    t_MODIFIER = r"\((?:-|~|abs|-abs)\)"
    t_NUMBER = r"[+-]?[0-9](?:[\w.]|(?<=[eE])[+-])*(?::\w+)?"
    t_STRING = r'"[^"\n]*"'
    t_DOTTED = r"\.[A-Za-z_]\w*"
    t_WORD = r"[A-Za-z_%$][\w$]*(?:\.\w+)*"
    t_error = staticmethod(bad_character)


# ---------------------------------------------------------------- lines


def p_line_label(p: Rule) -> None:
    """line : word ':'"""
    p[0] = Label(p[1])


def p_line(p: Rule) -> None:
    """line : directive
    | instruction"""
    p[0] = p[1]


def p_directive(p: Rule) -> None:
    """directive : DOTTED
    | DOTTED arguments"""
    found = p[2] if len(p) > 2 else []
    plain = tuple(item for item in found if not isinstance(item, tuple))
    p[0] = Directive(_name(p, 1), plain, tuple(item for item in found if isinstance(item, tuple)))


def p_arguments(p: Rule) -> None:
    """arguments : argument
    | arguments argument"""
    p[0] = listed(p)


def p_argument(p: Rule) -> None:
    """argument : plain
    | word '=' value"""
    p[0] = p[1] if len(p) == 2 else (p[1], p[3])


def p_value(p: Rule) -> None:
    """value : plain
    | alias"""
    p[0] = p[1]


def p_plain(p: Rule) -> None:
    """plain : word
    | number
    | text"""
    p[0] = p[1]


def p_alias(p: Rule) -> None:
    """alias : '<' word ',' number '>'"""
    p[0] = Alias(p[2], p[4])


# ---------------------------------------------------------------- instructions


def p_instruction(p: Rule) -> None:
    """instruction : word execution operands
    | guard word execution operands"""
    guard = p[1] if len(p) == 5 else None
    name, execution, operands = (p[index] for index in range(len(p) - 3, len(p)))
    pos = name.pos if guard is None else guard.pos
    end = operands[-1].end if operands else execution.size.end if execution else name.end
    p[0] = Instruction(guard, name, execution, tuple(operands), pos, end)


def p_guard(p: Rule) -> None:
    """guard : '(' word ')'
    | '(' '!' word ')'"""
    p[0] = Guard(p[len(p) - 2], len(p) == 5, p.lexpos(1))


def p_execution_none(p: Rule) -> None:
    """execution :"""


def p_execution(p: Rule) -> None:
    """execution : '(' number ')'
    | '(' word ',' number ')'"""
    p[0] = Execution(p[2] if len(p) == 6 else None, p[len(p) - 2])


def p_operands(p: Rule) -> None:
    """operands :
    | operands operand"""
    p[0] = [] if len(p) == 1 else listed(p)


def p_operand(p: Rule) -> None:
    """operand : word
    | number
    | region"""
    p[0] = p[1]


def p_operand_modified(p: Rule) -> None:
    """operand : MODIFIER region"""
    inner = p[2]
    p[0] = Region(inner.name, inner.row, inner.column, inner.strides, p[1][1:-1], p.lexpos(1), inner.end)


def p_region(p: Rule) -> None:
    """region : word '(' number ',' number ')' strides"""
    strides, end = p[7]
    p[0] = Region(p[1], whole(p[3]), whole(p[5]), strides, "", p[1].pos, max(end, p.lexpos(6) + 1))


def p_region_index(p: Rule) -> None:
    """region : word '(' number ')' strides"""
    strides, end = p[5]
    p[0] = Region(p[1], None, whole(p[3]), strides, "", p[1].pos, max(end, p.lexpos(4) + 1))


def p_strides_none(p: Rule) -> None:
    """strides :"""
    p[0] = (), -1


def p_strides(p: Rule) -> None:
    """strides : '<' number '>'
    | '<' number ';' number ',' number '>'"""
    p[0] = tuple(whole(p[index]) for index in range(2, len(p), 2)), p.lexpos(len(p) - 1) + 1


# ---------------------------------------------------------------- words


def p_word(p: Rule) -> None:
    """word : WORD"""
    p[0] = _name(p, 1)


def p_number(p: Rule) -> None:
    """number : NUMBER"""
    text, _, kind = p[1].partition(":")
    p[0] = Number(text, kind.lower(), p.lexpos(1), p.lexpos(1) + len(p[1]))


def p_text(p: Rule) -> None:
    """text : STRING"""
    p[0] = Text(p[1][1:-1], p.lexpos(1), p.lexpos(1) + len(p[1]))


def _name(p: Rule, index: int) -> Name:
    return Name(p[index], p.lexpos(index), p.lexpos(index) + len(p[index]))


def whole(number: Number) -> int:
    """The value of a number that has no type and is no fraction."""
    if number.type:
        raise TextError("a type may stand only at an immediate", number.pos, number.end)
    return integer(number.text, number.pos).value


def p_error(token: Token) -> None:
    """Replaced by the parser of each line."""


COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
WORDS = {
    ",": "','", ";": "','", "=": "'='", "NUMBER": "a number or an operand", "WORD": "an operand", "STRING": "a word",
    ")": "')'", ">": "'>'", ":": "':'", "(": "'('",
}  # fmt: skip


@cache
def parser() -> LineParser:
    """The parser of vISA."""
    import ptxemu.dialects.visa.grammar as grammar

    return LineParser(Rules(), grammar, COMMENTS, WORDS)
