"""What a dialect brings to launches of its programs: faults, counters and checks of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxemu.device.faults import FaultKind
from ptxemu.device.launch import Count
from ptxemu.dialects import find

if TYPE_CHECKING:
    from ptxemu.device.module_info import KernelInfo
    from ptxemu.device.module_memory import Resident
    from ptxemu.device.surface import SurfaceContext


class Host(Struct, frozen=True):
    """``faults`` by their number, from PE_DIALECT_FAULTS on. ``counters`` are names of what the runtime counts, each with its
    place among the dialect's counters and what it says. ``check`` looks at a kernel before its launch; what it gives counts
    too."""

    faults: Mapping[int, FaultKind] = {}
    counters: Mapping[str, tuple[int, str]] = {}
    check: Callable[[KernelInfo, Resident], Mapping[str, Count]] = lambda info, resident: {}

    def counts(self, surfaces: SurfaceContext) -> dict[str, Count]:
        """The counters after a launch."""
        if not self.counters:
            return {}
        return {name: Count(surfaces.count(place), text) for name, (place, text) in self.counters.items()}


NOTHING = Host()


def host_of(name: str) -> Host:
    """What a dialect brings; it is in its module ``host``, as HOST."""
    if not find(name).hosted:
        return NOTHING
    host: Host = import_module(f"ptxemu.dialects.{name}.host").HOST
    return host
