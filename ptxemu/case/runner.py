"""Running a case: inputs made, launches done in order, results compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from ptxemu.api import Kernel, Launcher, Module, load
from ptxemu.case.arguments import Argument, Name, StructSpec
from ptxemu.case.array_files import SUFFIXES, save_array
from ptxemu.case.arrays import Array
from ptxemu.case.bindings import bind, in_order
from ptxemu.case.compare import Comparison, compare
from ptxemu.case.expression import evaluate
from ptxemu.case.images import ConstantSpec
from ptxemu.case.reference import run_script
from ptxemu.case.resources import Resources
from ptxemu.case.schema import Case, LaunchSpec, Output
from ptxemu.case.sources import ArraySpec
from ptxemu.device.device import Device, default_device
from ptxemu.device.launch import LaunchResult
from ptxemu.process.stages import INPUTS, LOAD, RUN, stage
from ptxemu.text.errors import InputError
from ptxemu.text.files import inside, regular


class CaseResult(Struct):
    """What came out of a case. ``seconds`` is the time in kernels; ``arrays`` holds the final contents, ``expected`` what was."""

    case: Case
    comparisons: list[Comparison] = []
    arrays: dict[str, Array] = {}
    expected: dict[str, Any] = {}
    saved: list[Path] = []
    seconds: float = 0.0
    wall_seconds: float = 0.0
    warnings: list[str] = []

    @property
    def passed(self) -> bool:
        return all(comparison.passed for comparison in self.comparisons)


def run_case(
    case: Case,
    *,
    device: Device | None = None,
    timeout: float | None = None,
    output: Path | None = None,
    printf: Callable[[str], None] | None = None,
    python: bool = True,
    checks: bool = True,
    launch: Callable[[CaseRun, int], LaunchResult] | None = None,
) -> CaseResult:
    """Run a case and compare. ``timeout`` is for launches that state none; ``output`` is where ``[save]`` writes.

    Without ``python``, a case with a reference, which is Python, is an error. Without ``checks`` nothing is compared. ``launch``
    does a launch, by its number, in another way than on the device.

    Raises the errors of loading and launching; a wrong result is a failed comparison, not an exception.
    """
    started = time.perf_counter()
    if case.reference is not None and checks and not python:
        raise InputError(f"{case.path}: expect.reference: is Python, which an isolated command does not run")
    targets = {} if output is None else {name: _target(case, name, file, output) for name, file in case.save.items()}
    run = CaseRun(case, device or default_device())
    result = CaseResult(case)
    for number, spec in enumerate(case.launches):
        done = run.launch(spec, timeout, printf) if launch is None else launch(run, number)
        run.note_arguments(spec)
        result.seconds += done.seconds
        result.warnings += done.warnings
    result.warnings += run.warnings
    result.arrays = run.resources.arrays()
    if checks:
        result.expected = _expected(case, run.resources.inputs, result.arrays)
        wanted = result.expected.items()
        result.comparisons = [compare(name, result.arrays[name], array, case.tolerance_of(name)) for name, array in wanted]
    for name, target in targets.items():
        save_array(target, result.arrays[name], f"{case.path}: save.{name}")
        result.saved.append(target)
    result.wall_seconds = time.perf_counter() - started
    return result


def _target(case: Case, name: str, file: str, output: Path) -> Path:
    """Where to save an array: below the folder for results, whatever a case says."""
    where = f"{case.path}: save.{name}"
    path = inside(output, file, where)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{where}: {path}: must end in {' or '.join(SUFFIXES)}")
    return path


class CaseRun:
    """A case's program and what it works on, on a device."""

    def __init__(self, case: Case, device: Device) -> None:
        self.case = case
        try:
            with stage(LOAD):
                self.module: Module = load(
                    [regular(program, "") for program in case.programs],
                    strict=case.strict,
                    device=device,
                    dialect=case.dialect,
                    options=case.options,
                    like=device.like or case.like,
                )
        except InputError as error:
            raise InputError(f"{case.path}: {error}") from None
        with stage(INPUTS):
            self.resources = Resources(case, device)
        self.warnings: list[str] = []
        self.module.warn = self.warnings.append

    def launcher(self, spec: LaunchSpec) -> Launcher:
        """The kernel of a launch with its grid and block."""
        try:
            return kernel_of(self.module, spec)[spec.grid, spec.block]
        except InputError as error:
            raise InputError(f"{spec.where}: {error}") from None

    def launch(
        self, spec: LaunchSpec, timeout: float | None, printf: Callable[[str], None] | None, part: range | None = None
    ) -> LaunchResult:
        """Do one launch, or a part of its blocks."""
        launcher = self.launcher(spec)
        kernel = launcher.kernel
        for symbol, name in spec.bind.items():
            bind(self.module, symbol, self.resources.handles[name], f"{spec.where}: bind.{symbol}")
        args = in_order(kernel.info, spec.args, f"{spec.where}: args")
        values = [
            self._value(argument, parameter.elements is not None)
            for argument, parameter in zip(args, kernel.info.parameters, strict=True)
        ]
        limit = timeout if spec.timeout is None else spec.timeout
        try:
            with stage(RUN):
                launcher = launcher if part is None else launcher.part(part.start, part.stop)
                shared, cooperative, cluster = spec.shared, spec.cooperative, spec.cluster
                return launcher(*values, shared=shared, timeout=limit, cooperative=cooperative, cluster=cluster, printf=printf)
        except InputError as error:
            raise InputError(f"{spec.where}: {error}") from None

    def note_arguments(self, spec: LaunchSpec) -> None:
        """Let a reference see the scalars of a launch."""
        scalars = {key: value for key, value in spec.args.items() if not isinstance(value, Name | StructSpec | ConstantSpec)}
        self.resources.inputs.update(scalars)

    def _value(self, argument: Argument, by_value: bool) -> object:
        if isinstance(argument, ConstantSpec):
            return self.resources.constants(argument)
        return self.resources.value(argument, by_value)


def kernel_of(module: Module, spec: LaunchSpec) -> Kernel:
    """The kernel of a launch."""
    if spec.entry is not None:
        return module[spec.entry]
    if len(module) != 1:
        raise InputError(f"{spec.where}: entry: is missing; {module.name} has {', '.join(module)}")
    return next(iter(module.values()))


def _expected(case: Case, inputs: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """What the arrays that are checked must be, by name."""
    found: dict[str, Any] = run_script(case.reference, inputs) if case.reference is not None else {}
    for name in found:
        if name not in arrays:
            raise InputError(f"{case.reference}: returns '{name}', which is not an array or surface of the case")
    return {**found, **{name: _of_output(case, name, output, found, inputs) for name, output in case.outputs.items()}}


def _of_output(case: Case, name: str, output: Output, found: dict[str, Any], inputs: dict[str, Any]) -> Any:
    if isinstance(output.source, ArraySpec):
        return output.source.make()
    if isinstance(output.source, str):
        where = f"{case.path}: expect.outputs.{name}.expression"
        return np.asarray(evaluate(output.source, inputs, where))
    if name not in found:
        raise InputError(f"{case.path}: expect.outputs.{name}: nothing says what to expect")
    return found[name]
