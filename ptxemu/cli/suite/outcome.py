"""What became of a case, and the exit code of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from ptxemu.case.compare import Comparison
from ptxemu.checkers.findings import FINDINGS_EXIT, Finding
from ptxemu.cli.isolation import IsolationError
from ptxemu.cli.suite.exhibit import Exhibit
from ptxemu.text.errors import Fault, InputError, InternalError, UnsupportedError

PASSED, FAILED, ERROR, UNSUPPORTED, INTERNAL = "passed", "failed", "error", "unsupported", "internal error"
FLAWED = "flawed"  # the results are right, but checkers have found something
KILLED = "killed"  # the process of a case died, or ran over its time
SKIPPED, EXPECTED, UPDATED = "skipped", "failed as expected", "updated"
FINE = {PASSED, SKIPPED, EXPECTED, UPDATED}
CODES = {
    INTERNAL: InternalError.exit_code,
    KILLED: IsolationError.exit_code,
    FAILED: Fault.exit_code,
    FLAWED: FINDINGS_EXIT,
    ERROR: InputError.exit_code,
    UNSUPPORTED: UnsupportedError.exit_code,
}
"""Exit codes of a run in which such an outcome is the worst, the worst first."""
STATUS_OF_CODE = {code: status for status, code in CODES.items() if code not in (IsolationError.exit_code, InputError.exit_code)}


class CaseOutcome(Struct, frozen=True):
    """What became of a case; ``output`` is what its kernels printed, ``source`` the lines of the program that it failed in, and
    ``findings`` what checkers have found, however it ended."""

    path: Path
    title: str
    status: str
    message: str
    seconds: float
    output: str = ""
    comparisons: tuple[Comparison, ...] = ()
    source: str = ""
    exhibits: tuple[Exhibit, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def fine(self) -> bool:
        return self.status in FINE


def exit_code(outcomes: Iterable[CaseOutcome]) -> int:
    """That of the worst outcome."""
    found = {outcome.status for outcome in outcomes}
    return next((code for status, code in CODES.items() if status in found), 0)


def told(outcomes: Iterable[CaseOutcome]) -> str:
    """``3 of 6 passed, 2 skipped``."""
    statuses = [outcome.status for outcome in outcomes]
    parts = [f"{statuses.count(PASSED)} of {len(statuses)} passed"]
    parts += [f"{statuses.count(status)} {status}" for status in (SKIPPED, EXPECTED, UPDATED) if status in statuses]
    return ", ".join(parts)
