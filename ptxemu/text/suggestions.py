"""Hints about misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

LONGEST = 100  # characters of a name that is compared
MOST = 4000  # names that are compared: the hint must not take longer than the check
SLACK = 3  # characters by which lengths may differ
CANDIDATES = 4
ALIKE = 0.6  # of instructions: short names are soon alike


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The known name that ``name`` was probably meant to be: among equals, one that begins alike."""
    from difflib import SequenceMatcher, get_close_matches

    if len(name) > LONGEST:
        return None
    alike = list(islice((other for other in known if abs(len(other) - len(name)) <= SLACK), MOST))
    folded = name.lower()
    for other in alike:
        if other.lower() == folded:
            return other
    found = get_close_matches(name, alike, CANDIDATES, cutoff)
    return max(found, key=lambda other: _likeness(SequenceMatcher(None, other, name).ratio(), other, name), default=None)


def _likeness(ratio: float, one: str, other: str) -> tuple[float, int]:
    pairs = zip(one, other)
    return ratio, next((index for index, (a, b) in enumerate(pairs) if a != b), len(one))


def closest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """``"; did you mean 'x'?"`` for the known name nearest to ``name``, else an empty text."""
    return proposing(nearest(name, known, cutoff))


def proposing(found: str | None) -> str:
    """The end of a message that proposes what was probably meant, if anything."""
    return f"; did you mean '{found}'?" if found else ""
