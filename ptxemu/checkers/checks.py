"""The checkers of a device."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from ptxemu._runtime import ffi, lib
from ptxemu.checkers.findings import Finding, Other, grouped, summary
from ptxemu.checkers.kinds import KINDS, NAMES, observed_of
from ptxemu.checkers.lines import Line, ProgramLines
from ptxemu.checkers.suppressions import Suppression
from ptxemu.ir.observed import Observed
from ptxemu.text.errors import Dim3
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
        self._found: list[Finding] = []
        self._suppressions: list[Suppression] = []
        codes = 0
        for name in names:
            codes |= KINDS[name].code
        made = lib.pe_checker_create(arena, codes)
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
            self._programs[address] = kernel, ProgramLines(source)  # another program's code may have been there

    @property
    def findings(self) -> list[Finding]:
        """What was found up to now and is not suppressed, one finding for each place."""
        with self._lock:
            self._collect()
            return [one for one in grouped(self._found) if not self._is_suppressed(one)]

    def suppress(self, *texts: str) -> None:
        """Leave out findings: ``race:kernel=reduce:file=sum.cu:line=10-12`` (docs/checkers.md). Raises InputError."""
        with self._lock:
            self._suppressions += map(Suppression.parse, texts)

    def _is_suppressed(self, finding: Finding) -> bool:
        return any(item.matches(finding) for item in self._suppressions)

    @property
    def summary(self) -> str:
        """What was checked, and how much was found, in one line."""
        found, counts = self.findings, ffi.new("pe_checked *")
        lib.pe_checker_counts(self._checker, counts)
        with self._lock:
            known = sum(map(self._is_suppressed, grouped(self._found)))
        told = summary(self.names, counts.launches, found, counts.dropped, counts.lost)
        return told + (f", {known} suppressed" if known else "")

    def clear(self) -> None:
        """Forget what was found."""
        with self._lock:
            self._collect()
            self._found = []

    def collect(self) -> None:
        """Take what the runtime has found, while the code is still there that it names."""
        with self._lock:
            self._collect()

    def _collect(self) -> None:
        raw = ffi.new("pe_finding *")
        while lib.pe_checker_take(self._checker, raw):
            self._found.append(self._finding(raw))

    def _finding(self, raw: CData) -> Finding:
        kernel, program = self._programs.get(raw.kernel, ("?", None))
        other = None if raw.other_pos == lib.PE_NO_POS else Other(_lines(program, raw.other_pos), *_place(raw.other))
        return Finding(
            NAMES[raw.check],
            ffi.string(raw.text).decode("utf-8", "replace"),
            kernel,
            _lines(program, raw.pos),
            *_place(raw.thread),
            raw.count,
            other,
        )


def _lines(program: ProgramLines | None, pos: int) -> tuple[Line, ...]:
    return () if program is None or pos == lib.PE_NO_POS else (*program.cuda(pos), program.ptx(pos))


def _place(raw: CData) -> tuple[Dim3, Dim3, int]:
    """Block, thread and warp."""
    block, thread = raw.ctaid, raw.tid
    return (block[0], block[1], block[2]), (thread[0], thread[1], thread[2]), raw.warp
