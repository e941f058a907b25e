"""Suppressions: findings that a user knows and does not want to be told."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.checkers.findings import Finding
from ptxemu.checkers.kinds import ALL, parse_checks
from ptxemu.checkers.lines import Line
from ptxemu.text.errors import InputError, shown
from ptxemu.text.symbols import plain_name

_LINES = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
LAST_LINE = 999_999_999
KEYS = ("kernel", "file", "line")


class Suppression(Struct, frozen=True):
    """Findings of some checkers, in kernels and at lines that match: ``kernel`` and ``file`` are patterns of a shell, of names of
    C++ or symbols, and of paths or their last parts."""

    checks: tuple[str, ...]
    kernel: str = "*"
    file: str = "*"
    first: int = 0
    last: int = LAST_LINE

    @classmethod
    def parse(cls, text: str) -> Suppression:
        """``race:kernel=reduce:file=sum.cu:line=10-12``: names of checkers and, where it matters, more. Raises InputError."""
        names, *rest = text.split(":")
        given = dict(part.partition("=")[::2] for part in rest)
        if wrong := next((key for key in given if key not in KEYS), None):
            raise InputError(f"suppression {shown(text)}: {shown(wrong)} is none of {', '.join(KEYS)}")
        lines = _LINES.fullmatch(given.get("line", f"0-{LAST_LINE}"))
        if lines is None:
            raise InputError(f"suppression {shown(text)}: a line is a number or a range such as 10-12")
        first, last = int(lines[1]), int(lines[2] or lines[1])
        return cls(parse_checks(names or ALL), given.get("kernel", "*"), given.get("file", "*"), first, last)

    def matches(self, finding: Finding) -> bool:
        """Whether it is about a finding, by any of its lines."""
        kernels = (finding.kernel, plain_name(finding.kernel))
        known = finding.check in self.checks and any(fnmatchcase(name, self.kernel) for name in kernels)
        anywhere = replace(self, checks=(), kernel="*") == Suppression(())
        return known and (anywhere or any(self._holds(line) for line in finding.lines))

    def _holds(self, line: Line) -> bool:
        file, number = line.location.file, line.location.line
        named = fnmatchcase(file, self.file) or fnmatchcase(file.rpartition("/")[2], self.file)
        return named and self.first <= number <= self.last
