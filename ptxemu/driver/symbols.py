"""Compiled kernels told to tools that look at the process: perf, by a map of symbols, and gdb, by its interface for compilers.

``PTXEMU_SYMBOLS=perf,gdb`` asks for it. Code then knows its lines (lower/core/line_info.py).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.dwarf.line_table import rows_of
from ptxemu.text.errors import InputError, shown
from ptxemu.text.symbols import plain_name

VARIABLE = "PTXEMU_SYMBOLS"
TOOLS = frozenset({"perf", "gdb"})
HEAD, SECTION, SYMBOL = struct.Struct("<40xQ10xHHH"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
ADDRESS = struct.Struct("<Q")
RELOCATION = struct.Struct("<QQq")
SYMBOL_TABLE, FUNCTION = 2, 2


def wanted() -> frozenset[str]:
    """The tools that are to be told. Raises InputError."""
    given = frozenset(word.strip() for word in os.environ.get(VARIABLE, "").split(",") if word.strip())
    if strange := sorted(given - TOOLS):
        raise InputError(f"{VARIABLE} is a list of {' and '.join(sorted(TOOLS))}, not {shown(strange[0])}")
    return given


class Section(Struct, frozen=True):
    """Where it lies in the object."""

    name: str
    kind: int
    start: int
    size: int
    link: int


class Object:
    """An ELF object of our own compiler, whose functions are all in ``.text``. Raises struct.error if it is none."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        start, size, count, names = HEAD.unpack_from(data)
        records = [SECTION.unpack_from(data, start + index * size) for index in range(count)]
        texts = records[names][4]
        self.sections = [Section(self._text(texts + record[0]), record[1], record[4], record[5], record[6]) for record in records]

    def _text(self, at: int) -> str:
        return self.data[at : self.data.find(b"\0", at)].decode("latin-1")

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def functions(self) -> Iterator[tuple[str, int, int]]:
        """Names, where they begin in ``.text``, and their bytes."""
        for table in self.sections:
            if table.kind == SYMBOL_TABLE:
                names = self.sections[table.link].start
                for at in range(table.start, table.start + table.size, SYMBOL.size):
                    name, info, _, _, value, size = SYMBOL.unpack_from(self.data, at)
                    if info & 0xF == FUNCTION:
                        yield self._text(names + name), value, size

    def lines(self) -> bytes:
        """The line table, relative to ``.text``."""
        table, relocations = self.section(".debug_line"), self.section(".rela.debug_line")
        if table is None:
            return b""
        data = bytearray(self.data[table.start : table.start + table.size])
        if relocations is not None:
            for at in range(relocations.start, relocations.start + relocations.size, RELOCATION.size):
                offset, _, addend = RELOCATION.unpack_from(self.data, at)
                ADDRESS.pack_into(data, offset, addend)
        return bytes(data)


def tell(data: bytes, symbol: str, section: int, kernel: str) -> None:
    """Tell those who want it of the code of a kernel, the function ``symbol`` in a section at an address."""
    tools = wanted()
    if "perf" in tools:
        tell_perf(data, symbol, section, kernel, os.getpid())
    if "gdb" in tools:
        lib.pe_gdb_tell(data, len(data), section)


def tell_perf(data: bytes, symbol: str, section: int, kernel: str, process: int) -> None:
    """The same of code in a process of this user's. Raises OSError."""
    found = Object(data)
    functions = {name: (start, size) for name, start, size in found.functions()}
    stretches = ranges(found, functions, symbol, kernel)
    _add_to_map((f"{section + start:x} {size:x} {name}\n" for start, size, name in stretches), process)


def _add_to_map(lines: Iterable[str], process: int) -> None:
    """To that of a process. Others may write to its folder: a link of theirs is not followed."""
    number = os.open(f"/tmp/perf-{process}.map", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with open(number, "a", encoding="utf-8", errors="replace") as file:
        file.writelines(lines)


def ranges(found: Object, functions: dict[str, tuple[int, int]], symbol: str, kernel: str) -> Iterator[tuple[int, int, str]]:
    """Stretches of code and what perf is to call them: ``saxpy saxpy.cu:5``. Code of no line belongs to the line before."""
    rows = list(rows_of(found.lines()))
    for name, (start, size) in functions.items():
        called = plain_name(kernel) if name == symbol else f"{plain_name(kernel)} {name}"
        at, label = start, called
        for row in rows:
            if row.place is None or not row.place.line or not start <= row.address < start + size:
                continue
            other = f"{called} {Path(row.place.file).name}:{row.place.line}"
            if other != label and row.address > at:
                yield at, row.address - at, label
                at = row.address
            label = other
        if start + size > at:
            yield at, start + size - at, label
