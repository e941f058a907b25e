"""What checkers have found, grouped by place, in words and as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.checkers.lines import Line
from ptxemu.text.errors import Dim3, printable
from ptxemu.text.symbols import plain_name

FINDINGS_EXIT = 5
"""The exit code of commands whose only fault is what checkers have found."""


class Other(Struct, frozen=True):
    """The other access that takes part in a finding: where it is, and the thread that made it."""

    lines: tuple[Line, ...]
    block: Dim3
    thread: Dim3
    warp: int


class Finding(Struct, frozen=True):
    """What one place of a program did wrong, ``count`` times in all launches.

    ``check`` is the checker.  ``message``, ``block``, ``thread`` and ``warp`` are those of the first thread in the order of the
    grid, in the first launch.  ``lines`` are where it is: lines of CUDA C++ first, the innermost of inlined functions at the
    beginning, and at the end that of PTX.  Of what the host did, ``kernel`` and ``lines`` are empty.  A ``note`` is no error.
    """

    check: str
    message: str
    kernel: str
    lines: tuple[Line, ...]
    block: Dim3
    thread: Dim3
    warp: int
    count: int
    other: Other | None = None
    note: bool = False

    def __str__(self) -> str:
        who = f"in `{plain_name(self.kernel)}`: block {_dim(self.block)}, thread {_dim(self.thread)}"
        times = f"; {self.count:,} times" if self.count > 1 else ""
        found = [f"{self.check}{' note' * self.note}: {self.message}", *(f"  {line}" for line in self.lines)]
        found += [f"  {who}{times}"] if self.kernel else []
        if (other := self.other) is not None:
            found += [*(f"  {line}" for line in other.lines), f"  by block {_dim(other.block)}, thread {_dim(other.thread)}"]
        return "\n".join(map(printable, found))

    @property
    def place(self) -> tuple[object, ...]:
        """What findings of one place have in common."""
        other = None if self.other is None else self.other.lines
        what = self.message.partition(" ")[2].partition(" ")[0] if self.lines else self.message
        return self.check, self.note, self.kernel, self.lines, other, what

    def to_json(self) -> dict[str, Any]:
        """As data of JSON."""
        other = self.other
        return {
            "check": self.check,
            "message": self.message,
            "kernel": self.kernel,
            "lines": _plain(self.lines),
            "block": self.block,
            "thread": self.thread,
            "warp": self.warp,
            "count": self.count,
            **({} if other is None else {"other": {"lines": _plain(other.lines), "block": other.block, "thread": other.thread}}),
        }


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each place, the first."""
    found: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        known = found.get(finding.place)
        found[finding.place] = finding if known is None else replace(known, count=known.count + finding.count)
    return list(found.values())


def _plain(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [{"file": line.location.file, "line": line.location.line, "text": line.text} for line in lines]


def _dim(values: Dim3) -> str:
    return f"({values[0]},{values[1]},{values[2]})"
