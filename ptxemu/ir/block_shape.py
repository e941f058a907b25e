"""Block shapes as compile variants: what the launch's block says about how lanes map to threads.

Needs nothing else of the compiler, so that a launch of cached code stays quick to start.
"""

from __future__ import annotations

LANES = 32
NARROW = (1, 2, 4, 8, 16)


def variant_of(block: tuple[int, int, int]) -> str:
    """The variant of a block: ``row`` (a warp lies in one row), ``x<n>`` (rows of n lanes, n < 32) or ``any``."""
    x, y, z = block
    if (y == 1 and z == 1) or x % LANES == 0:
        return "row"
    if x in NARROW and (z == 1 or (x * y) % LANES == 0):
        return f"x{x}"
    return "any"
