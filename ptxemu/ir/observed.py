"""What code tells the observer of a launch (csrc/launch/observer.h)."""

from __future__ import annotations

from typing import Literal

Observed = Literal["", "strays", "blanks", "all"]
"""Nothing; accesses of memory where their instruction has not been before; those and all others of which an observer has not said
that they are of no interest; or all accesses of memory."""
