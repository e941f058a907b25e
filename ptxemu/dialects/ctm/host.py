"""What launches of CTM programs report beyond those of PTX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ptxemu._runtime import lib
from ptxemu.device.faults import FaultKind
from ptxemu.device.launch import Count
from ptxemu.dialects.host import Host

if TYPE_CHECKING:
    from ptxemu.device.module_info import KernelInfo
    from ptxemu.device.module_memory import Resident

UNSYNCED = "UNSYNCED_READ: reads of what UMRT writes, which no write acquires the texture semaphore for"


def unsynced_reads(info: KernelInfo, resident: Resident) -> Mapping[str, Count]:
    """Instructions that read, by another name, the surface that UMRT writes, unsynchronized."""
    return {"unsynced_reads": Count(resident.overlapping(info.unsynced), UNSYNCED)}


HOST = Host(
    faults={
        lib.PE_CTM_ALPHA: FaultKind("UMRT write whose alpha is not zero"),
        lib.PE_CTM_PARTIAL: FaultKind("UMRT write of some channels only"),
        lib.PE_CTM_INDEX: FaultKind("UMRT writes of one group with different indices"),
    },
    counters={
        "umrt_dropped": (lib.PE_CTM_DROPPED, "UMRT writes out of bounds were dropped"),
        "umrt_partial": (lib.PE_CTM_SKIPPED, "UMRT writes of some channels only were skipped"),
    },
    check=unsynced_reads,
)
