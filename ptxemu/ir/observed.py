"""What code tells the observer of a launch (csrc/launch/observer.h)."""

from __future__ import annotations

from typing import Literal

Observed = Literal["", "strays", "all"]
"""Nothing; accesses of memory where their instruction has not been before; or all accesses of memory."""
