"""Checked reading of TOML tables: every error names the file and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ptxemu.text.errors import InputError, shown
from ptxemu.text.files import read_text
from ptxemu.text.suggestions import closest

T = TypeVar("T")

MAX_TOML = 16 << 20  # bytes; large arrays go into files of their own
MAX_PARTS = 32  # of a dotted key: reading one takes time and memory that grow with the square of them
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:\.[ \t]*+{_PART}){{{MAX_PARTS}}}")

_WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false", dict: "a table", list: "a list"}


def read_toml(path: Path) -> Table:
    """The root table of a file."""
    return parse_toml(read_text(path, MAX_TOML), str(path))


def parse_toml(text: str, file: str) -> Table:
    """The root table of a text; messages name the ``file``."""
    if LONG_KEY.search(text):
        raise InputError(f"{file}: a dotted key has more than {MAX_PARTS} parts")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file}: {error}") from None
    except RecursionError:
        raise InputError(f"{file}: arrays and tables are nested too deeply") from None
    except ValueError as error:  # such as integers with too many digits
        raise InputError(f"{file}: {str(error).partition(';')[0]}") from None
    return Table(file, "", data)


class Table:
    """A TOML table at a known place; ``finish`` refuses keys that have not been read."""

    def __init__(self, file: str, place: str, data: dict[str, Any]) -> None:
        self.file, self.place, self.data = file, place, data
        self._known: set[str] = set()

    def where(self, key: str = "") -> str:
        place = ".".join(part for part in (self.place, key) if part)
        return f"{self.file}: {place}" if place else self.file

    def fail(self, key: str, message: str) -> InputError:
        return InputError(f"{self.where(key)}: {message}")

    def __contains__(self, key: str) -> bool:
        self._known.add(key)
        return key in self.data

    def get(self, key: str, kind: type[T], default: T) -> T:
        """The value of an optional key."""
        return self.need(key, kind) if key in self else default

    def need(self, key: str, kind: type[T]) -> T:
        """The value of a required key."""
        if key not in self:
            raise self.fail(key, "is missing")
        value: Any = self.data[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            try:
                value = float(value)
            except OverflowError:
                raise self.fail(key, f"is out of range: {shown(value)}") from None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"must be {_WORDS[kind]}, not {shown(value)}")
        return value

    def any(self, key: str) -> Any:
        """The value of a required key, of any type."""
        if key not in self:
            raise self.fail(key, "is missing")
        return self.data[key]

    def table(self, key: str) -> Table:
        """A table below; an empty one if it is absent."""
        return Table(self.file, f"{self.place}.{key}" if self.place else key, self.get(key, dict, {}))

    def tables(self, key: str) -> Iterator[Table]:
        """The tables of an array of tables."""
        place = f"{self.place}.{key}" if self.place else key
        for number, item in enumerate(self.get(key, list, [])):
            if not isinstance(item, dict):
                raise InputError(f"{self.file}: {place}[{number}]: must be a table, not {shown(item)}")
            yield Table(self.file, f"{place}[{number}]", item)

    def names(self) -> list[str]:
        """All keys in written order; each counts as known."""
        self._known.update(self.data)
        return list(self.data)

    def finish(self, others: Iterable[str] = ()) -> None:
        """Refuse unknown keys."""
        known = self._known.union(others)
        for key in self.data:
            if key not in known:
                raise self.fail(key, f"unknown key{closest(key, known)}")
