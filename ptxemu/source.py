"""Source text, and positions in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

_INK = re.compile(r"\S")
_BYTE_ORDER_MARK = "\ufeff"


def unmarked(text: str) -> str:
    """``text`` with a blank in place of a byte order mark; all positions are kept."""
    return " " + text[1:] if text.startswith(_BYTE_ORDER_MARK) else text


def after_blanks(text: str, pos: int) -> int:
    """Where ``text`` goes on after blanks and ends of lines at ``pos``."""
    found = _INK.search(text, pos)
    return found.start() if found else len(text)


@dataclass(slots=True)
class SourceFile:
    """A named text; offsets turn into 1-based lines and columns on demand (columns count characters)."""

    name: str
    text: str
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"the text of a program must be a str, not {type(self.text).__name__}")

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

    def line_text(self, line: int) -> str:
        start = self.starts[line - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")
