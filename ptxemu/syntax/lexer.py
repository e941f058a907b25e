"""The PLY lexer: the tokens of PTX (PTX ISA, "Syntax").

An opcode with its modifiers (``ld.global.v4.f32``) and a vector member (``%tid.x``) look alike and are both one NAME;
the grammar tells them apart.  Rules run on blanked text (:mod:`ptxemu.syntax.trivia`), so there are no comments here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ply import lex

from ptxemu.syntax import literals
from ptxemu.syntax.ast import Init, Int
from ptxemu.syntax.symbols import LEXED
from ptxemu.syntax.words import DIRECTIVES

if TYPE_CHECKING:
    from ptxemu.syntax.stream import TokenStream

Token = Any  # ply.lex.LexToken, which is untyped
_Rule = Callable[[Any, Token], Token]

literals_ = ";:,{}[]()<>+-*/%!~|&^=@?"

IDENTIFIER = r"(?:[A-Za-z][A-Za-z0-9_$]*|[_$%][A-Za-z0-9_$]+)"
_DOTTED = IDENTIFIER + r"(?:\.\w+(?:::\w+)*+)*+"
SAFE_INTEGER = 17
"""Characters of an integer that fits 64 bits whatever its base is."""
_FRACTION = r"\.[0-9]+(?:[eE][+-]?[0-9]+)?(?!\w)"
_NUMBER = rf"0[xXbBfFdD]\w*|{_FRACTION}|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?\w*"
_LOC = r"\.loc[ \t]+([0-9]{1,9})[ \t]+([0-9]{1,9})[ \t]+([0-9]{1,9})"
_INLINED = rf"(?:\s*,\s*function_name\s+{IDENTIFIER}(?:\s*\+\s*[0-9]+)?\s*,\s*inlined_at\s+([0-9]+\s+[0-9]+\s+[0-9]+))?"
LOC = re.compile(_LOC + _INLINED + r"(?![\w.,])", re.ASCII)


def _matches(pattern: str) -> Callable[[_Rule], _Rule]:
    """Gives a rule its regular expression, as ``ply.lex.TOKEN`` does."""

    def decorate(rule: _Rule) -> _Rule:
        rule.regex = pattern  # type: ignore[attr-defined]
        return rule

    return decorate


def _begins_item(text: str, pos: int) -> bool:
    """Whether an initialiser's item starts at ``pos``: only blanks lie between it and a brace or comma."""
    before = pos - 1
    while before >= 0 and text[before] in " \t\r\n":
        before -= 1
    return before >= 0 and text[before] in "{,"


class _Rules:
    """The rules, in order of precedence."""

    tokens = LEXED
    literals = literals_
    states = (("init", "inclusive"),)
    t_ignore = " \t\r\n"

    @_matches(r"(?:(?:0|[1-9][0-9]{0,17})\s*,\s*){2,}")
    def t_init_INTEGERS(self, t: Token) -> Token:
        """A run of plain decimals in an initialiser, as in the byte tables of compilers."""
        if not _begins_item(t.lexer.lexdata, t.lexpos):  # the first number belongs to an expression, as in -1, 0, 0
            t.type, t.value = "INTEGER", t.value.partition(",")[0].rstrip()
            t.lexer.lexpos = t.lexpos + len(t.value)
            return t
        spans = [(t.lexpos + m.start(), t.lexpos + m.end(), int(m[0])) for m in _DIGITS.finditer(t.value)]
        t.value = [Init(Int(value, False, pos, end), False, None, None, pos, end) for pos, end, value in spans]
        return t

    @_matches(_LOC + _INLINED + r"(?![\w.,])")
    def t_LOC(self, t: Token) -> None:
        stream_of(t).note_location(t.lexpos, t.value)

    @_matches(r"/\*")
    def t_COMMENT(self, t: Token) -> None:
        """Comments are blank by now, unless they never end."""
        stream_of(t).unterminated_comment(t.lexpos)

    @_matches(_DOTTED)
    def t_NAME(self, t: Token) -> Token:
        """A directive is not a modifier: one right after a name is a token of its own."""
        if "." in t.value and (found := DIRECTIVE.search(t.value)):
            t.value = t.value[: found.start()]
            t.lexer.lexpos = t.lexpos + len(t.value)
        return t

    @_matches(_NUMBER)
    def t_NUMBER(self, t: Token) -> Token:
        text = t.value
        if len(text) > literals.LONGEST_NUMBER:
            stream_of(t).error("this number is too long", t.lexpos, t.lexpos + len(text))
            t.type, t.value = "INTEGER", "0"
        elif literals.INTEGER.fullmatch(text):
            t.type = "INTEGER"
            if len(text) > SAFE_INTEGER and literals.overflows(text):
                stream_of(t).error("this number does not fit 64 bits", t.lexpos, t.lexpos + len(text))
                t.value = "0"
        elif literals.EXACT_FLOAT.fullmatch(text) or literals.DECIMAL_FLOAT.fullmatch(text):
            t.type = "FLOAT"
        else:
            problem = f"invalid number {text[:40]!r}{literals.why_invalid(text)}"
            stream_of(t).error(problem, t.lexpos, t.lexpos + len(text))
            t.type, t.value = "INTEGER", "0"
        return t

    @_matches(r"\.\w+(?:::\w+)*")
    def t_WORD(self, t: Token) -> Token:
        t.type = DIRECTIVES.get(t.value[1:], "MODIFIER")
        return t

    @_matches(r'"(?:[^"\\\n]++|\\[^\n])*+"')
    def t_STRING(self, t: Token) -> Token:
        return t

    t_SHIFT = r"<<|>>"
    t_RELATION = r"<=|>="
    t_EQUALITY = r"==|!="
    t_AND = r"&&"
    t_OR = r"\|\|"

    def t_SINK(self, t: Token) -> Token:
        r"_"
        t.type = "NAME"
        return t

    def t_error(self, t: Token) -> None:
        stream_of(t).bad_text(t.lexpos)


_MODIFIERS = ("SPACE", "TYPE", "VECTOR", "ALIGN", "ALIAS", "LINKAGE")  # which directives and instructions share
_NOT_MODIFIERS = "|".join(word for word, kind in DIRECTIVES.items() if kind not in _MODIFIERS)
DIRECTIVE = re.compile(rf"\.(?:{_NOT_MODIFIERS}|section|loc)(?![\w:])")
_DIGITS = re.compile(r"[0-9]+", re.ASCII)


def stream_of(token: Token) -> TokenStream:
    stream: TokenStream = token.lexer.stream
    return stream


@cache
def prototype() -> lex.Lexer:
    """The compiled lexer; clone it for use. That its rules are sound is for tests to say, not for each start."""
    return lex.lex(object=_Rules(), reflags=re.ASCII, errorlog=lex.NullLogger(), optimize=True, lextab="")
