"""Productions that the grammars of dialects share; a grammar imports them beside its own."""

from __future__ import annotations

from ptxemu.dialects.text import Rule


def p_arguments(p: Rule) -> None:
    """arguments : argument
    | arguments argument
    | arguments ',' argument
    | arguments '=' argument"""
    p[0] = [p[1]] if len(p) == 2 else [*p[1], p[len(p) - 1]]
