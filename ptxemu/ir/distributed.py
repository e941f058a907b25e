"""Addresses in the shared memory of other CTAs of a cluster.

The windows of a cluster's CTAs lie side by side, by rank, a power of two apart. An address of ``.shared::cluster`` in the window
of the thread's own CTA is its offset, one in that of another CTA the offset and, from bit RANK_AT on, the rank plus FIRST. As
that is even, clearing bit RANK_AT leads to the CTA of even rank of a pair, as programs for pairs of CTAs do (CUTLASS,
``Sm100MmaPeerBitMask``). In a kernel that has instructions of pairs, addresses in the thread's own window name its rank, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.ir.ops import Op

RANK_AT = 24
OFFSETS = (1 << RANK_AT) - 1
FIRST = 2
BEYOND = 1 << 63
"""Beyond all memory: what is added to an address that no access can have."""
NO_ADDRESS = -16
"""What no access can have, in a window or out of it."""


def are_ranked(ops: Iterable[Op]) -> bool:
    """Whether a kernel with these instructions is one for pairs."""
    return any("cta_group::2" in op.mods.values() for op in ops)
