"""Block shapes as compile variants: what the launch's block says about how lanes map to threads.

Needs nothing else of the compiler, so that a launch of cached code stays quick to start.
"""

from __future__ import annotations

from ptxemu._runtime import ffi, lib

LANES = 32
ONE_WARP = "warp"
"""The variant of blocks in which no warp waits for another one."""


def variant_of(block: tuple[int, int, int]) -> str:
    """The variant of a block: ``warp`` (one, which is a row), ``row`` (a warp lies in a row), ``x<n>`` (rows of n lanes, n < 32)
    or ``any``."""
    return str(ffi.string(lib.pe_variant_of(block)).decode())
