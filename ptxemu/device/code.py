"""Code of a kernel as compilation leaves it, the cache keeps it and launches take it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import msgspec

from ptxemu.cache import Entry


@dataclass(frozen=True, slots=True)
class Facts:
    """What a launch must know of a kernel's code. Sizes are in bytes.

    ``suspends``: its warps may wait; ``spins``: for memory that another block writes. ``calls``: it makes real calls;
    ``stacked``: beyond ``local_bytes`` it takes local memory as it goes. ``frame_bytes``: of the host's stack, for one
    function.
    """

    variant: str = "any"
    static_shared: int = 0
    local_bytes: int = 0
    frame_bytes: int = 0
    suspends: bool = False
    spins: bool = False
    calls: bool = False
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Object code of one variant of a kernel. ``final``: the best tier makes no other code of this kernel."""

    object: bytes
    symbol: str
    final: bool
    facts: Facts

    @property
    def entry(self) -> Entry:
        """As the cache keeps it."""
        header = asdict(self)
        payload = header.pop("object")
        return Entry(header, payload)

    @classmethod
    def from_entry(cls, entry: Entry | None) -> KernelCode | None:
        """The code in an entry, or None where it holds something else."""
        if entry is None:
            return None
        try:
            return msgspec.convert({**entry.header, "object": entry.payload}, cls)
        except msgspec.ValidationError:
            return None
