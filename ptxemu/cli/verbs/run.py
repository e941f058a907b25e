"""``ptxemu run``: one kernel, or a case file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict, replace

from ptxemu.case import Case, CaseResult, run_case
from ptxemu.cli import checked, results
from ptxemu.cli.checked import check_option
from ptxemu.cli.colours import say
from ptxemu.cli.inputs import KernelOptions
from ptxemu.cli.isolation import is_isolated, isolable
from ptxemu.cli.kernel import fidelity_of, run_kernel
from ptxemu.cli.options import PROCESSES, DeviceChoice, device_options, launch_options
from ptxemu.cli.outcome import duration, show_array, show_stages, verdict
from ptxemu.cli.progress import Stages, watched
from ptxemu.cli.subject import given_case, is_case
from ptxemu.device.device import Device
from ptxemu.process.locks import importing
from ptxemu.text.errors import Fault, InputError, printable
from ptxemu.text.json_text import json_text
from ptxemu.text.symbols import plain_name

if TYPE_CHECKING:
    from ptxemu.api import Kernel
    from ptxemu.case.runner import CaseRun
    from ptxemu.cli.fidelity import Executions
    from ptxemu.cli.suite.spread import Spread
    from ptxemu.device.launch import LaunchResult

    Launch = Callable[[CaseRun, int], LaunchResult]


INTERPRETER = "interpreter"


@click.command("run")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@launch_options
@click.option("--out", multiple=True, metavar="NAME=FILE", help="Save an array or a surface as .npy or .png afterwards.")
@click.option("--print", "print_", multiple=True, metavar="NAME[INDEX]", help="Show an array or a surface, or a part of it.")
@click.option("--expect", multiple=True, metavar="NAME=VALUE", help="What an array or a surface must be afterwards.")
@click.option("--tolerance", metavar="LIMITS", help="How far floats may be off: abs=1e-6,rel=1e-5,ulp=2.")
@click.option("--fidelity", is_flag=True, default=None, help="Interpret, and say how often it executed what of known bits.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop a launch that takes longer.")
@click.option("--output-dir", type=click.Path(path_type=Path), default=Path(), help="Where a case saves its results.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Also print what took how long.")
@click.option("--dask", metavar="ADDRESS|local", help="Spread the launches of a case over the workers of Dask.")
@click.option("-j", "--jobs", type=PROCESSES, default=2, show_default=True, help="Processes of --dask local.")
@click.option("--sarif", type=click.Path(path_type=Path), metavar="FILE", help="Write what --check finds as SARIF.")
@device_options
@check_option
@isolable
def command(
    paths: tuple[Path, ...],
    timeout: float | None,
    sarif: Path | None,
    output_dir: Path,
    as_json: bool,
    verbose: bool,
    dask: str | None,
    jobs: int,
    device: DeviceChoice,
    launch: KernelOptions,
    print_: tuple[str, ...],
    **wanted: Any,
) -> int:
    """Run a kernel of a program, or a case (a .toml file, or a folder with one), or a program as a case says.

    A program may be several PTX files, which are linked.

    \b
      ptxemu run saxpy.ptx --grid 4 --block 256 --arg n=1024 --arg a=2.0 \\
          --arg x=@x.npy --arg y=zeros:f32:1024 --out y=y.npy
      ptxemu run samples/saxpy
      ptxemu run scatter.sass case.toml

    Arguments are named as in the PTX, by number from 0, or by any names in the kernel's order. The value of one may be
    the name of a buffer, surface, texture or sampler. Those that are called as a parameter or a variable belong to it.

    \b
      ptxemu run filter.ptx --grid 40x30 --block 16x16 --arg width=640 \\
          --surface in=@in.png:R8G8B8A8_UNORM --surface out=zeros:640x480:R8G8B8A8_UNORM \\
          --texture t=@photo.png:linear:wrap:normalized --out out=result.png
    """
    options = replace(launch, print=print_, **wanted)
    style = "json" if as_json else "verbose" if verbose else "text"
    *programs, last = paths
    counted = bool(options.fidelity) and dask is None and device.check is None and device.engine in (None, INTERPRETER)
    made = (replace(device, engine=INTERPRETER) if counted else device).make()
    if sarif is not None and made.checks is None:
        raise InputError("--sarif writes what --check finds: give that, too")
    with watched() as stages, ExitStack() as held, checked.reported(made, sarif):
        executions = held.enter_context(_counting()) if counted else None
        if not is_case(last):
            if dask is not None:
                raise InputError("--dask spreads the launches of a case: describe the launch in a .toml file")
            return checked.exit_code(made, run_kernel(paths, options, timeout, made, style, stages, executions))
        case = given_case(paths, options)
        if dask is not None and (programs or is_isolated()):
            raise InputError("--dask runs the program that the case names, and not with --isolate")
        if dask is not None and made.checks is not None:
            raise InputError("--check watches launches of one process, not those of --dask")
        spread = None if dask is None else _spread(last, device, dask, jobs, timeout, held)
        return checked.exit_code(made, _run_case(case, timeout, output_dir, made, options, style, stages, spread, executions))


def _counting() -> AbstractContextManager[Executions]:
    with importing:
        from ptxemu.cli.fidelity import counting

    return counting()


def _spread(path: Path, device: DeviceChoice, dask: str, jobs: int, timeout: float | None, held: ExitStack) -> Spread:
    from ptxemu.cli.suite.spread import Spread  # few launches need it

    return Spread(path, device, dask, jobs, timeout, held)


def _run_case(
    case: Case,
    timeout: float | None,
    output: Path,
    device: Device,
    options: KernelOptions,
    style: str,
    stages: Stages,
    spread: Spread | None,
    executions: Executions | None,
) -> int:
    said: list[str] = []
    printf = said.append if style == "json" else None  # whose object is all of the output
    launch: Launch | None = None if spread is None else partial(spread.launch, printf=printf or partial(click.echo, nl=False))
    kernels: dict[str, Kernel] = {}
    if options.fidelity:
        launch = _noting(kernels, launch or (lambda run, number: run.launch(case.launches[number], timeout, printf)))
    result = run_case(case, timeout=timeout, output=output, device=device, python=not is_isolated(), printf=printf, launch=launch)
    parts = spread.times if spread is not None else []
    selected = [results.select(text, result.arrays, "--print") for text in options.print]
    fidelity = {plain_name(name): fidelity_of(kernel, executions) for name, kernel in kernels.items()}
    if style == "json":
        facts = {
            **_facts(result),
            "stages": stages.seconds,
            "parts": list(map(asdict, parts)),
            "output": "".join(said),
            "printed": {name: array.tolist() for name, array in selected},
            **({"fidelity": {name: known.counts for name, known in fidelity.items()}} if options.fidelity else {}),
            **({} if executions is None else {"executed": {name: known.executed for name, known in fidelity.items()}}),
            **checked.facts(device),
        }
        click.echo(json_text(facts))
    else:
        _show(result, stages.seconds if style == "verbose" else {})
        for name, known in fidelity.items():
            click.echo(f"  {name}: {known.line}")
        for part in parts:
            times = f"{duration(part.seconds)} in the kernel, {duration(part.wall_seconds)} in all"
            click.echo(f"  launch {part.launch}, blocks {part.first} to {part.end - 1} on {part.worker}: {times}")
        for name, array in selected:
            show_array(name, array)
    for text in result.warnings:
        say(f"warning: {text}", err=True)
    return 0 if result.passed else Fault.exit_code


def _noting(kernels: dict[str, Kernel], launch: Launch) -> Launch:
    """``launch`` that adds what it launches."""

    def noted(run: CaseRun, number: int) -> LaunchResult:
        kernel = run.launcher(run.case.launches[number]).kernel
        kernels[kernel.name] = kernel
        return launch(run, number)

    return noted


def _show(result: CaseResult, stages: Mapping[str, float]) -> None:
    case = result.case
    click.echo(f"{printable(case.title)}: {_verdict(result)}, {duration(result.seconds)} in {len(case.launches)} launch(es)")
    show_stages(stages)
    for comparison in result.comparisons:
        click.echo(f"  {verdict(comparison, result.arrays[comparison.name])}")
    for file in result.saved:
        click.echo(f"  saved {file}")


def _facts(result: CaseResult) -> dict[str, Any]:
    """What came of a case, as JSON data."""
    return {
        "case": str(result.case.path),
        "title": result.case.title,
        "launches": len(result.case.launches),
        "seconds": result.seconds,
        "wall_seconds": result.wall_seconds,
        "warnings": result.warnings,
        "comparisons": [asdict(comparison) for comparison in result.comparisons],
        "saved": [str(file) for file in result.saved],
        "passed": result.passed,
    }


def _verdict(result: CaseResult) -> str:
    if not result.comparisons:
        return "ran (nothing to compare)"
    return "passed" if result.passed else "FAILED"
