"""Shared memory of the CTAs of a cluster: addresses of ``.shared::cluster`` and generic ones (ir/distributed.py), of a warp."""

from __future__ import annotations

from typing import Any

from ptxemu.ir.distributed import BEYOND, FIRST, NO_ADDRESS, OFFSETS, RANK_AT

WORD64 = (1 << 64) - 1


class Windows:
    """The windows of a cluster as a warp sees them: that of rank 0 starts at ``first``, and they are 1 << ``shift`` apart.

    Addresses are those of lanes, in 64 bits; one that no access can have stands for what does not exist.
    """

    def __init__(self, w: Any) -> None:
        self.own, self.size = int(w.shared_base), int(w.shared_size)
        self.first, self.bytes = int(w.cluster_base), int(w.cluster_bytes)
        self.shift, self.count = int(w.cluster_shift), int(w.cluster_nctarank)
        self.rank = self.own - self.first >> self.shift
        self.field = 0 if self.count == 1 else self.rank + FIRST << RANK_AT
        """The bits of a ``.shared::cluster`` address that name the thread's own CTA."""

    # ---- addresses of .shared::cluster

    def named(self, address: int) -> int:
        """The rank that an address names; its own if it names none, -1 if there is no such CTA."""
        ranked = address >> RANK_AT
        if not ranked:
            return self.rank
        return ranked - FIRST if FIRST <= ranked < FIRST + self.count else -1

    def rank_in(self, address: int) -> int:
        """The rank that an address names; the thread's own of others."""
        rank = self.named(address)
        return self.rank if rank < 0 else rank

    def generic(self, address: int) -> int:
        rank = self.named(address)
        return address | BEYOND if rank < 0 else self._start(rank) + (address & OFFSETS)

    def accessed(self, address: int) -> int:
        """The generic address of one that is accessed: none if it is in no window."""
        return self.generic(address) if address & OFFSETS < self.size else address | BEYOND

    def stripped(self, address: int) -> int:
        """An address in the thread's own window, or a little before or behind it, without the rank that it may name."""
        near = address + (1 << RANK_AT - 1) & WORD64
        return address - self.field & WORD64 if near & ~OFFSETS == self.field else address

    def of_rank(self, address: int, rank: int) -> int:
        """The same place in another window, as an address of ``.shared::cluster``."""
        if self.named(address) < 0 or rank >= self.count:
            return NO_ADDRESS
        return address if self.count == 1 else rank + FIRST << RANK_AT | address & OFFSETS

    # ---- generic addresses

    def holds(self, address: int) -> bool:
        """Whether one lies in a window, or between two."""
        return self.first <= address < self.first + self.bytes

    def rank_of(self, address: int) -> int:
        """That of the CTA in whose window it lies; the thread's own for others."""
        return address - self.first >> self.shift if self.holds(address) else self.rank

    def within(self, address: int) -> bool:
        """Whether one lies in the shared memory of a CTA."""
        return self.holds(address) and self.offset(address) < self.size

    def shared(self, address: int, ranked: bool) -> int:
        """The ``.shared::cluster`` address; ``ranked``: one in the own window names its rank, too."""
        rank = self.rank_of(address)
        if rank == self.rank:
            return address - self.own + (self.field if ranked else 0) & WORD64
        return rank + FIRST << RANK_AT | self.offset(address)

    def offset(self, address: int) -> int:
        """How far one is from the start of its window."""
        return address - self.first & (1 << self.shift) - 1

    def moved(self, address: int, rank: int) -> int:
        """The same place in another window, as a generic address."""
        good = self.holds(address) and rank < self.count
        return self._start(rank) + self.offset(address) if good else address | BEYOND

    def _start(self, rank: int) -> int:
        return self.first + (rank << self.shift)
