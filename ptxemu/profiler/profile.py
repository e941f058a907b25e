"""The counts of a launch, put together by metric, class of instruction and line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from ptxemu.ir.ops import Module, Op
from ptxemu.ir.source_lines import SourceLines
from ptxemu.isa.work import class_of
from ptxemu.process.lazy import lazy_property
from ptxemu.profiler.counters import FirstBirth, LaunchCounts
from ptxemu.profiler.metrics import FIRST_TOUCHED, INSTRUCTIONS, Work, contributions, derived, total, work_of
from ptxemu.profiler.occupancy import Multiprocessor, Occupancy, multiprocessor_of, occupancy
from ptxemu.profiler.registers import registers_of
from ptxemu.text.listings import Listings
from ptxemu.text.source import Location
from ptxemu.text.symbols import plain_name

Key = TypeVar("Key", bound=Hashable)
LIMITS = {"registers": "registers", "shared memory": "shared_mem", "warps": "warps", "blocks": "blocks"}


class Line(Struct, frozen=True):
    """What the instructions of one line did. ``text`` is None where the file cannot be read."""

    place: Location
    text: str | None
    sums: Mapping[str, int]


class Profile:
    """Of one launch. ``registers`` is what is known of a thread's, instead of the estimate."""

    def __init__(self, counts: LaunchCounts, registers: int | None = None) -> None:
        self.counts = counts
        self.module: Module = counts.image.module
        self.kernel = plain_name(counts.image.code.function.name)
        self.shape, self.stopped = counts.shape, counts.stopped
        self.estimated = registers is None
        self.registers = registers_of(list(counts.image.codes)) if registers is None else registers
        self._parts = {op: contributions(op, found) for op, found in counts.counts.items()}

    @property
    def sampled(self) -> float:
        """How many times as many blocks the launch has as were run."""
        return self.shape.blocks / self.counts.blocks

    @lazy_property
    def sums(self) -> Counter[str]:
        return total(self._parts.values()) + Counter({FIRST_TOUCHED: len(self.counts.sectors)})

    @lazy_property
    def multiprocessor(self) -> Multiprocessor:
        found = re.match(r"sm_(\d+)", " ".join(self.module.target))
        return multiprocessor_of(int(found[1]) if found else 0)

    @lazy_property
    def occupancy(self) -> Occupancy:
        return occupancy(self.multiprocessor, self.shape.threads, self.registers, self.counts.shared)

    @lazy_property
    def work(self) -> Work:
        return work_of(self.sums, len(self.counts.sectors))

    @property
    def metrics(self) -> dict[str, float]:
        """All of them, by name: sums, ratios and facts of the launch."""
        launch: dict[str, float] = {
            "launch__grid_size": self.shape.blocks,
            "launch__block_size": self.shape.threads,
            "launch__registers_per_thread": self.registers,
            "launch__shared_mem_per_block": self.counts.shared + self.multiprocessor.reserved,
            "sm__maximum_warps_per_active_cycle_pct": self.occupancy.percent,
        }
        launch |= {f"launch__occupancy_limit_{LIMITS[name]}": blocks for name, blocks in self.occupancy.limits.items()}
        return {**launch, **dict(sorted(self.sums.items())), **derived(self.sums)}

    @lazy_property
    def classes(self) -> Counter[str]:
        """Instructions of warps by their class."""
        return self._mix(class_of)

    @lazy_property
    def opcodes(self) -> Counter[str]:
        """The same by opcode and type."""
        return self._mix(lambda op: ".".join(filter(None, (op.opcode, op.mods.get("type", "")))))

    def _mix(self, kind: Callable[[Op], str]) -> Counter[str]:
        found: Counter[str] = Counter()
        for op, part in self._parts.items():
            found[kind(op)] += part[INSTRUCTIONS]
        return Counter(dict(found.most_common()))

    def ptx_lines(self) -> list[Line]:
        """By line of the PTX, in their order."""
        source = self.module.source
        grouped = self._grouped(lambda op: (source.location(op.pos), source.text_at(op.pos).strip()))
        return [Line(place, text, sums) for (place, text), sums in grouped.items()]

    def cuda_lines(self, listings: Listings) -> list[Line]:
        """By line of the source that the PTX was made of, where instructions belong to the innermost inlined function."""
        lines = SourceLines(self.module)
        grouped = self._grouped(lambda op: (lines.of(op) or (None,))[0])
        found = [Line(place, listings.line(place), sums) for place, sums in grouped.items() if place is not None]
        return sorted(found, key=lambda line: (line.place.file, line.place.line))

    def births(self, listings: Listings) -> list[tuple[str, Location, str, FirstBirth]]:
        """What instructions made of which kind, in the order in which they did first; their lines and texts."""
        lines, source = SourceLines(self.module), self.module.source
        found = []
        for (op, kind), first in self.counts.births.items():
            place = next(iter(lines.of(op)), source.location(op.pos))
            text = listings.line(place) if lines.of(op) else None
            instruction = " ".join(source.text[op.pos : op.end].split())
            found.append((kind, place, f"{text.strip()}  [{instruction}]" if text else instruction, first))
        return found

    def _grouped(self, key: Callable[[Op], Any]) -> dict[Any, Counter[str]]:
        found: dict[Any, Counter[str]] = {}
        for op in sorted(self._parts, key=lambda op: op.pos):
            found.setdefault(key(op), Counter()).update(self._parts[op])
        return found
