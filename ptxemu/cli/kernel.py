"""One launch of a kernel, as the options of ``ptxemu run`` describe it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptxemu.api import Kernel, Module, loads
from ptxemu.case.arguments import Name
from ptxemu.case.bindings import bind, in_order
from ptxemu.case.resources import Resources
from ptxemu.cli import checked, results
from ptxemu.cli.colours import say
from ptxemu.cli.extents import parse_extent
from ptxemu.cli.inputs import Inputs, KernelOptions, named_texts, read_inputs, read_wanted
from ptxemu.cli.outcome import Outcome
from ptxemu.cli.programs import LINES, read_programs
from ptxemu.cli.progress import Stages
from ptxemu.device.device import Device
from ptxemu.device.launch import LaunchResult
from ptxemu.process.locks import importing
from ptxemu.process.stages import COMPILE, INPUTS, LOAD, RUN, stage
from ptxemu.text.errors import Fault, InputError, shown
from ptxemu.text.suggestions import closest
from ptxemu.text.symbols import the_symbol

if TYPE_CHECKING:
    from ptxemu.cli.fidelity import Executions, Fidelity


class GivenKernel:
    """Programs and what the options of a command give to a kernel of theirs. Reads all that they name."""

    def __init__(self, paths: Sequence[Path], options: KernelOptions, debug: str = LINES) -> None:
        self.options, self.title = options, str(paths[-1])
        self.resources: Resources | None = None
        self.sources = read_programs(paths, debug)
        if options.grid is None or options.block is None:
            raise InputError(f"{paths[-1]}: --grid and --block are needed to run a kernel")
        self.grid, self.block = options.grid, options.block
        with stage(INPUTS):
            self.inputs = read_inputs(options)

    def on(self, device: Device) -> LoadedKernel:
        """The kernel on a device, with arrays of its own."""
        return LoadedKernel(self, device)

    def run(self, device: Device, timeout: float | None, printf: Callable[[str], None] | None) -> list[str]:
        """Launch it once, in another way than to see its results; warnings."""
        loaded = self.on(device)
        self.resources = loaded.resources
        return loaded.launch(timeout, printf).warnings


class LoadedKernel:
    def __init__(self, given: GivenKernel, device: Device) -> None:
        self._given = given
        texts, names = [item.text for item in given.sources], [item.name for item in given.sources]
        with stage(LOAD):
            module = loads(texts, filename=names, device=device, strict=bool(given.options.strict))
        self.doubts: list[str] = []
        module.warn = partial(_warn, self.doubts)
        self.kernel = module[the_symbol(given.options.entry, module, module.name)]
        with stage(INPUTS):
            self.resources = Resources(given.inputs, device)
            _bind(module, given.options.bind, self.resources)
            self._values = _values(self.kernel, given.inputs, self.resources)
        self.launcher = self.kernel[parse_extent(given.grid, "--grid"), parse_extent(given.block, "--block")]

    def launch(self, timeout: float | None, printf: Callable[[str], None] | None) -> LaunchResult:
        options = self._given.options
        shared, cooperative = options.shared or 0, bool(options.cooperative)
        cluster = None if options.cluster is None else parse_extent(options.cluster, "--cluster")
        with stage(RUN):
            return self.launcher(
                *self._values, shared=shared, timeout=timeout, cooperative=cooperative, cluster=cluster, printf=printf
            )


def run_kernel(
    paths: Sequence[Path],
    options: KernelOptions,
    timeout: float | None,
    device: Device,
    style: str,
    stages: Stages,
    executions: Executions | None = None,
) -> int:
    """Run a kernel and show what came of it, as ``text``, ``verbose`` text or ``json``; the exit code."""
    given = GivenKernel(paths, options)
    inputs = given.inputs
    with stage(INPUTS):
        wanted = read_wanted(options, [*inputs.buffers, *inputs.surfaces])
    loaded = given.on(device)
    resources, kernel = loaded.resources, loaded.kernel
    arrays = {name: np.asarray(resources.inputs[name]) for name in (*inputs.buffers, *inputs.surfaces)}
    for text in options.print:
        results.select(text, arrays, "--print")
    with stage(COMPILE):
        loaded.launcher.compile()
    printed: list[str] = []
    printf = printed.append if style == "json" else None  # whose object is all of the output
    done = loaded.launch(timeout, printf)
    fidelity = fidelity_of(kernel, executions) if options.fidelity else None
    outcome = Outcome(kernel.name, done, resources, wanted, options.print, fidelity)
    outcome.save()
    if style == "json":
        outcome.show_json(stages.seconds, "".join(printed), [*done.warnings, *loaded.doubts], checked.facts(device))
    else:
        outcome.show(stages.seconds if style == "verbose" else {})
    for text in done.warnings:
        say(f"warning: {text}", err=True)
    return 0 if outcome.passed else Fault.exit_code


def fidelity_of(kernel: Kernel, executions: Executions | None) -> Fidelity:
    """What is known of the bits of its results, and if that was counted, how often threads executed what makes them."""
    with importing:
        from ptxemu.cli.fidelity import fidelity_of_kernel

    return fidelity_of_kernel(kernel, executions)


def _bind(module: Module, texts: Sequence[str], resources: Resources) -> None:
    """Bind variables as ``--bind`` says, and the others that are called as something that is given."""
    bound = named_texts(texts, "--bind", lambda _, text: text)
    for variable, name in bound.items():
        if name not in resources.handles:
            known = closest(name, resources.handles)
            raise InputError(f"--bind {variable}: no surface, texture or sampler is named {shown(name)}{known}")
        bind(module, variable, resources.handles[name], f"--bind {variable}")
    explicit = {variable.partition("[")[0] for variable in bound}
    for name in module.info.handles:
        if name in resources.handles and name not in explicit:
            bind(module, name, resources.handles[name], f"variable {name}")


def _values(kernel: Kernel, inputs: Inputs, resources: Resources) -> list[object]:
    """The arguments in the kernel's order. A parameter that is called as an image that is given gets that."""
    named = dict(inputs.args)
    for parameter in kernel.info.parameters:
        if parameter.name in resources.handles:
            named.setdefault(parameter.name, Name(parameter.name))
    pairs = zip(in_order(kernel.info, named, "--arg"), kernel.info.parameters, strict=True)
    return [resources.value(value, parameter.elements is not None) for value, parameter in pairs]


def _warn(doubts: list[str], text: str) -> None:
    """Tell of a doubt at once, as the launch may fail for it."""
    doubts.append(text)
    say(f"warning: {text}", err=True)
