"""``ptxemu test``: every case below some folders, as a regression suite."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from ptxemu.case import find_cases, read_case, run_case
from ptxemu.cli.failure import save_reproducer
from ptxemu.cli.isolation import IsolationError, Limits, is_isolated, isolation_options, limits_of, run_isolated
from ptxemu.cli.options import device_of, device_options
from ptxemu.cli.report import write_json, write_junit
from ptxemu.device.device import Device
from ptxemu.text.errors import Error, Fault, InputError, InternalError, UnsupportedError, printable
from ptxemu.text.files import read_text

PASSED, FAILED, ERROR, UNSUPPORTED, INTERNAL = "passed", "failed", "error", "unsupported", "internal error"
KILLED = "killed"  # an isolated case that died or ran over its time
MAX_REPORT = 64 << 20  # bytes
STATUS_OF_CODE = {Fault.exit_code: FAILED, UnsupportedError.exit_code: UNSUPPORTED, InternalError.exit_code: INTERNAL}
# The exit code of a run is that of its worst case.
CODES = {
    INTERNAL: InternalError.exit_code,
    KILLED: IsolationError.exit_code,
    FAILED: 1,
    ERROR: 2,
    UNSUPPORTED: UnsupportedError.exit_code,
}
STYLES = {PASSED: "green", FAILED: "red", ERROR: "red", UNSUPPORTED: "yellow", INTERNAL: "bold red", KILLED: "bold red"}


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
@isolation_options
def command(
    paths: tuple[Path, ...],
    junit: Path | None,
    json_path: Path | None,
    timeout: float,
    output_dir: Path | None,
    memory: str | None,
    workers: int | None,
    engine: str | None,
    isolate: bool,
    max_memory: str,
    max_seconds: float,
) -> int:
    """Run every case (.toml) at or below PATHS and compare the results. --isolate runs each in a process of its own."""
    cases = find_cases(list(paths))
    if isolate and not is_isolated():
        options = {"--timeout": timeout, "--output-dir": output_dir, "--memory": memory, "--workers": workers, "--engine": engine}
        arguments = [text for name, value in options.items() if value is not None for text in (name, str(value))]
        runner = partial(run_one_isolated, arguments=arguments, limits=limits_of(max_memory, max_seconds))
    else:
        runner = partial(run_one, timeout=timeout, output=output_dir, device=device_of(memory, workers, engine))
    outcomes = _run_all(cases, runner)
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
        python = not is_isolated()
        result = run_case(case, timeout=timeout, output=output, device=device, printf=lambda text: None, python=python)
    except Error as error:
        return outcome(STATUS_OF_CODE.get(error.exit_code, ERROR), str(error))
    except MemoryError:
        return outcome(ERROR, "out of memory")
    except Exception as error:
        save_reproducer(error, ["run", str(path)])
        return outcome(INTERNAL, f"{type(error).__name__}: {error}")
    wrong = [f"{item.name}: {item.message}" for item in result.comparisons if not item.passed]
    return outcome(FAILED if wrong else PASSED, "; ".join(wrong))


def run_one_isolated(path: Path, arguments: list[str], limits: Limits) -> Outcome:
    """Run one case by a command of its own, which reports through a file."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder:
        report = Path(folder, "report.json")
        try:
            code = run_isolated(["test", *arguments, "--json", str(report), "--", str(path)], limits, quiet=True)
            (found,) = json.loads(read_text(report, MAX_REPORT))["cases"]
            title, status, message = found["title"], found["status"], found["message"]
        except IsolationError as error:
            title, status, message = str(path), KILLED, str(error)
        except (InputError, ValueError):  # no report
            title, status, message = str(path), ERROR, f"the isolated command ended with code {code}"
    return Outcome(path, title, status, message, time.perf_counter() - started)


def _run_all(cases: list[Path], runner: Callable[[Path], Outcome]) -> list[Outcome]:
    if not sys.stderr.isatty():
        return [runner(path) for path in cases]
    from rich.console import Console
    from rich.progress import track

    watched = track(cases, description="cases", console=Console(stderr=True), transient=True)
    return [runner(path) for path in watched]


def _show(outcomes: list[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(soft_wrap=True)
    table = Table("case", "result", "seconds", box=None, pad_edge=False)
    for outcome in outcomes:
        result = Text(outcome.status, style=STYLES[outcome.status])
        table.add_row(Text(printable(outcome.title)), result, f"{outcome.seconds:.2f}")
    console.print(table)
    for outcome in outcomes:
        if outcome.message:
            console.print(Text("\n" + printable(f"{outcome.path}: {outcome.status}"), style=STYLES[outcome.status]))
            console.print(Text("\n".join(map(printable, outcome.message.split("\n")))))
    passed = sum(outcome.status == PASSED for outcome in outcomes)
    console.print(Text(f"\n{passed} of {len(outcomes)} passed", style="green" if passed == len(outcomes) else "red"))
