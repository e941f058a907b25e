"""Hints about misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

LONGEST = 100  # characters of a name that is compared
MOST = 4000  # names that are compared: the hint must not take longer than the check
SLACK = 3  # characters by which lengths may differ


def closest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """``"; did you mean 'x'?"`` for the known name nearest to ``name``, else an empty text."""
    from difflib import get_close_matches

    if len(name) > LONGEST:
        return ""
    alike = (other for other in known if abs(len(other) - len(name)) <= SLACK)
    found = get_close_matches(name, list(islice(alike, MOST)), n=1, cutoff=cutoff)
    return f"; did you mean '{found[0]}'?" if found else ""
