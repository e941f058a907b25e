"""One launch of a kernel, as the options of ``ptxemu run`` describe it."""

from __future__ import annotations

from collections.abc import Sequence
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
from ptxemu.cli.inputs import Inputs, KernelOptions, named_texts, read_inputs, read_wanted
from ptxemu.cli.outcome import Outcome
from ptxemu.cli.programs import read_programs
from ptxemu.cli.progress import Stages
from ptxemu.cli.values import parse_extent
from ptxemu.device.device import Device
from ptxemu.process.locks import importing
from ptxemu.process.stages import COMPILE, INPUTS, LOAD, RUN, stage
from ptxemu.text.errors import Fault, InputError, shown
from ptxemu.text.suggestions import closest
from ptxemu.text.symbols import the_symbol

if TYPE_CHECKING:
    from ptxemu.cli.fidelity import Fidelity


def run_kernel(
    paths: Sequence[Path], options: KernelOptions, timeout: float | None, device: Device, style: str, stages: Stages
) -> int:
    """Run a kernel and show what came of it, as ``text``, ``verbose`` text or ``json``; the exit code."""
    sources = read_programs(paths)
    if options.grid is None or options.block is None:
        raise InputError(f"{paths[-1]}: --grid and --block are needed to run a kernel")
    with stage(INPUTS):
        inputs = read_inputs(options)
        wanted = read_wanted(options, [*inputs.buffers, *inputs.surfaces])
    texts, names = [item.text for item in sources], [item.name for item in sources]
    with stage(LOAD):
        module = loads(texts, filename=names, device=device, strict=bool(options.strict))
    doubts: list[str] = []
    module.warn = partial(_warn, doubts)
    kernel = module[the_symbol(options.entry, module, module.name)]
    with stage(INPUTS):
        resources = Resources(inputs, device)
        _bind(module, options.bind, resources)
        values = _values(kernel, inputs, resources)
    launcher = kernel[parse_extent(options.grid, "--grid"), parse_extent(options.block, "--block")]
    arrays = {name: np.asarray(resources.inputs[name]) for name in (*inputs.buffers, *inputs.surfaces)}
    for text in options.print:
        results.select(text, arrays, "--print")
    with stage(COMPILE):
        launcher.compile()
    printed: list[str] = []
    printf = printed.append if style == "json" else None  # whose object is all of the output
    shared, cooperative = options.shared or 0, bool(options.cooperative)
    with stage(RUN):
        done = launcher(*values, shared=shared, timeout=timeout, cooperative=cooperative, printf=printf)
    outcome = Outcome(kernel.name, done, resources, wanted, options.print, _fidelity(kernel) if options.fidelity else None)
    outcome.save()
    if style == "json":
        outcome.show_json(stages.seconds, "".join(printed), [*done.warnings, *doubts], checked.facts(device))
    else:
        outcome.show(stages.seconds if style == "verbose" else {})
    for text in done.warnings:
        say(f"warning: {text}", err=True)
    return 0 if outcome.passed else Fault.exit_code


def _fidelity(kernel: Kernel) -> Fidelity:
    with importing:
        from ptxemu.cli.fidelity import fidelity_of_kernel

    return fidelity_of_kernel(kernel)


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
