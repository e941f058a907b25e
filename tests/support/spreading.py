"""Launches in parts, one after another on one device, as workers do them: ptxemu/spread."""

from __future__ import annotations

from itertools import pairwise

import ptxemu
from ptxemu.case import Case, CaseResult, run_case
from ptxemu.case.runner import CaseRun
from ptxemu.device.launch import LaunchResult
from ptxemu.spread.merge import Bytes, merged
from ptxemu.spread.part import PartRunner

SECONDS = 60


def merged_parts(runner: PartRunner, number: int, ends: tuple[int, ...]) -> dict[str, Bytes]:
    """The bytes after parts of a launch, that end before these blocks."""
    memory, shape = runner.memory(), runner.checked(runner.run.case.launches[number]).shape
    inner = [end for end in ends if end < shape.blocks]
    parts = [range(first, end) for first, end in pairwise((0, *inner, shape.blocks))]
    changes = [runner.run_part(number, memory, part, SECONDS).changes for part in parts]
    return merged(memory, changes, shape.grid, runner.place)


def run_in_parts(case: Case, device: ptxemu.Device, ends: tuple[int, ...]) -> CaseResult:
    """Run a case whose launches are all in parts."""

    def launch(run: CaseRun, number: int) -> LaunchResult:
        runner = PartRunner(run)
        runner.set_memory(merged_parts(runner, number, ends))
        return LaunchResult(0.0, 0, 0, 0)

    return run_case(case, device=device, launch=launch)
