"""Productions that the grammars of dialects share; a grammar imports them beside its own."""

from __future__ import annotations

from typing import Any

from ptxemu.dialects.text import Rule


def p_arguments(p: Rule) -> None:
    """arguments : argument
    | arguments argument
    | arguments ',' argument
    | arguments '=' argument"""
    p[0] = listed(p)


def listed(p: Rule) -> list[Any]:
    """The list so far, and one more at the end; in place, so that a long line costs no more than its length."""
    if len(p) == 2:
        return [p[1]]
    items: list[Any] = p[1]
    items.append(p[len(p) - 1])
    return items
