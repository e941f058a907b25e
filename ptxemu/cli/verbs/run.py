"""``ptxemu run``: one kernel, or a case file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from ptxemu.api import Kernel, loads
from ptxemu.case import CaseResult, case_file, read_case, run_case
from ptxemu.case.arrays import SUFFIXES, save_array
from ptxemu.case.bindings import in_order
from ptxemu.cli.isolation import is_isolated, isolable
from ptxemu.cli.options import device_of, device_options
from ptxemu.cli.programs import read_programs
from ptxemu.cli.values import Value, parse_extent, parse_value, split_pair
from ptxemu.device.device import Device
from ptxemu.text.errors import Fault, InputError, printable
from ptxemu.text.symbols import the_symbol

KERNEL_OPTIONS = ("entry", "grid", "block", "arg", "out", "shared", "cooperative")


@click.command("run")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--entry", metavar="NAME", help="The kernel; needed if the file has several.")
@click.option("--grid", metavar="X[xYxZ]", help="Blocks of the grid.")
@click.option("--block", metavar="X[xYxZ]", help="Threads of a block.")
@click.option("--arg", multiple=True, metavar="NAME=VALUE", help="An argument: a number, @x.npy, zeros:f32:1024 ...")
@click.option("--out", multiple=True, metavar="NAME=FILE", help="Save an array argument as .npy or .png afterwards.")
@click.option("--shared", type=int, metavar="BYTES", help="Dynamic shared memory.")
@click.option("--cooperative", is_flag=True, default=None, help="All blocks are resident and may wait for each other.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop a launch that takes longer.")
@click.option("--output-dir", type=click.Path(path_type=Path), default=Path(), help="Where a case saves its results.")
@device_options
@isolable
def command(
    paths: tuple[Path, ...],
    entry: str | None,
    grid: str | None,
    block: str | None,
    arg: tuple[str, ...],
    out: tuple[str, ...],
    shared: int | None,
    cooperative: bool | None,
    timeout: float | None,
    output_dir: Path,
    memory: str | None,
    workers: int | None,
    engine: str | None,
) -> int:
    """Run a kernel of a program, or a case (a .toml file, or a folder with one), or a program as a case says.

    A program may be several PTX files, which are linked.

    \b
      ptxemu run saxpy.ptx --grid 4 --block 256 --arg n=1024 --arg a=2.0 \\
          --arg x=@x.npy --arg y=zeros:f32:1024 --out y=y.npy
      ptxemu run samples/saxpy
      ptxemu run scatter.sass case.toml

    Arguments are named as in the PTX, by number from 0, or by any names in the kernel's order.
    """
    device = device_of(memory, workers, engine)
    *programs, last = paths
    if last.is_dir() or last.suffix == ".toml":
        _refuse_kernel_options(entry, grid, block, arg, out, shared, cooperative)
        return _run_case(last, tuple(programs), timeout, output_dir, device)
    if grid is None or block is None:
        raise InputError(f"{last}: --grid and --block are needed to run a kernel")
    kernel = _kernel(paths, entry, device)
    return _run_kernel(kernel, grid, block, arg, out, shared or 0, bool(cooperative), timeout)


def _run_kernel(
    kernel: Kernel,
    grid: str,
    block: str,
    arg: tuple[str, ...],
    out: tuple[str, ...],
    shared: int,
    cooperative: bool,
    timeout: float | None,
) -> int:
    named = _arguments(arg)
    outputs = dict(split_pair(text, "--out") for text in out)
    for name, file in outputs.items():
        if not isinstance(named.get(name), np.ndarray):
            raise InputError(f"--out {name}={file}: --arg {name} is not an array")
        if Path(file).suffix not in SUFFIXES:
            raise InputError(f"--out {name}={file}: must end in {' or '.join(SUFFIXES)}")
    values = in_order(kernel.info, named, "--arg")
    launcher = kernel[parse_extent(grid, "--grid"), parse_extent(block, "--block")]
    result = launcher(*values, shared=shared, timeout=timeout, cooperative=cooperative)
    click.echo(f"{kernel.name}: {result.ctas} blocks in {_duration(result.seconds)}")
    _warn(result.warnings)
    for name, file in outputs.items():
        array = named[name]
        assert isinstance(array, np.ndarray)
        save_array(Path(file), array, f"--out {name}")
        click.echo(f"  {name}: {array.dtype.name}{list(array.shape)} saved to {file}")
    return 0


def _run_case(path: Path, programs: tuple[Path, ...], timeout: float | None, output: Path, device: Device) -> int:
    case = read_case(case_file(path))
    if programs:
        case = replace(case, programs=programs)
    result = run_case(case, timeout=timeout, output=output, device=device, python=not is_isolated())
    click.echo(f"{printable(case.title)}: {_verdict(result)}, {_duration(result.seconds)} in {len(case.launches)} launch(es)")
    _warn(result.warnings)
    for comparison in result.comparisons:
        mark = "ok" if comparison.passed else "FAILED"
        array = result.arrays[comparison.name]
        detail = f" ({comparison.message})" if comparison.message else ""
        click.echo(f"  {comparison.name}: {array.dtype.name}{list(array.shape)} {mark}{detail}")
    for file in result.saved:
        click.echo(f"  saved {file}")
    return 0 if result.passed else Fault.exit_code


def _warn(warnings: list[str]) -> None:
    for text in warnings:
        click.echo(f"warning: {text}", err=True)


def _verdict(result: CaseResult) -> str:
    if not result.comparisons:
        return "ran (nothing to compare)"
    return "passed" if result.passed else "FAILED"


def _kernel(paths: tuple[Path, ...], entry: str | None, device: Device) -> Kernel:
    sources = read_programs(paths)
    module = loads([item.text for item in sources], filename=[item.name for item in sources], device=device)
    return module[the_symbol(entry, module, module.name)]


def _arguments(texts: tuple[str, ...]) -> dict[str, Value]:
    named: dict[str, Value] = {}
    for text in texts:
        name, value = split_pair(text, "--arg")
        if name in named:
            raise InputError(f"--arg {name} is given twice")
        named[name] = parse_value(value, f"--arg {name}")
    return named


def _refuse_kernel_options(*values: object) -> None:
    for name, value in zip(KERNEL_OPTIONS, values, strict=True):
        if value not in (None, ()):
            raise InputError(f"--{name} cannot be given with a case file, which sets it")


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
