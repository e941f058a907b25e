"""Block shapes as compile variants: what the launch's block says about how lanes map to threads.

Needs nothing else of the compiler, so that a launch of cached code stays quick to start.
"""

from __future__ import annotations

from ptxemu._runtime import ffi, lib

LANES = 32
ONE_WARP = "warp"
"""The kind of blocks in which no warp waits for another one."""
FULL = "full "
"""The mark of variants for blocks whose warps have all their lanes, in grids of less than ``PE_FEW_BLOCKS`` blocks along x."""
SPREAD = "spread "
"""The mark of kinds of blocks whose rows lie across warps, unless threads are spread (``csrc/launch/spread.h``)."""
UNKNOWN = "any"
"""The kind of blocks of which nothing is known."""


def variant_of(block: tuple[int, int, int]) -> str:
    """The variant of a block: its kind, which is ``warp`` (one, in a row), ``row`` (a warp lies in a row), ``x<n>`` (rows of n
    lanes, n < 32) or ``any``, behind ``FULL`` if all warps are; or one of the first behind ``SPREAD``."""
    return str(ffi.string(lib.pe_variant_of(block)).decode())


def kind_of(variant: str) -> str:
    """The kind of a variant's blocks."""
    return variant.removeprefix(FULL)


def is_spread(variant: str) -> bool:
    """Whether it is for threads that are spread."""
    return variant.startswith(SPREAD)


def is_full(variant: str) -> bool:
    """Whether all warps have all their lanes."""
    return variant.startswith(FULL)
