"""What code tells the observer of a launch (csrc/launch/observer.h)."""

from __future__ import annotations

from typing import Literal

Observed = Literal[
    "", "members", "waits", "strays", "strays, members", "strays, waits", "blanks", "stamps", "strays, stamps", "blanks, stamps",
    "all",
]  # fmt: skip
"""From the least to the most: nothing; membermasks; and accesses of memory where their instruction has not been before; and all
others of which an observer has not said that they are of no interest; or those with stamps that matter (csrc/check/stamp.h), and
what orders accesses; or these and strays, or blanks; or all accesses of memory, and that. ``waits`` are ``members`` in code that
copies: it tells of accesses of shared memory, too, of which an observer has not said that no copy is under way there, and of what
waits for copies."""


def tells_accesses(observed: Observed) -> bool:
    """Whether code tells of accesses of memory."""
    return observed not in ("", "members")


def tells_blanks(observed: Observed) -> bool:
    """Whether code tells of accesses of memory of which an observer has not said that they are of no interest."""
    return observed.startswith("blanks")


def tells_waits(observed: Observed) -> bool:
    """Whether code tells of accesses of shared memory where a copy may be under way, and of what waits for copies."""
    return observed.endswith("waits")


def with_copies(observed: Observed) -> Observed:
    """What code tells that copies asynchronously."""
    return {"members": "waits", "strays, members": "strays, waits"}.get(observed, observed)  # type: ignore[return-value]


def tells_strays(observed: Observed) -> bool:
    """The same, or of those where their instruction has not been before."""
    return observed.startswith("strays") or tells_blanks(observed)


def leaves_stamps(observed: Observed) -> bool:
    """Whether code leaves stamps, and tells of accesses that find some that matter."""
    return observed.endswith("stamps")


def tells_texels(observed: Observed) -> bool:
    """Whether code tells of texels, too."""
    return tells_blanks(observed) or leaves_stamps(observed) or observed == "all"


def tells_order(observed: Observed) -> bool:
    """Whether code tells of what orders accesses, and runs warps and their accesses one by one."""
    return leaves_stamps(observed) or observed == "all"
