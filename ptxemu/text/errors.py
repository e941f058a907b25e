"""The exception tree and diagnostics with carets."""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

from msgspec import Struct, field
from msgspec.structs import asdict

from ptxemu.text.poison import Damage
from ptxemu.text.source import Location, SourceFile

Dim3 = tuple[int, int, int]


class Diagnostic(Struct, frozen=True):
    """One message about a source. Lines and columns are 1-based, 0 for the file as a whole; ``end_column`` is exclusive."""

    severity: str  # "error" | "warning"
    message: str
    line: int
    column: int
    end_column: int
    file: str
    text: str
    notes: tuple[str, ...] = ()

    def render(self) -> str:
        """The message, the line with a caret under the fault, and the notes; safe to print on a terminal."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        lines = [f"{place}: {self.severity}: {self.message}"]
        if self.text.strip():
            lines += self._excerpt()
        return "\n".join([printable(line) for line in (*lines, *(f"  note: {note}" for note in self.notes))])

    def _excerpt(self) -> list[str]:
        first = max(0, self.column - SHOWN // 2) if len(self.text) > SHOWN else 0
        text, column = self.text[first : first + SHOWN], self.column - first
        lead = "".join("\t" if ch == "\t" else " " * _columns(ch) for ch in text[: column - 1])
        width = sum(map(_columns, text[column - 1 : self.end_column - first - 1]))
        return ["  " + text, "  " + lead + "^" + "~" * (width - 1)]


def _place(record: Diagnostic) -> tuple[int, int]:
    return record.line, record.column


def printable(text: str) -> str:
    """``text`` without the control characters that a terminal would obey."""
    return _CONTROL.sub("\ufffd", text)


def printable_lines(text: str) -> str:
    """The same of each line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def summary_of(error: BaseException) -> str:
    """An error that nobody expected, on one line: its type, and the first line of its text."""
    return printable(f"{type(error).__name__}: {error}".splitlines()[0])


def shown(value: object) -> str:
    """A value as messages show it: short, on one line, whatever it is."""
    if isinstance(value, int) and value.bit_length() > LARGEST_SHOWN:
        return f"about {'-' if value < 0 else ''}2^{value.bit_length() - 1}"
    try:
        text = printable(repr(value))
    except Exception:  # of the value's own code, or one that refers to a very long number
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if char.isascii():
        return 1
    return 0 if combining(char) else 1 + (east_asian_width(char) in "WF")


SHOWN = 300  # characters of a line; of a longer one, those around the error
MAX_ERRORS = 20
LONGEST_SHOWN = 100  # characters of a value
LARGEST_SHOWN = 512  # bits of a number
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Diagnostics(Struct):
    """Collects the diagnostics of one source; the same fault at the same place is kept once.

    ``strict`` enforces the version and target of every form, and rejects what ptxas rejects although its meaning is clear.
    ``alone``: no other source defines what this one only declares.
    """

    source: SourceFile
    strict: bool = False
    alone: bool = True
    records: list[Diagnostic] = []
    damage: Damage = field(default_factory=Damage)
    _earlier: list[Diagnostic] = []
    _seen: set[tuple[str, int]] = set()
    _count: int = 0  # of the errors in ``records``

    def add(self, severity: str, message: str, pos: int, end: int = -1, notes: tuple[str, ...] = ()) -> None:
        pos = min(max(pos, 0), len(self.source.text))
        if self.damage.holds(pos) or (severity == "error" and self.full):
            return
        line, column = self.source.line_column(pos)
        if (message, line) in self._seen:
            return
        self._seen.add((message, line))
        self._count += severity == "error"
        text = self.source.line_text(line)
        width = max(1, end - pos)
        self.records.append(Diagnostic(severity, message, line, column, column + width, self.source.name, text, notes))

    def error(self, message: str, pos: int, end: int = -1, notes: tuple[str, ...] = ()) -> None:
        self.add("error", message, pos, end, notes)

    def warning(self, message: str, pos: int, end: int = -1, notes: tuple[str, ...] = ()) -> None:
        self.add("warning", message, pos, end, notes)

    def extension(self, message: str, pos: int, end: int = -1) -> None:
        """What has a clear meaning but is rejected by ptxas: an error in strict mode, silence otherwise."""
        if self.strict:
            self.add("error", message, pos, end)

    def next_stage(self) -> None:
        """What follows is found by another stage, in the order of the source again."""
        self.damage.seal()
        self._earlier, self.records, self._count = self.records, [], 0

    def finish(self) -> None:
        """Put the messages of both stages into the order of the source; the first errors stay."""
        merged = sorted(self._earlier + self.records, key=_place)
        errors = [record for record in merged if record.severity == "error"]
        if len(errors) > MAX_ERRORS:
            last = errors[MAX_ERRORS - 1]
            kept = merged.index(last) + 1
            merged = merged[:kept]
        self._earlier, self.records, self._count = [], merged, len(errors)

    def sort(self) -> None:
        """Put the messages into the order of the source."""
        self.records.sort(key=_place)

    @property
    def errors(self) -> list[Diagnostic]:
        return [record for record in self.records if record.severity == "error"]

    @property
    def full(self) -> bool:
        return self._count >= MAX_ERRORS

    def raise_errors(self) -> None:
        if self.errors:
            raise PtxError(self.records)


