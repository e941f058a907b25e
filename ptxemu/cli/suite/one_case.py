"""Running one case of a suite: nothing that goes wrong in it stops the others."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.case import Case, CaseResult, read_case, run_case
from ptxemu.case.compare import Comparison
from ptxemu.checkers.findings import Finding
from ptxemu.cli.failure import save_reproducer
from ptxemu.cli.isolation import IsolationError, Limits, is_isolated, run_isolated
from ptxemu.cli.options import DeviceChoice
from ptxemu.cli.suite.exhibit import Exhibit, excerpt, exhibit
from ptxemu.cli.suite.outcome import (
    ERROR,
    EXPECTED,
    FAILED,
    FLAWED,
    INTERNAL,
    KILLED,
    PASSED,
    SKIPPED,
    STATUS_OF_CODE,
    UNSUPPORTED,
    CaseOutcome,
)
from ptxemu.cli.suite.report import read_outcome
from ptxemu.device.device import Device
from ptxemu.text.errors import Error, InputError

MAX_OUTPUT = 64 << 10  # characters of printf output that are kept


class Settings(Struct, frozen=True):
    """How the cases of a suite run: ``timeout`` is for launches that state none, ``output`` where cases save results.

    With ``exhibits`` outcomes have what a page of HTML shows.
    """

    timeout: float
    output: Path | None
    device: DeviceChoice
    exhibits: bool = False

    def arguments(self) -> list[str]:
        """The options of ``ptxemu test`` that say the same."""
        output = [] if self.output is None else ["--output-dir", str(self.output)]
        exhibits = ["--exhibits"] if self.exhibits else []
        return ["--timeout", str(self.timeout), *output, *exhibits, *self.device.arguments()]


def share_of(settings: Settings, count: int) -> Settings:
    """The settings of one of several processes that share the processors."""
    return replace(settings, device=settings.device.share_of(count))


def run_one(path: Path, settings: Settings, device: Device) -> CaseOutcome:
    """Run one case."""
    started = time.perf_counter()
    title = str(path)
    printed: list[str] = []
    if device.checks is not None:
        device.checks.clear()
    try:
        case = read_case(path)
        title = case.title
        outcome = replace(_judged(case, _run(case, settings, device, printed)), path=path, findings=_findings(device))
    except Error as error:
        outcome = CaseOutcome(path, title, STATUS_OF_CODE.get(error.exit_code, ERROR), str(error), 0.0)
    except MemoryError:
        outcome = CaseOutcome(path, title, ERROR, "out of memory", 0.0)
    return replace(outcome, seconds=time.perf_counter() - started, output="".join(printed)[:MAX_OUTPUT])


def _run(case: Case, settings: Settings, device: Device, printed: list[str]) -> CaseOutcome:
    def outcome(status: str, message: str, comparisons: tuple[Comparison, ...] = ()) -> CaseOutcome:
        return CaseOutcome(case.path, case.title, status, message, 0.0, comparisons=comparisons)

    if case.skip is not None:
        return outcome(SKIPPED, case.skip)
    if not case.checks:
        return outcome(ERROR, f"{case.path}: expect: is missing, so nothing would be checked")
    try:
        result = run_case(
            case, timeout=settings.timeout, output=settings.output, device=device, printf=printed.append, python=not is_isolated()
        )
    except Error as error:
        found = outcome(STATUS_OF_CODE.get(error.exit_code, ERROR), str(error))
        return replace(found, source=excerpt(error))
    except MemoryError:
        return outcome(ERROR, "out of memory")
    except Exception as error:
        save_reproducer(error, ["run", str(case.path)])
        return outcome(INTERNAL, f"{type(error).__name__}: {error}")
    wrong = [f"{item.name}: {item.message}" for item in result.comparisons if not item.passed]
    flaws = list(map(str, _findings(device)))
    status = FAILED if wrong else FLAWED if flaws else PASSED
    found = outcome(status, "\n".join(["; ".join(wrong)] * bool(wrong) + flaws), tuple(result.comparisons))
    return replace(found, exhibits=_exhibits(result)) if settings.exhibits else found


def _findings(device: Device) -> tuple[Finding, ...]:
    return () if device.checks is None else tuple(device.checks.findings)


def _exhibits(result: CaseResult) -> tuple[Exhibit, ...]:
    names = [item.name for item in result.comparisons if item.elements]  # and not of another shape or type
    return tuple(exhibit(name, result.arrays[name], result.expected[name], name in result.case.surfaces) for name in names)


def _judged(case: Case, outcome: CaseOutcome) -> CaseOutcome:
    """An outcome as the case takes it: what it expects to fail, or to be unsupported, is fine."""
    if outcome.status == UNSUPPORTED and case.unsupported == "skip":
        return replace(outcome, status=SKIPPED)
    if case.xfail is None or outcome.status not in (PASSED, FAILED):
        return outcome
    if outcome.status == FAILED:
        return replace(outcome, status=EXPECTED, message=case.xfail)
    return replace(outcome, status=FAILED, message=f"passed, but was expected to fail: {case.xfail}")


def run_one_isolated(path: Path, settings: Settings, limits: Limits) -> CaseOutcome:
    """Run one case by a command of its own, which reports through a file."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder:
        report = Path(folder, "report.json")
        code = 0
        try:
            code = run_isolated(["test", *settings.arguments(), "--json", str(report), "--", str(path)], limits, quiet=True)
            outcome = read_outcome(report)
        except IsolationError as error:
            outcome = CaseOutcome(path, str(path), KILLED, str(error), 0.0)
        except InputError:  # no report
            outcome = CaseOutcome(path, str(path), ERROR, f"the isolated command ended with code {code}", 0.0)
    return replace(outcome, path=path, seconds=time.perf_counter() - started)
