"""Syntax errors that ptxas finds elsewhere than at the token that the grammar cannot take, and names there."""

from __future__ import annotations

import re
from collections.abc import Collection

from ptxemu.syntax.ast import Module
from ptxemu.syntax.lexer import IDENTIFIER

_BEFORE_TARGET = re.compile(r"\s*\.version\s+[0-9.]+\s++(?!\.target)(\S)", re.ASCII)
_BEFORE_VERSION = re.compile(r"\s*+(?!\.version)(\S)", re.ASCII)
_HEADER = re.compile(r"\.(version|target|address_size)$", re.ASCII)
_DOTTED = re.compile(rf"{IDENTIFIER}(\.\w+)+$", re.ASCII)
_LONGEST_WORD = 200
_LONGEST_CALL = 2000
_UNOPENED = re.compile(rf"\bcall(?:\.uni)?\s+(?:\([^()]*\)\s*,\s*)?{IDENTIFIER}\s*,\s*{IDENTIFIER}(?=\s*,)", re.ASCII)
_INLINED = r"[ \t]*,[ \t]*function_name[ \t]+[\w$]+[ \t]*,[ \t]*inlined_at(?:[ \t]+[0-9]+){0,2}"
_LOC = re.compile(rf"\.loc(?:[ \t]+[0-9]+){{0,3}}(?:{_INLINED})?", re.ASCII)
_SECTION = re.compile(r"\.section(?:[ \t]*\.[\w.$]+)?", re.ASCII)

Fault = tuple[str, int, int]
"""Message, pos and end."""


def fault_before(text: str, end: int, module: Module, expected: Collection[str], strict: bool) -> Fault | None:
    """What is wrong with what comes before a token that ``end`` precedes, if that explains the error better."""
    return (
        _value(text, end, module) or _call(text, end) or (_order(text, module) if strict else None) or _name(text, end, expected)
    )


def unfinished(text: str, pos: int, expected: Collection[str]) -> int:
    """Where a malformed ``.loc`` (in a body) or ``.section`` (elsewhere) at ``pos`` has ended; 0 if there is none."""
    match = _LOC.match(text, pos) if "RUN" in expected else _SECTION.match(text, pos) if "ADDRESS_SIZE" in expected else None
    return match.end() if match else 0


def _value(text: str, end: int, module: Module) -> Fault | None:
    """A directive of the module's header that lacks its value."""
    found = _HEADER.search(text, max(0, end - _LONGEST_WORD), end)
    if found and (found[1] == "version" or getattr(module, found[1])):
        return f"expected a value after '{found[0]}'", found.start(), found.end()
    return None


def _call(text: str, end: int) -> Fault | None:
    """A comma after the second name of a call whose arguments have no opening parenthesis."""
    start = max(text.rfind(stop, max(0, end - _LONGEST_CALL), end) for stop in ";{}")
    found = _UNOPENED.search(text, start + 1, end)
    return ("expected '(' before the arguments of the call", found.end(), found.end() + 1) if found else None


def _order(text: str, module: Module) -> Fault | None:
    """Something else in place of ``.version`` or ``.target``, which ptxas wants before it reads anything."""
    early = None if module.version else _BEFORE_VERSION.match(text)
    if early:
        return "the module has no .version directive", early.start(1), early.end(1)
    early = None if module.target or module.version is None else _BEFORE_TARGET.match(text)
    return ("the module has no .target directive", early.start(1), early.end(1)) if early else None


def _name(text: str, end: int, expected: Collection[str]) -> Fault | None:
    """A word with a dot where a variable is declared."""
    if not {"[", "=", "<"} <= set(expected) or "+" in expected:
        return None
    found = _DOTTED.search(text, max(0, end - _LONGEST_WORD), end)
    return (f"'{found[0]}' is not a name for a variable", found.start(), found.end()) if found else None
