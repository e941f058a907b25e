"""Lines of a program: of its PTX, and of the CUDA C++ that it was compiled from, as ``.loc`` and ``.file`` tell."""

from __future__ import annotations

import re
import stat
from bisect import bisect_right
from functools import cache
from pathlib import Path

from msgspec import Struct

from ptxemu.text.errors import InputError
from ptxemu.text.files import read_text
from ptxemu.text.source import Location, SourceFile, parts_of

_FUNCTION = re.compile(r"\.(?:entry|func)\b")
_LOC = re.compile(
    r"\.loc[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]+\d{1,9}"
    r"(?:[ \t]*,[ \t]*function_name[^,\n]{1,200},[ \t]*inlined_at[ \t]+(\d{1,9})[ \t]+(\d{1,9}))?"
)
_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]{1,4096})"', re.MULTILINE)
SOURCES = {".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".c", ".cc", ".cpp", ".cxx", ".inl", ".py"}
MAX_SOURCE = 16 << 20  # bytes
LONGEST_LINE = 200  # characters that are shown


class Line(Struct, frozen=True):
    """A line of a file, and its text without blanks around it, if that can be read."""

    location: Location
    text: str

    def __str__(self) -> str:
        return f"{self.location}: {self.text}" if self.text else str(self.location)


class ProgramLines:
    """The lines of a program's positions. What a text says of them is read when somebody asks."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._parts = parts_of(source)
        self._starts = [0]
        for part in self._parts[:-1]:
            self._starts.append(self._starts[-1] + len(part.text))
        self._tables: dict[int, _Table] = {}

    def ptx(self, pos: int) -> Line:
        """The line of a position in the PTX."""
        part, offset = self._part(pos)
        line = part.line(offset)
        return Line(part.location(offset), _shown(part.line_text(line)))

    def cuda(self, pos: int) -> tuple[Line, ...]:
        """The line of a position in what the PTX was compiled from, and the one that it is inlined at, if that is told."""
        part, offset = self._part(pos)
        index = next(index for index, one in enumerate(self._parts) if one is part)
        if index not in self._tables:
            self._tables[index] = _Table.of(part.text)
        return tuple(Line(place, _line_of(place)) for place in self._tables[index].at(offset))

    def _part(self, pos: int) -> tuple[SourceFile, int]:
        index = bisect_right(self._starts, pos) - 1
        return self._parts[index], min(pos - self._starts[index], len(self._parts[index].text))


class _Table(Struct, frozen=True):
    """What a text tells: positions of functions, and of each ``.loc`` with its places, the innermost first."""

    functions: list[int]
    positions: list[int]
    places: list[tuple[Location, ...]]

    @classmethod
    def of(cls, text: str) -> _Table:
        files = {int(match[1]): match[2] for match in _FILE.finditer(text)}
        positions, places = [], []
        for match in _LOC.finditer(text):
            numbers = [(int(match[1]), int(match[2]))] + ([(int(match[3]), int(match[4]))] if match[3] else [])
            positions.append(match.start())
            places.append(tuple(Location(files[file], line) for file, line in numbers if file in files and line))
        return cls([match.start() for match in _FUNCTION.finditer(text)], positions, places)

    def at(self, pos: int) -> tuple[Location, ...]:
        """Of the last ``.loc`` before a position, in the same function."""
        index, function = bisect_right(self.positions, pos) - 1, bisect_right(self.functions, pos) - 1
        same = index >= 0 and (function < 0 or self.positions[index] > self.functions[function])
        return self.places[index] if same else ()


def _line_of(place: Location) -> str:
    lines = _lines_of(place.file)
    return _shown(lines[place.line - 1]) if place.line <= len(lines) else ""


@cache
def _lines_of(file: str) -> tuple[str, ...]:
    """Those of a file of source code, which a program that may not be trusted has named."""
    path = Path(file)
    try:
        if path.suffix not in SOURCES or not stat.S_ISREG(path.stat().st_mode):
            return ()
        return tuple(read_text(path, MAX_SOURCE).splitlines())
    except (OSError, ValueError, InputError):
        return ()


def _shown(line: str) -> str:
    return " ".join(line.split())[:LONGEST_LINE]
