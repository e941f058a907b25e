"""``ptxemu test``: every case below some folders, as a regression suite."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from ptxemu.case import find_cases
from ptxemu.cli.bars import cases_bar
from ptxemu.cli.checked import check_option
from ptxemu.cli.isolation import Limits, is_isolated, isolation_options, limits_of
from ptxemu.cli.options import PROCESSES, DeviceChoice, device_options, timeout_option
from ptxemu.cli.suite.cluster import run_on_dask
from ptxemu.cli.suite.html_report import write_html
from ptxemu.cli.suite.one_case import Settings, run_one, run_one_isolated
from ptxemu.cli.suite.outcome import (
    ERROR,
    EXPECTED,
    FAILED,
    FLAWED,
    INTERNAL,
    KILLED,
    PASSED,
    SKIPPED,
    UNSUPPORTED,
    UPDATED,
    CaseOutcome,
    exit_code,
    told,
)
from ptxemu.cli.suite.pool import run_in_processes
from ptxemu.cli.suite.report import write_json, write_junit, write_sarif
from ptxemu.cli.suite.selection import failed_before, remember, select
from ptxemu.cli.suite.update import updated
from ptxemu.text.errors import InputError, printable, printable_lines

STYLES = {
    PASSED: "green",
    FAILED: "red",
    FLAWED: "red",
    ERROR: "red",
    UNSUPPORTED: "yellow",
    SKIPPED: "yellow",
    EXPECTED: "yellow",
}
STYLES |= {INTERNAL: "bold red", KILLED: "bold red", UPDATED: "yellow"}
WIDTH = max(map(len, STYLES))


@click.command("test")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-j", "--jobs", type=PROCESSES, default=1, show_default=True, help="Processes.")
@click.option("--dask", metavar="ADDRESS|local", help="Run the cases on a cluster of Dask, or on processes of this machine.")
@click.option("-k", "texts", multiple=True, metavar="TEXT", help="Cases with TEXT in their path or title; 'not TEXT': without.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Cases that have one of these tags.")
@click.option("--last-failed", is_flag=True, help="Cases that failed when they last ran; all, if none did.")
@click.option("--list", "only_list", is_flag=True, help="Print the cases that would run.")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first case that fails.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write the results as JUnit XML.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the results as JSON.")
@click.option("--sarif", type=click.Path(path_type=Path), metavar="FILE", help="Write what --check finds as SARIF.")
@click.option("--html", type=click.Path(path_type=Path), metavar="DIR", help="Write a page with all results to DIR.")
@click.option("--exhibits", is_flag=True, hidden=True, help="Let --json have what --html shows.")
@click.option("--update", is_flag=True, help="Record the arrays in files that differ, after the differences are shown.")
@timeout_option
@click.option("--output-dir", type=click.Path(path_type=Path), help="Save the results that cases ask to save.")
@click.option("--max-case-seconds", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Kill a case after so long.")
@device_options
@check_option
@isolation_options
def command(
    paths: tuple[Path, ...],
    jobs: int,
    dask: str | None,
    texts: tuple[str, ...],
    tags: tuple[str, ...],
    last_failed: bool,
    only_list: bool,
    exitfirst: bool,
    junit: Path | None,
    json_path: Path | None,
    sarif: Path | None,
    html: Path | None,
    exhibits: bool,
    update: bool,
    timeout: float,
    output_dir: Path | None,
    max_case_seconds: float | None,
    device: DeviceChoice,
    isolate: bool,
    max_memory: str,
    max_seconds: float,
) -> int:
    """Run every case (.toml) at or below PATHS and compare the results. --isolate runs each in a process of its own."""
    cases = select(find_cases(list(paths)), texts, tags)
    cases = failed_before(cases) if last_failed else cases
    if only_list:
        for path in cases:
            click.echo(str(path))
        return 0
    if update and isolate:
        raise InputError("--update writes what cases compute, which --isolate does not trust")
    if sarif is not None and not device.check:
        raise InputError("--sarif writes what --check finds: give that, too")
    if dask is not None and device.check:
        raise InputError("--check watches launches of one process, not those of --dask")
    if dask is not None and isolate:
        raise InputError("--dask runs cases on workers that keep on, --isolate in processes of their own: give one")
    if max_case_seconds is not None and (isolate or dask is not None):
        raise InputError("--max-case-seconds is for cases in processes of this machine; --isolate has --max-seconds")
    settings = Settings(timeout, output_dir, device, exhibits or html is not None)
    limits = limits_of(max_memory, max_seconds) if isolate and not is_isolated() else None
    suite = _Suite(len(cases), exitfirst)
    try:
        suite.run(_outcomes(cases, settings, jobs, limits, dask, max_case_seconds))
        if update:
            suite.update(settings)
    finally:  # what ran is told whatever ended it
        if not is_isolated():
            remember(suite.outcomes)
        suite.summarize()
        if junit is not None:
            write_junit(junit, suite.outcomes)
        if json_path is not None:
            write_json(json_path, suite.outcomes, exhibits, to_read=is_isolated())
        if sarif is not None:
            write_sarif(sarif, suite.outcomes)
        if html is not None:
            write_html(html, suite.outcomes)
    return exit_code(suite.outcomes)


def _outcomes(
    cases: Sequence[Path], settings: Settings, jobs: int, limits: Limits | None, dask: str | None, seconds: float | None
) -> Iterator[CaseOutcome]:
    """What becomes of the cases, as they end."""
    if dask is not None:
        yield from run_on_dask(cases, settings, dask, jobs)
    elif limits is not None:
        threads = ThreadPoolExecutor(jobs)
        try:
            yield from threads.map(partial(run_one_isolated, settings=settings, limits=limits), cases)
        finally:
            threads.shutdown(cancel_futures=True)
    elif jobs > 1 or seconds is not None:
        yield from run_in_processes(cases, settings, jobs, seconds)
    else:
        device = settings.device.make()
        for path in cases:
            yield run_one(path, settings, device)


class _Suite:
    """The outcomes so far, each told when it comes."""

    def __init__(self, count: int, stops: bool) -> None:
        self.outcomes: list[CaseOutcome] = []
        self._count, self._stops = count, stops
        self._started = time.perf_counter()
        self._console = Console(soft_wrap=True, highlight=False)

    def run(self, outcomes: Iterator[CaseOutcome]) -> None:
        with cases_bar() as progress:
            bar = progress.add_task("cases", total=self._count)
            console = progress.console if sys.stdout.isatty() and not progress.disable else self._console
            for outcome in outcomes:
                self.outcomes.append(outcome)
                _tell(console, outcome)
                progress.advance(bar)
                if self._stops and not outcome.fine:
                    break

    def update(self, settings: Settings) -> None:
        """Record anew what differs from what is recorded."""
        device = settings.device.make()
        self.outcomes = [updated(outcome, settings, device) for outcome in self.outcomes]

    def summarize(self) -> None:
        """What went wrong, and how many cases passed."""
        for outcome in self.outcomes:
            if outcome.message:
                title = f"\n{printable(str(outcome.path))}: {outcome.status}"
                self._console.print(Text(title, style=STYLES[outcome.status]))
                self._console.print(Text(printable_lines(outcome.message)))
        rest = self._count - len(self.outcomes)
        text = f"\n{told(self.outcomes)}" + (f", {rest} did not run" if rest else "")
        fine = not rest and all(outcome.fine for outcome in self.outcomes)
        seconds = time.perf_counter() - self._started
        self._console.print(Text(f"{text} in {seconds:.2f} s", style="green" if fine else "red"))


def _tell(console: Console, outcome: CaseOutcome) -> None:
    line = Text(f"{outcome.status:{WIDTH}}", style=STYLES[outcome.status])
    line.append(f" {outcome.seconds:7.2f} s  ", style="default")
    line.append(printable(_named(outcome)), style="default")
    console.print(line, soft_wrap=True)


def _named(outcome: CaseOutcome) -> str:
    """A case's path, and its title if that says more."""
    said = {str(outcome.path), outcome.path.stem, outcome.path.parent.name}
    return str(outcome.path) + (f"  {outcome.title}" if outcome.title not in said else "")
