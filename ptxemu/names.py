"""Hints about misspelt names."""

from __future__ import annotations

from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the known name nearest to ``name``, else an empty text."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{found[0]}'?" if found else ""
