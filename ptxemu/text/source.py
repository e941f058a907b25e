"""Source text, and positions in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from msgspec import Struct

_INK = re.compile(r"\S")
_BYTE_ORDER_MARK = "\ufeff"


def unmarked(text: str) -> str:
    """``text`` with a blank in place of a byte order mark; all positions are kept."""
    return " " + text[1:] if text.startswith(_BYTE_ORDER_MARK) else text


def after_blanks(text: str, pos: int) -> int:
    """Where ``text`` goes on after blanks and ends of lines at ``pos``."""
    found = _INK.search(text, pos)
    return found.start() if found else len(text)


class Location(Struct, frozen=True):
    """A line of a file; as text, ``file:line``."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Loc(NamedTuple):
    """A ``.loc``: the number of a ``.file``, a line and a column (0: unknown).

    ``caller`` is the place in the list of them, counted from 1, of the one that this is inlined at, or 0.
    """

    file: int
    line: int
    column: int
    caller: int = 0


class SourceFile:
    """A named text; offsets turn into 1-based lines and columns on demand (columns count characters)."""

    def __init__(self, name: str, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"the text of a program must be a str, not {type(text).__name__}")
        self.name = name
        self.text = text
        self._starts: list[int] = []

    @property
    def starts(self) -> list[int]:
        if not self._starts:
            self._starts = [0]
            find = self.text.find
            at = find("\n")
            while at >= 0:
                self._starts.append(at + 1)
                at = find("\n", at + 1)
        return self._starts

    def line_column(self, pos: int) -> tuple[int, int]:
        line = bisect_right(self.starts, pos)
        return line, pos - self.starts[line - 1] + 1

    def line(self, pos: int) -> int:
        return bisect_right(self.starts, pos)

    def location(self, pos: int) -> Location:
        """The file and line of a position."""
        return Location(self.name, self.line(pos))

    def where(self, pos: int) -> str:
        """``file:line``."""
        return str(self.location(pos))

    def text_at(self, pos: int) -> str:
        """The text of the line that a position is in."""
        return self.line_text(bisect_right(self.starts, pos))

    def line_text(self, line: int) -> str:
        start = self.starts[line - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


class JoinedSource(SourceFile):
    """Several texts in a row, as those of one program; every position tells in which file it is."""

    def __init__(self, parts: Sequence[SourceFile]) -> None:
        super().__init__(", ".join(part.name for part in parts), "".join(part.text for part in parts))
        self.parts = list(parts)
        self.offsets = list(accumulate((len(part.text) for part in parts[:-1]), initial=0))

    def part(self, pos: int) -> tuple[SourceFile, int]:
        """The source that a position is in, and where in it."""
        index = bisect_right(self.offsets, pos) - 1
        return self.parts[index], pos - self.offsets[index]

    def line(self, pos: int) -> int:
        """The line in its file."""
        part, offset = self.part(pos)
        return part.line(offset)

    def location(self, pos: int) -> Location:
        part, offset = self.part(pos)
        return part.location(offset)


def join(parts: Sequence[SourceFile]) -> SourceFile:
    """One source of one or several."""
    return parts[0] if len(parts) == 1 else JoinedSource(parts)


def part_at(source: SourceFile, pos: int) -> SourceFile:
    """The source that a position is in, of those that have been joined."""
    return source.part(pos)[0] if isinstance(source, JoinedSource) else source


def parts_of(source: SourceFile) -> list[SourceFile]:
    """The sources that have been joined."""
    return source.parts if isinstance(source, JoinedSource) else [source]
