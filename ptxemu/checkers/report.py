"""What to tell of what was found: one finding for each place, without those that the user knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ptxemu.checkers.findings import Finding, grouped
from ptxemu.checkers.suppressions import Suppression
from ptxemu.text.sarif import SarifResult, sarif_text

if TYPE_CHECKING:
    from ptxemu._runtime import CData


class Report:
    """Findings of the checkers ``names`` as they come, and suppressions."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.found: list[Finding] = []
        self._suppressions: list[Suppression] = []

    def with_findings(self, more: Iterable[Finding]) -> Report:
        """A report of more than these."""
        made = Report(self.names)
        made.found, made._suppressions = [*self.found, *more], self._suppressions
        return made

    def suppress(self, *texts: str) -> None:
        """Leave out findings: ``race:kernel=reduce:file=sum.cu:line=10-12`` (docs/checkers.md). Raises InputError."""
        self._suppressions += map(Suppression.parse, texts)

    @property
    def findings(self) -> list[Finding]:
        """Those to tell."""
        return self._told(grouped(one for one in self.found if not one.note))

    @property
    def notes(self) -> list[Finding]:
        """What is told besides, and is no error."""
        return self._told(grouped(one for one in self.found if one.note))

    def summary(self, counts: CData) -> str:
        """``checked memory, race in 3 launches: 2 findings``; ``counts`` is a ``pe_checked``."""
        told, notes = self.findings, len(self.notes)
        suppressed = len(grouped(self.found)) - len(told) - notes
        launches, result = counts.launches, f"{len(told)} finding{'s' * (len(told) != 1)}" if told else "nothing found"
        more = f", {notes} note{'s' * (notes != 1)}" if notes else ""
        more += f", and {counts.dropped:,} at further places" if counts.dropped else ""
        more += f"; no memory to check {counts.lost:,} accesses" if counts.lost else ""
        more += f", {suppressed} suppressed" if suppressed else ""
        return f"checked {', '.join(self.names)} in {launches:,} launch{'es' * (launches != 1)}: {result}{more}"

    def to_json(self) -> dict[str, Any]:
        """As data of JSON."""
        told = {"findings": self.findings, "notes": self.notes}
        return {"checked": list(self.names), **{name: [one.to_json() for one in some] for name, some in told.items()}}

    def _told(self, findings: Iterable[Finding]) -> list[Finding]:
        return [one for one in findings if not any(item.matches(one) for item in self._suppressions)]


def sarif_of(findings: Iterable[Finding]) -> str:
    """Findings as a text of SARIF, at the lines of CUDA C++ where these are known."""
    return sarif_text([
        SarifResult(
            "note" if finding.note else "error", finding.message,
            [(line.location.file, {"startLine": line.location.line}) for line in finding.lines], f"ptxemu.{finding.check}",
        )
        for finding in findings
    ])  # fmt: skip
