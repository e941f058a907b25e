"""``ptxemu test``: every case below some folders, as a regression suite."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

from ptxemu.case import find_cases, read_case, run_case
from ptxemu.cli.failure import save_reproducer
from ptxemu.cli.options import device_of, device_options
from ptxemu.cli.report import write_json, write_junit
from ptxemu.device import Device
from ptxemu.errors import Error, Fault, InternalError, UnsupportedError

PASSED, FAILED, ERROR, UNSUPPORTED, INTERNAL = "passed", "failed", "error", "unsupported", "internal error"
STATUS_OF_CODE = {Fault.exit_code: FAILED, UnsupportedError.exit_code: UNSUPPORTED, InternalError.exit_code: INTERNAL}
# The exit code of a run is that of its worst case.
CODES = {INTERNAL: InternalError.exit_code, FAILED: 1, ERROR: 2, UNSUPPORTED: UnsupportedError.exit_code}
STYLES = {PASSED: "green", FAILED: "red", ERROR: "red", UNSUPPORTED: "yellow", INTERNAL: "bold red"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case file."""

    path: Path
    title: str
    status: str
    message: str
    seconds: float


@click.command("test")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--junit", type=click.Path(path_type=Path), help="Write the results as JUnit XML.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the results as JSON.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds, for launches that state none.")
@click.option("--output-dir", type=click.Path(path_type=Path), help="Save the results that cases ask to save.")
@device_options
def command(
    paths: tuple[Path, ...],
    junit: Path | None,
    json_path: Path | None,
    timeout: float,
    output_dir: Path | None,
    memory: str | None,
    workers: int | None,
) -> int:
    """Run every case (.toml) at or below PATHS and compare the results."""
    device = device_of(memory, workers)
    outcomes = _run_all(find_cases(list(paths)), timeout, output_dir, device)
    _show(outcomes)
    if junit is not None:
        write_junit(junit, outcomes)
    if json_path is not None:
        write_json(json_path, outcomes)
    found = {outcome.status for outcome in outcomes}
    return next((code for status, code in CODES.items() if status in found), 0)


def run_one(path: Path, timeout: float, output: Path | None, device: Device) -> Outcome:
    """Run one case; nothing that goes wrong in it stops the others."""
    started = time.perf_counter()
    title = str(path)

    def outcome(status: str, message: str) -> Outcome:
        return Outcome(path, title, status, message, time.perf_counter() - started)

    try:
        case = read_case(path)
        title = case.title
        if not case.checks:
            return outcome(ERROR, f"{path}: expect: is missing, so nothing would be checked")
        result = run_case(case, timeout=timeout, output=output, device=device, printf=lambda text: None)
    except Error as error:
        return outcome(STATUS_OF_CODE.get(error.exit_code, ERROR), str(error))
    except Exception as error:
        save_reproducer(error, ["run", str(path)])
        return outcome(INTERNAL, f"{type(error).__name__}: {error}")
    wrong = [f"{item.name}: {item.message}" for item in result.comparisons if not item.passed]
    return outcome(FAILED if wrong else PASSED, "; ".join(wrong))


def _run_all(cases: list[Path], timeout: float, output: Path | None, device: Device) -> list[Outcome]:
    if not sys.stderr.isatty():
        return [run_one(path, timeout, output, device) for path in cases]
    from rich.console import Console
    from rich.progress import track

    watched = track(cases, description="cases", console=Console(stderr=True), transient=True)
    return [run_one(path, timeout, output, device) for path in watched]


def _show(outcomes: list[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=True)
    table = Table("case", "result", "seconds", box=None, pad_edge=False)
    for outcome in outcomes:
        result = Text(outcome.status, style=STYLES[outcome.status])
        table.add_row(Text(outcome.title), result, f"{outcome.seconds:.2f}")
    console.print(table)
    for outcome in outcomes:
        if outcome.message:
            console.print(Text(f"\n{outcome.path}: {outcome.status}", style=STYLES[outcome.status]))
            console.print(Text(outcome.message))
    passed = sum(outcome.status == PASSED for outcome in outcomes)
    console.print(Text(f"\n{passed} of {len(outcomes)} passed", style="green" if passed == len(outcomes) else "red"))
