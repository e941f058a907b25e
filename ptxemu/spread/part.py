"""Running a part of a launch of a case, in a process that has a copy of its memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ptxemu.api import Launcher
from ptxemu.case import read_case
from ptxemu.case.runner import CaseRun
from ptxemu.case.schema import LaunchSpec
from ptxemu.device.device import ENGINES, Device
from ptxemu.spread.areas import areas_of
from ptxemu.spread.footprint import Changes, Footprint
from ptxemu.spread.updates import commuting
from ptxemu.text.errors import InputError

Memory = Mapping[str, NDArray[np.uint8]]
"""The bytes of the areas of a case that launches may change, by name."""


class Done(Struct, frozen=True):
    """What came of a part: its changes, what it printed, and seconds in the kernel and in all."""

    changes: dict[str, Changes]
    output: str
    seconds: float
    wall_seconds: float


class PartRunner:
    """A case whose launches are run in parts, each on a copy of its memory."""

    def __init__(self, run: CaseRun) -> None:
        if run.resources.device.engine != ENGINES[0]:
            raise InputError(f"a launch over several workers is compiled: it needs --engine {ENGINES[0]}")
        self.run = run
        program = self.run.module.program
        program.settings = replace(program.settings, observed="all")
        self.areas = areas_of(run)

    @classmethod
    def read(cls, path: Path, device: Device) -> PartRunner:
        """The runner of a case file."""
        return cls(CaseRun(read_case(path), device))

    def memory(self) -> dict[str, NDArray[np.uint8]]:
        """A copy of what launches may change."""
        return {name: area.bytes.copy() for name, area in self.areas.items() if not area.fixed}

    def set_memory(self, memory: Memory) -> None:
        for name, data in memory.items():
            self.areas[name].bytes[:] = data

    def place(self, name: str, at: int) -> str:
        """What lies at a byte of an area, in words."""
        return self.areas[name].place(at)

    def checked(self, spec: LaunchSpec) -> Launcher:
        """The launch, if its blocks do not wait for each other. Raises InputError."""
        launcher = self.run.launcher(spec)
        clusters = spec.cluster is not None or "reqnctapercluster" in launcher.kernel.info.limits
        if spec.cooperative or clusters or launcher.compile().facts.spins:
            name = launcher.kernel.name
            raise InputError(f"{spec.where}: blocks of kernel {name} wait for each other: it cannot run on several workers")
        if launcher.shape.blocks >= np.iinfo(np.uint32).max:
            raise InputError(f"{spec.where}: the grid has too many blocks for several workers")
        return launcher

    def run_part(self, number: int, memory: Memory, part: range, timeout: float | None) -> Done:
        """Run blocks of launch ``number`` of the case on a copy of the memory."""
        started = time.perf_counter()
        spec = self.run.case.launches[number]
        kernel = self.checked(spec).kernel
        self.set_memory(memory)
        functions = self.run.module.program.ir.functions
        footprint = Footprint(self.areas.values(), commuting(functions[kernel.name]))
        printed: list[str] = []
        with footprint.kept(self.run.resources.device.arena):
            done = self.run.launch(spec, timeout, printed.append, part)
        footprint.check()
        return Done(footprint.changes(), "".join(printed), done.seconds, time.perf_counter() - started)
