"""Syntax errors that ptxas finds elsewhere than at the token that the grammar cannot take, and names there."""

from __future__ import annotations

import re
from collections.abc import Collection

from ptxemu.syntax.ast import Module
from ptxemu.syntax.lexer import IDENTIFIER

_BEFORE_TARGET = re.compile(r"\s*\.version\s+[0-9.]+\s+(?!\.target)(\S)", re.ASCII)
_HEADER = re.compile(r"\.(version|target|address_size)$", re.ASCII)
_DOTTED = re.compile(rf"{IDENTIFIER}(\.\w+)+$", re.ASCII)
_LONGEST_WORD = 200
_LOC = re.compile(r"\.loc(?:[ \t]+[0-9]+)*", re.ASCII)
_SECTION = re.compile(r"\.section(?:[ \t]*\.[\w.$]+)?", re.ASCII)

Fault = tuple[str, int, int]
"""Message, pos and end."""


def fault_before(text: str, end: int, module: Module, expected: Collection[str]) -> Fault | None:
    """What is wrong with what comes before a token that ``end`` precedes, if that explains the error better."""
    return _header(text, end, module) or _name(text, end, expected)


def unfinished(text: str, pos: int, *, in_body: bool) -> int:
    """Where a malformed ``.loc`` (in a body) or ``.section`` (elsewhere) at ``pos`` has ended; 0 if there is none."""
    match = (_LOC if in_body else _SECTION).match(text, pos)
    return match.end() if match else 0


def _header(text: str, end: int, module: Module) -> Fault | None:
    """A directive of the module's header that lacks its value, or something else in place of the ``.target``."""
    found = _HEADER.search(text, max(0, end - _LONGEST_WORD), end)
    if found and (found[1] == "version" or getattr(module, found[1])):
        return f"expected a value after '{found[0]}'", found.start(), found.end()
    early = None if module.target or module.version is None else _BEFORE_TARGET.match(text)
    return ("'.target' must follow '.version'", early.start(1), early.end(1)) if early else None


def _name(text: str, end: int, expected: Collection[str]) -> Fault | None:
    """A word with a dot where a variable is declared."""
    if not {"[", "=", "<"} <= set(expected) or "+" in expected:
        return None
    found = _DOTTED.search(text, max(0, end - _LONGEST_WORD), end)
    return (f"'{found[0]}' is not a name for a variable", found.start(), found.end()) if found else None
