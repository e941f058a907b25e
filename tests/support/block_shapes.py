"""Blocks of all kinds for which kernels have code of their own."""

from __future__ import annotations

BLOCKS = [(32, 1, 1), (7, 1, 1), (96, 1, 1), (64, 2, 1), *((1 << n, 32, 1) for n in range(5)), (3, 3, 3)]
