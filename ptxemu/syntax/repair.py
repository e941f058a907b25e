"""Mending a syntax error with one token, so that what follows is read as it was meant.

Every proposal is played out on a copy of the parser's stack: it counts only if the parser can go on after it.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from ply import yacc

from ptxemu.isa import rows
from ptxemu.syntax.messages import MALFORMED
from ptxemu.syntax.words import DIRECTIVES
from ptxemu.text.suggestions import nearest

_LOOK_BACK = 1000  # how much of the stack is copied; a long one comes from a deep expression
_CLOSERS = (",", ")", "]", "}", ">", ";")
_LIKENESS = 0.7
_MEMBER = re.compile(r"[^.]+\.(?:[xyzwrgba]|[bh][0-7]{1,4})", re.ASCII)
_NOT_GUESSED = frozenset({"BRANCHTARGETS", "CALLTARGETS", "CALLPROTOTYPE", "TYPE"})
"""What only follows a label; and what, guessed wrong, would make every use of a name wrong."""


def shifts(parser: yacc.LRParser, *kinds: str) -> bool:
    """Whether the parser could take tokens of these types where it stands.

    An entry of an LALR table may stand for reductions that lead nowhere, so each is played out on a copy of the stack.
    """
    stack: list[int] = list(parser.statestack[-_LOOK_BACK:])
    return all(_shift(parser, stack, kind) for kind in kinds)


def _shift(parser: yacc.LRParser, stack: list[int], kind: str) -> bool:
    while stack:
        action = parser.defaulted_states.get(stack[-1]) or parser.action[stack[-1]].get(kind)
        if action is None:
            return False
        if action >= 0:
            stack.append(action)
            return True
        production = parser.productions[-action]
        if production.len >= len(stack):
            stack.clear()  # reduces beyond what was copied: believe the table
            return True
        if production.len:
            del stack[-production.len :]
        stack.append(parser.goto[stack[-1]][production.name])
    return True


def acceptable(parser: yacc.LRParser) -> set[str]:
    """The token types that the parser could take where it stands."""
    return {kind for kind in parser.action[parser.statestack[-1]] if shifts(parser, kind)}


def is_code(kind: str, text: str) -> bool:
    """Whether a token can only begin (or guard) an instruction, or a label of a compiler."""
    if kind != "NAME":
        return kind == "@"
    return rows().is_bare(text) or text[0] in "%$" or ("." in text and not _MEMBER.fullmatch(text))


def is_opcode(kind: str, text: str) -> bool:
    """The same for an instruction alone."""
    return is_code(kind, text) and text[0] not in "%$"


def missing(parser: yacc.LRParser, kind: str, text: str, starts_line: bool) -> str | None:
    """The token that, put before this one, lets the parser go on."""
    code = is_opcode(kind, text)
    first = (";",) if starts_line or kind == "}" or code else ()
    bodies = ("{",) if starts_line or code else ()
    return next((one for one in (*first, *_CLOSERS, *bodies) if one != kind and shifts(parser, one, kind)), None)


def meant(kind: str, text: str, expected: Collection[str]) -> str | None:
    """The dotted word that a NAME without its dot, or an unknown dotted word, was meant to be."""
    if kind == "NAME" and DIRECTIVES.get(text) in expected:
        return "." + text
    if kind != "MODIFIER" or text in MALFORMED:
        return None
    known = [word for word, type in DIRECTIVES.items() if type in expected and type not in _NOT_GUESSED]
    found = nearest(text[1:], known, _LIKENESS)
    return "." + found if found else None
