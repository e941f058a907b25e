"""The wording of syntax errors: what the parser could have taken, and what it found instead."""

from __future__ import annotations

from collections.abc import Collection

from ply import yacc

_LOOK_BACK = 1000  # how much of the stack is copied; a long one comes from a deep expression
_CLOSERS = (";", "]", ")", "}", ">")
_WANTED: tuple[tuple[str, str], ...] = (
    ("TYPE", "a type"),
    ("FUNC", "a variable or a function"),
    ("STRING", "a string"),
    ("NAME", "a name"),
    ("SPACE", "a state space"),
    ("MODIFIER", "an attribute"),
)
_MALFORMED = {
    ".loc": "expected a file, a line and a column after '.loc'",
    ".section": "malformed or unterminated '.section'",
}


def acceptable(parser: yacc.LRParser) -> set[str]:
    """The token types that the parser could take where it stands.

    An entry of an LALR table may stand for reductions that lead nowhere, so each is played out on a copy of the stack.
    """
    return {kind for kind in parser.action[parser.statestack[-1]] if _shifts(parser, kind)}


def _shifts(parser: yacc.LRParser, kind: str) -> bool:
    stack: list[int] = list(parser.statestack[-_LOOK_BACK:])
    while stack:
        action = parser.defaulted_states.get(stack[-1]) or parser.action[stack[-1]].get(kind)
        if action is None:
            return False
        if action >= 0:
            return True
        production = parser.productions[-action]
        if production.len >= len(stack):
            return True  # reduces beyond what was copied: believe the table
        if production.len:
            del stack[-production.len :]
        stack.append(parser.goto[stack[-1]][production.name])
    return True


def expectation(expected: Collection[str]) -> str:
    """What may come next, in words, given the token types that the parser's state takes."""
    if "RUN" in expected:
        return "an instruction, a declaration or '}'"
    if "TUNING" in expected and "{" in expected:
        return "'{' or ';'"
    if "ADDRESS_SIZE" in expected:
        return "a directive, a declaration or a function"
    if "INTEGER" in expected:
        if "NAME" not in expected:
            return "a number"
        return "an operand or ';'" if ";" in expected else "an operand"
    if "PARAMETERS" in expected:
        return "a parameter"
    for closer in _CLOSERS:
        if closer in expected:
            return f"',' or '{closer}'" if closer != ";" and "," in expected else f"'{closer}'"
    for kind, words in _WANTED:
        if kind in expected:
            return words
    return " or ".join(f"'{kind}'" for kind in sorted(expected) if not kind.isalpha()) or "something else"


def unknown_word(text: str, expected: Collection[str]) -> str | None:
    """The message for a dotted word that is not a directive where one could be, or None."""
    if text in _MALFORMED:
        return _MALFORMED[text]
    if "TYPE" in expected:
        return f"unknown type '{text}'"
    if "RUN" in expected or "ADDRESS_SIZE" in expected or "TUNING" in expected:
        return f"unknown directive '{text}'"
    return None
