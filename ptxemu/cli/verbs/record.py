"""``ptxemu record``: writes the results that cases expect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from ptxemu.case import Case, find_cases, read_case, run_case
from ptxemu.case.arrays import Array
from ptxemu.case.command import run_command
from ptxemu.case.compare import compare
from ptxemu.case.gpu import run_on_gpu
from ptxemu.case.recording import Recorded, changed, expect_files, provenance, record, recorded, told
from ptxemu.case.sources import ArraySpec
from ptxemu.case.tolerance import Tolerance
from ptxemu.cli.options import DeviceChoice, device_options
from ptxemu.cli.suite.update import made_here
from ptxemu.device.device import Device
from ptxemu.text.errors import InputError, printable
from ptxemu.text.json_text import json_text

EMULATOR, CUDA = "emulator", "cuda"
Made = tuple[dict[str, Array], dict[str, str]]
"""Arrays by name, and who made them."""


@click.command("record")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--from", "maker", type=click.Choice((EMULATOR, CUDA)), default=EMULATOR, show_default=True, help="What runs them.")
@click.option("--library", metavar="FILE", help="The CUDA driver for --from cuda; by default libcuda.so.1 of the system.")
@click.option("--from-command", "executable", metavar="COMMAND", help="A command that makes {outputs}/NAME.npy of {inputs}.")
@click.option(
    "--timeout", type=float, default=60.0, show_default=True, help="Seconds, for a command, or a launch that states none."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@device_options
def command(
    paths: tuple[Path, ...],
    maker: str,
    library: str | None,
    executable: str | None,
    timeout: float,
    as_json: bool,
    device: DeviceChoice,
) -> int:
    """Run every case at or below PATHS, and write what comes out to the .npy and .png files that it compares with.

    \b
      ptxemu record samples/saxpy                       # from this emulator
      ptxemu record --from cuda cases/                  # from a GPU
      ptxemu record --from-command './saxpy {inputs} {outputs}' saxpy.toml

    A case that expects nothing yet gets files for the arrays that its kernels change. Who made a file, when, and of which
    program is kept beside it in NAME.npy.json.
    """
    if executable is not None:
        make = partial(run_command, command=executable, timeout=timeout)
    elif maker == CUDA:
        make = partial(run_on_gpu, library=library, timeout=timeout)
    else:
        make = partial(_run, device=device.make(), timeout=timeout)
    made = []
    for path in find_cases(list(paths)):
        made.append(_record(path, make))
        if not as_json:
            _show(made[-1])
    if as_json:
        click.echo(json_text(made))
    return 0


def _run(case: Case, device: Device, timeout: float) -> Made:
    return run_case(case, device=device, timeout=timeout, checks=False).arrays, made_here(device)


def _record(path: Path, make: Callable[[Case], Made]) -> dict[str, Any]:
    """Record the results of a case. What was made, as JSON data: ``change`` is new, as before, or how it differs."""
    case = read_case(path)
    if case.checks and not recorded(case):
        raise InputError(f"{case.path}: expects what is computed, so there is nothing to record")
    arrays, about = make(case)
    if not case.checks:
        names = changed(case, arrays)
        if not names:
            raise InputError(f"{case.path}: nothing changes an array of the case, so there is nothing to record")
        expect_files(path, names)
        case = read_case(path)
    changes = {file.name: _difference(case, file, arrays) for file in recorded(case)}
    files = [
        {
            "name": file.name,
            "file": str(file.path),
            "dtype": arrays[file.name].dtype.name,
            "shape": list(arrays[file.name].shape),
            "change": changes[file.name],
        }
        for file in record(case, arrays, about)
    ]
    return {"case": str(path), "by": about, "files": files}


def _show(made: dict[str, Any]) -> None:
    click.echo(f"{printable(made['case'])}: by {printable(told(made['by']))}")
    for file in made["files"]:
        array = f"{file['name']}: {file['dtype']}{file['shape']}"
        click.echo(f"  {printable(array)} in {printable(file['file'])} ({printable(file['change'])})")


def _difference(case: Case, file: Recorded, arrays: dict[str, Array]) -> str:
    """How an array differs from what is recorded, and who recorded that."""
    if not file.path.exists() or file.name not in arrays:
        return "new"
    source = case.outputs[file.name].source
    assert isinstance(source, ArraySpec)
    comparison = compare(file.name, arrays[file.name], source.make(), Tolerance())
    if comparison.passed:
        return "as before"
    return f"was by {told(provenance(file))}: {comparison.message}"
