"""Blocks of all kinds for which kernels have code of their own."""

from __future__ import annotations

FULL = [(32, 1, 1), (96, 1, 1), (64, 2, 1), *((1 << n, 32, 1) for n in range(5)), (16, 2, 3), (9, 32, 3)]
"""All of whose warps have all their lanes."""
PARTIAL = [(7, 1, 1), (100, 1, 1), *((1 << n, 35, 1) for n in range(5)), (3, 3, 3)]
SPREAD = [(24, 4, 1), (3, 7, 1), (7, 4, 3), (12, 12, 1)]
"""Whose threads may be spread."""
BLOCKS = FULL + PARTIAL + SPREAD
