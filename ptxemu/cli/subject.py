"""What a command is to run: a kernel of programs, as its options say, or a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import asdict, replace

from ptxemu.case import Case, read_case, run_case
from ptxemu.case.matrix import split_point
from ptxemu.case.resources import Resources
from ptxemu.case.runner import CaseRun
from ptxemu.cli.inputs import KernelOptions
from ptxemu.cli.isolation import is_isolated
from ptxemu.cli.kernel import GivenKernel
from ptxemu.cli.programs import LINES
from ptxemu.device.device import Device
from ptxemu.device.launch import LaunchResult
from ptxemu.text.errors import InputError


class Subject(Protocol):
    """What can be run again and again, each time from the start."""

    title: str
    resources: Resources | None
    """What the launches work on, once they have begun."""

    def run(self, device: Device, timeout: float | None, printf: Callable[[str], None] | None) -> list[str]:
        """Do its launches, and tell of nothing but the warnings."""


def subject_of(paths: Sequence[Path], options: KernelOptions, debug: str = LINES) -> Subject:
    """What the paths of a command and its options mean; ``debug`` is for CUDA C++. Raises InputError."""
    return GivenCase(given_case(paths, options)) if is_case(paths[-1]) else GivenKernel(paths, options, debug)


def is_case(path: Path) -> bool:
    """Whether a path is that of a case, or of a folder with one."""
    file, _ = split_point(path)
    return file.is_dir() or file.suffix == ".toml"


def given_case(paths: Sequence[Path], options: KernelOptions) -> Case:
    """The case of the last path, with the programs before it in place of its own."""
    _refuse_kernel_options(options)
    *programs, last = paths
    case = read_case(last)
    return replace(case, programs=tuple(programs)) if programs else case


def _refuse_kernel_options(options: KernelOptions) -> None:
    for name, value in asdict(replace(options, print=(), fidelity=None)).items():
        if value not in (None, ()):
            raise InputError(f"--{name} cannot be given with a case file, which sets it")


class GivenCase:
    """A case whose results are not looked at."""

    def __init__(self, case: Case) -> None:
        self.case, self.title = case, str(case.path)
        self.resources: Resources | None = None

    def run(self, device: Device, timeout: float | None, printf: Callable[[str], None] | None) -> list[str]:
        def launch(run: CaseRun, number: int) -> LaunchResult:
            self.resources = run.resources
            return run.launch(self.case.launches[number], timeout, printf)

        return run_case(self.case, device=device, checks=False, python=not is_isolated(), launch=launch).warnings