class Error(Exception):
    """Base of every error that ptxemu raises on purpose."""

    exit_code = 2


class InputError(Error):
    """Wrong input from the user: arguments, files, shapes, limits."""


class PtxError(Error):
    """The PTX is wrong; ``diagnostics`` holds every message found."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(record.render() for record in diagnostics[: MAX_ERRORS + 5]))

    def __reduce__(self) -> tuple[type, tuple[list[Diagnostic]]]:
        return type(self), (self.diagnostics,)


class UnsupportedError(Error):
    """The PTX is valid but ptxemu does not run it; names the first such instruction and its line."""

    exit_code = 3

    def __init__(self, message: str, diagnostics: list[Diagnostic] | None = None) -> None:
        self.diagnostics = diagnostics or []
        super().__init__(message)


class TexelPlace(Struct, frozen=True):
    """Where an access of a surface went: the slot of its table, x y z and layer, and what the program calls the surface."""

    slot: int
    coordinates: tuple[int, int, int, int]
    surface: str | None


class FaultRecord(Struct, frozen=True, kw_only=True):
    """The first fault of a launch.

    ``code`` is the ``cudaError_t``, ``pos`` the position in the source, ``pc`` that in machine code where there is no other.
    ``lane`` is -1 and ``thread`` None if it was the whole warp; ``channel`` is set where lanes are channels of hardware
    threads. ``space`` and ``address`` are set for accesses of memory, ``texel`` for those of surfaces; ``size`` is in bytes.
    ``count`` faults were raised before the launch had stopped.
    """

    kind: str
    code: int
    dialect: str
    kernel: str
    location: Location | None
    pos: int | None
    pc: int
    block: Dim3
    thread: Dim3 | None
    lane: int
    channel: int | None
    warp: int
    space: str | None
    address: int | None
    size: int
    texel: TexelPlace | None
    note: str
    count: int

    def as_dict(self) -> dict[str, object]:
        """As plain data: ``where`` is ``file:line`` or empty, and the fields of ``texel``, if there is one, are on this level."""
        found: dict[str, object] = asdict(self)
        del found["location"], found["texel"]
        if self.texel is not None:
            found |= asdict(self.texel)
        found["where"], found["line"] = (str(self.location), self.location.line) if self.location else ("", None)
        return found


class Fault(Error):
    """A launch was stopped by a fault; ``details`` describes the first one."""

    exit_code = 1

    def __init__(self, message: str, details: FaultRecord) -> None:
        self.details = details
        super().__init__(message)

    @property
    def record(self) -> dict[str, object]:
        """The details as a dict.

        kind, code (``cudaError_t``), dialect, kernel, where (``file:line``), line, pos and pc; block, thread, warp, lane and
        channel (of a hardware thread); size, with space and address or surface (its name), slot and coordinates; note; and
        count.
        """
        return self.details.as_dict()

    def __reduce__(self) -> tuple[type, tuple[str, FaultRecord]]:
        return type(self), (str(self), self.details)


class DtypeWarning(UserWarning):
    """A kernel seems to take an argument for something else: an array of integers for one of floats, or for a texture."""


class LaunchTimeout(Error):
    """A launch ran over its ``timeout``."""

    exit_code = 1


class InternalError(Error):
    """A bug in ptxemu."""

    exit_code = 70
