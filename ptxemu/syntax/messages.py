"""The wording of syntax errors: what the parser could have taken, and what it found instead."""

from __future__ import annotations

from collections.abc import Collection

from ptxemu.ir.types import TYPES
from ptxemu.text.suggestions import closest

_LIKENESS = 0.7
_CLOSERS = (";", "]", ")", "}", ">")
_WANTED: tuple[tuple[str, str], ...] = (
    ("FUNC", "a variable or a function"),
    ("TYPE", "a type"),
    ("STRING", "a string"),
    ("NAME", "a name"),
    ("SPACE", "a state space"),
    ("MODIFIER", "an attribute"),
)
MALFORMED = {
    ".loc": "expected a file, a line and a column after '.loc'",
    ".section": "malformed or unterminated '.section'",
}
_BRANCH = "a guard makes an instruction conditional: @%p bra label"
_DATA = "data are declared with a state space and a type, as in .reg .s32 x or .global .f32 x"
FOREIGN = {
    **dict.fromkeys(("if", "else", "for", "while", "do", "switch"), _BRANCH),
    **dict.fromkeys(("int", "float", "double", "char", "short", "long", "unsigned", "signed", "bool", "static"), _DATA),
    **dict.fromkeys(("void", "__global__", "__device__"), "functions are declared with .entry or .func"),
    **dict.fromkeys(("struct", "union", "enum", "typedef"), "arrays of bytes take the place of structures: .align 8 .b8 x[16]"),
}
"""Words that begin statements of C, and what PTX has instead."""


def expectation(expected: Collection[str], on_new_line: bool = False) -> str:
    """What may come next, in words, given the token types that the parser's state takes.

    ``on_new_line``: what was found begins a line, so a list has ended.
    """
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
            listed = "," in expected and not (closer == ";" and on_new_line)
            return f"',' or '{closer}'" if listed else f"'{closer}'"
    for kind, words in _WANTED:
        if kind in expected:
            return words
    return " or ".join(f"'{kind}'" for kind in sorted(expected) if not kind.isalpha()) or "something else"


def unknown_word(text: str, expected: Collection[str]) -> str | None:
    """The message for a dotted word that is not a directive where one could be, or None."""
    if text in MALFORMED:
        return MALFORMED[text]
    if "RUN" in expected or "ADDRESS_SIZE" in expected or "TUNING" in expected:
        return f"unknown directive '{text}'"
    if "TYPE" in expected and "PARAMETERS" not in expected:
        hint = closest(text, (f".{name}" for name in TYPES), _LIKENESS)
        return f"unknown type '{text}'{hint}"
    return None


def advice(kind: str, expected: Collection[str]) -> tuple[str, ...]:
    """A note on what PTX has instead of what was found."""
    if kind == "=" and ";" in expected:
        return ("PTX has no assignments: an instruction such as mov writes its first operand",)
    if kind == ";" and "ADDRESS_SIZE" in expected:
        return ("directives and functions of a module do not end with ';'",)
    return ()


def shown(text: str) -> str:
    """A part of the source in quotes, a long one cut."""
    return f"'{text[:40]}...'" if len(text) > 40 else f"'{text}'"
