"""Running a case: inputs made, launches done in order, results compared."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ptxemu.api import Kernel, Module, load
from ptxemu.buffer import Buffer
from ptxemu.case.arrays import Array, save_array
from ptxemu.case.bindings import in_order
from ptxemu.case.compare import Comparison, compare
from ptxemu.case.reference import evaluate, run_script
from ptxemu.case.schema import Argument, ArraySpec, Case, LaunchSpec, Name, Output, SurfaceSpec
from ptxemu.device import Device, default_device
from ptxemu.errors import InputError
from ptxemu.run import LaunchResult
from ptxemu.surface_object import AXES, SurfaceObject


@dataclass(slots=True)
class CaseResult:
    """What came out of a case. ``seconds`` is the time in kernels; ``arrays`` holds the final contents."""

    case: Case
    comparisons: list[Comparison] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    saved: list[Path] = field(default_factory=list)
    seconds: float = 0.0
    wall_seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)

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
) -> CaseResult:
    """Run a case and compare. ``timeout`` is for launches that state none; ``output`` is where ``[save]`` writes.

    Raises the errors of loading and launching; a wrong result is no exception but a failed comparison.
    """
    started = time.perf_counter()
    run = _Run(case, device or default_device())
    result = CaseResult(case)
    for launch in case.launches:
        done = run.launch(launch, timeout, printf)
        result.seconds += done.seconds
        result.warnings += done.warnings
    result.arrays = run.arrays()
    result.comparisons = _compare(case, run.inputs, result.arrays)
    if output is not None:
        for name, file in case.save.items():
            save_array(output / file, result.arrays[name], f"{case.path}: save.{name}")
            result.saved.append(output / file)
    result.wall_seconds = time.perf_counter() - started
    return result


class _Run:
    """The buffers and surfaces of a case on a device. ``inputs`` is what a reference gets to see."""

    def __init__(self, case: Case, device: Device) -> None:
        self.module: Module = load(case.program, strict=case.strict, device=device, dialect=case.dialect, options=case.options)
        self.device = device
        self.inputs: dict[str, Any] = {}
        self.hosts = {name: spec.make() for name, spec in case.buffers.items()}
        self.buffers: dict[str, Buffer] = {}
        self.surfaces = {name: self._surface(name, spec) for name, spec in case.surfaces.items()}
        self.inputs.update(self.hosts)

    def launch(self, spec: LaunchSpec, timeout: float | None, printf: Callable[[str], None] | None) -> LaunchResult:
        """Do one launch."""
        kernel = self._kernel(spec)
        for symbol, name in spec.bind.items():
            variable, index = _element(symbol, spec.where)
            self.module.bind(variable, self.surfaces[name], index)
        args = in_order(kernel.info, spec.args, f"{spec.where}: args")
        values = [
            self._value(argument, parameter.elements is not None)
            for argument, parameter in zip(args, kernel.info.parameters, strict=True)
        ]
        self.inputs.update({key: value for key, value in spec.args.items() if not isinstance(value, Name)})
        limit = timeout if spec.timeout is None else spec.timeout
        try:
            launcher = kernel[spec.grid, spec.block]
            return launcher(*values, shared=spec.shared, timeout=limit, cooperative=spec.cooperative, printf=printf)
        except InputError as error:
            raise InputError(f"{spec.where}: {error}") from None

    def arrays(self) -> dict[str, Array]:
        """The contents of every buffer and surface now."""
        found = {name: buffer.copy_to_host() for name, buffer in self.buffers.items()}
        found.update({name: surface.copy_to_host() for name, surface in self.surfaces.items()})
        return {**self.hosts, **found}

    def _kernel(self, spec: LaunchSpec) -> Kernel:
        if spec.entry is not None:
            return self.module[spec.entry]
        if len(self.module) != 1:
            raise InputError(f"{spec.where}: entry: is missing; {self.module.name} has {', '.join(self.module)}")
        return next(iter(self.module.values()))

    def _value(self, argument: Argument, by_value: bool) -> object:
        if not isinstance(argument, Name):
            return argument
        if argument.name in self.surfaces:
            return self.surfaces[argument.name]
        if by_value:
            return self.hosts[argument.name]
        if argument.name not in self.buffers:
            self.buffers[argument.name] = self.device.to_device(self.hosts[argument.name], argument.name)
        return self.buffers[argument.name]

    def _surface(self, name: str, spec: SurfaceSpec) -> SurfaceObject:
        data: object = spec.data.make() if spec.data is not None else _shape(spec)
        try:
            surface = self.device.surface(
                data, format=spec.format, geometry=spec.geometry, layout=spec.layout, name=name, **spec.options
            )
        except InputError as error:
            raise InputError(f"{spec.where}: {error}") from None
        self.inputs[name] = surface.copy_to_host()
        return surface


def _element(symbol: str, where: str) -> tuple[str, int]:
    """``name`` or ``name[index]``."""
    match = re.fullmatch(r"([^\[\]]+)(?:\[(\d{1,7})\])?", symbol)
    if match is None:
        raise InputError(f"{where}: bind.{symbol}: must be a name, or name[number]")
    return match[1], int(match[2] or 0)


def _shape(spec: SurfaceSpec) -> tuple[int, ...]:
    axes = AXES.get(spec.geometry, ())
    for key in spec.extents:
        if axes and key not in axes:
            raise InputError(f"{spec.where}: {key}: a {spec.geometry} surface has {', '.join(axes)} only")
    return tuple(spec.extents.get(axis, 1) for axis in axes)


def _compare(case: Case, inputs: dict[str, Any], arrays: dict[str, Array]) -> list[Comparison]:
    expected: dict[str, Any] = run_script(case.reference, inputs) if case.reference is not None else {}
    for name in expected:
        if name not in arrays:
            raise InputError(f"{case.reference}: returns '{name}', which is no array or surface of the case")
    comparisons = []
    for name in {**expected, **case.outputs}:
        output = case.outputs.get(name, Output(None, case.tolerance))
        wanted = _expected(case, name, output, expected, inputs)
        comparisons.append(compare(name, arrays[name], wanted, output.tolerance))
    return comparisons


def _expected(case: Case, name: str, output: Output, expected: dict[str, Any], inputs: dict[str, Any]) -> Any:
    if isinstance(output.source, ArraySpec):
        return output.source.make()
    if isinstance(output.source, str):
        where = f"{case.path}: expect.outputs.{name}.expression"
        return np.asarray(evaluate(output.source, inputs, where))
    if name not in expected:
        raise InputError(f"{case.path}: expect.outputs.{name}: nothing says what to expect")
    return expected[name]
