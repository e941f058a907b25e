"""The checkers of a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from ptxemu._runtime import ffi, lib
from ptxemu.checkers.findings import Finding
from ptxemu.checkers.kinds import codes_of, observed_of
from ptxemu.checkers.lines import ProgramLines
from ptxemu.checkers.raw import finding_of
from ptxemu.checkers.report import Report
from ptxemu.ir.observed import Observed
from ptxemu.text.source import SourceFile

if TYPE_CHECKING:
    from ptxemu._runtime import CData


class Checks:
    """Watches the launches of a device for what ``names`` of :data:`ptxemu.checkers.kinds.KINDS` look for.

    ``arena`` is the device's ``pe_arena``, which is kept until the checkers are gone. Safe to use from several threads.
    """

    def __init__(self, names: Sequence[str], arena: Any) -> None:
        self.names = tuple(names)
        self._lock = Lock()
        self._programs: dict[int, tuple[str, ProgramLines]] = {}
        self._report = Report(names)
        made = lib.pe_checker_create(arena, codes_of(names))
        if not made:
            raise MemoryError("for the checkers")
        self._checker: CData = ffi.gc(made, lib.pe_checker_destroy)
        self._arena = arena

    @property
    def observed(self) -> Observed:
        """Which accesses compiled code must tell of."""
        return observed_of(self.names)

    def launching(self, address: int, kernel: str, source: SourceFile) -> None:
        """A kernel is about to run whose code is at an address; findings are in this program."""
        with self._lock:
            if (known := self._programs.get(address)) is not None and known[1].source is not source:
                self._settle_leaks(address)  # another program's code was there
            self._programs[address] = kernel, ProgramLines(source)

    @property
    def findings(self) -> list[Finding]:
        """What was found up to now and is not suppressed, one finding for each place."""
        with self._lock:
            return self._whole().findings

    @property
    def notes(self) -> list[Finding]:
        """What is told besides, and is no error: threads that write the same value in no order."""
        with self._lock:
            return self._whole().notes

    def suppress(self, *texts: str) -> None:
        """Leave out findings: ``race:kernel=reduce:file=sum.cu:line=10-12`` (docs/checkers.md). Raises InputError."""
        with self._lock:
            self._report.suppress(*texts)

    def to_json(self) -> dict[str, Any]:
        """What was checked and found, as data of JSON."""
        with self._lock:
            return self._whole().to_json()

    @property
    def summary(self) -> str:
        """What was checked, and how much was found, in one line."""
        counts = ffi.new("pe_checked *")
        lib.pe_checker_counts(self._checker, counts)
        with self._lock:
            return self._whole().summary(counts)

    def initialized(self, address: int, size: int) -> None:
        """Let ``init`` take bytes of device memory for written."""
        lib.pe_arena_filled(self._arena, address, size, lib.PE_CONTENTS)

    def clear(self) -> None:
        """Forget what was found."""
        with self._lock:
            self._settle_leaks(0)
            self._report.found.clear()

    def collect(self) -> None:
        """Take what the runtime has found, while the code is still there that it names."""
        with self._lock:
            self._collect()

    def _collect(self) -> None:
        self._report.found += self._taken()

    def _taken(self) -> Iterator[Finding]:
        raw = ffi.new("pe_finding *")
        while lib.pe_checker_take(self._checker, raw):
            yield finding_of(raw, *self._programs.get(raw.kernel, ("?", None)))

    def _whole(self) -> Report:
        """With what leaks now, which somebody may still free."""
        self._collect()
        lib.pe_checker_find_leaks(self._checker, 0)
        return self._report.with_findings(self._taken())

    def _settle_leaks(self, address: int) -> None:
        """What the kernel at an address has left, or all of them if it is 0, has leaked."""
        lib.pe_checker_find_leaks(self._checker, address)
        self._collect()
        lib.pe_checker_forget_leaks(self._checker, address)
