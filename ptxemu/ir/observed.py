"""What code tells the observer of a launch (csrc/launch/observer.h)."""

from __future__ import annotations

from typing import Literal

Observed = Literal["", "members", "strays", "blanks", "all"]
"""From the least to the most: nothing; membermasks; and accesses of memory where their instruction has not been before; and all
others of which an observer has not said that they are of no interest; or all accesses of memory."""


def tells_accesses(observed: Observed) -> bool:
    """Whether code tells of accesses of memory."""
    return observed not in ("", "members")
