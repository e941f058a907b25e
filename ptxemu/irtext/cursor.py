"""Reading a line of the IR's text from left to right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct

from ptxemu.ir.types import TYPES, ScalarType
from ptxemu.irtext.words import unquoted
from ptxemu.text.source import SourceFile, join

T = TypeVar("T")
NAME = re.compile(r'"(?:\\.|[^"\\])*"|[\w$.+#<>|?\'%-]+')
WORD = re.compile(r"\w+")
INTEGER = re.compile(r"-?\d+")


COMMENT = re.compile(r"\s*//(?:\s*(?:(\d+):)?(\d+)\s*(?:\||$))?")
FUNCTION = re.compile(r"(?P<declare>declare )?(?:(?P<linkage>\w+) )?(?P<kind>entry|func) @")
SPACES = ("global", "const", "shared", "local", "param")


class Problem(Exception):
    """What is wrong with a line."""


class Cursor:
    """A line that is read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def accept(self, word: str) -> bool:
        """Skip blanks and ``word``, if that is what comes next."""
        start = self._blanks()
        if not self.text.startswith(word, start):
            return False
        self.at = start + len(word)
        return True

    def keyword(self, word: str) -> bool:
        """The same of a whole word."""
        start = self._blanks()
        match = WORD.match(self.text, start)
        return match is not None and match[0] == word and self.accept(word)

    def expect(self, word: str) -> None:
        if not self.accept(word):
            raise Problem(f"'{word}' expected, not '{self.text[self._blanks() :][:20]}'")

    def peek(self) -> str:
        """The next character, "" at the end."""
        start = self._blanks()
        return self.text[start : start + 1]

    def match(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        found = pattern.match(self.text, self._blanks())
        if found is None:
            raise Problem(f"{what} expected, not '{self.text[self._blanks() :][:20]}'")
        self.at = found.end()
        return found

    def name(self) -> str:
        return unquoted(self.match(NAME, "a name")[0])

    def names(self) -> list[str]:
        """Names with commas between them, up to the end."""
        found = list(self.series(self.name))
        self.finish()
        return found

    def word(self) -> str:
        return self.match(WORD, "a word")[0]

    def integer(self) -> int:
        return int(self.match(INTEGER, "an integer")[0])

    def integers(self) -> list[int]:
        found = []
        while INTEGER.match(self.text, self._blanks()):
            found.append(self.integer())
        return found

    def type(self) -> ScalarType:
        name = self.word()
        if name not in TYPES:
            raise Problem(f"there is no type '{name}'")
        return TYPES[name]

    def list(self, item: Callable[[], T], end: str) -> tuple[T, ...]:
        """Items with commas between them up to ``end``."""
        found: list[T] = []
        while not self.accept(end):
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    def series(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One item or several with commas between them."""
        found = [item()]
        while self.accept(","):
            found.append(item())
        return tuple(found)

    @property
    def done(self) -> bool:
        return self._blanks() == len(self.text)

    def finish(self) -> None:
        if not self.done:
            raise Problem(f"'{self.text[self._blanks() :][:20]}' is left over")

    def _blanks(self) -> int:
        while self.text.startswith(" ", self.at):
            self.at += 1
        return self.at


class Line(Struct):
    """A line without its comment, and its number; ``pos`` is the position in the program that the comment gives, 0 if none."""

    number: int
    text: str
    pos: int


class Lines:
    """The lines of a text that are not empty, and the source that their comments refer to.

    ``number`` is that of the last line read.
    """

    def __init__(self, text: str) -> None:
        self.number = 0
        self.next = 0
        raw = text.split("\n")
        files = next((Cursor(line[6:]).names() for line in raw if line.startswith("files ")), [""])
        found = [_split(line) for line in raw]
        longest = [max((line for _, file, line in found if file == number), default=1) for number in range(len(files))]
        self.source = join([SourceFile(name, " \n" * length) for name, length in zip(files, longest)])
        offsets = [sum(2 * length for length in longest[:number]) for number in range(len(files))]
        self.lines = [
            Line(number, text.rstrip(), offsets[file] + 2 * line - 1 if line and file < len(files) else 0)
            for number, (text, file, line) in enumerate(found, 1)
            if text.strip()
        ]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def read(self) -> Line | None:
        """The next line, None at the end."""
        if self.next == len(self.lines):
            return None
        line = self.lines[self.next]
        self.next += 1
        self.number = line.number
        return line

    def inside(self) -> Line | None:
        """The next line of a function, None at its end."""
        line = self.read()
        if line is not None and FUNCTION.match(line.text):
            self.next -= 1
            return None
        return None if line is None or line.text == "}" else line


def _split(line: str) -> tuple[str, int, int]:
    """The text, the number of the file and the line of its comment; 0 if there is none."""
    start = line.find("//")
    match = COMMENT.match(line, start) if start >= 0 else None
    return (line, 0, 0) if match is None else (line[:start], int(match[1] or 1) - 1, int(match[2] or 0))
