"""The entries of ``.debug_info``, as a tree: each with its tag and its attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ptxemu.dwarf.names import At, Tag
from ptxemu.dwarf.sections import Sections
from ptxemu.dwarf.stream import DwarfError, Stream

VERSIONS = range(2, 6)
ADDRESS_BYTES = (4, 8)
MOST_ENTRIES = 2_000_000  # of the tree, and of all tables of abbreviations
MOST_ATTRIBUTES = 64  # of an entry
DEEPEST = 200  # entries within entries
IMPLICIT_CONST = 0x21
KEPT = frozenset(At)
Abbreviation = tuple[int, bool, list[tuple[int, int, int]]]
"""A tag, whether there are children, and attributes with their forms, and the value if the form is implicit."""


class Entry(Struct, eq=False):
    """``attributes`` are numbers, texts, or the bytes of blocks; references are offsets in the section."""

    offset: int
    tag: int
    attributes: dict[int, Any]
    parent: Entry | None
    children: list[Entry] = []

    def number(self, attribute: At) -> int | None:
        found = self.attributes.get(attribute)
        return found if isinstance(found, int) else None

    def walk(self, tags: frozenset[Tag]) -> Iterator[Entry]:
        """The entries below this one, and those below entries of ``tags``."""
        for child in self.children:
            yield child
            if child.tag in tags:
                yield from child.walk(tags)


class _Unit(Struct):
    """What forms depend on."""

    begin: int
    version: int
    address: int  # bytes of one
    sections: Sections


def entries_of(sections: Sections) -> dict[int, Entry]:
    """All entries by their offsets. What is behind a damage is left out."""
    reader = _Reader(sections)
    with suppress(DwarfError):
        reader.read()
    return reader.found


class _Reader:
    def __init__(self, sections: Sections) -> None:
        self.sections = sections
        self.found: dict[int, Entry] = {}
        self.tables: dict[int, dict[int, Abbreviation]] = {}
        self.declared = 0  # abbreviations of all tables

    def read(self) -> None:
        stream = Stream(self.sections.get(".debug_info"))
        while stream.left:
            begin = stream.at
            end = stream.number(4) + stream.at
            if end > stream.end:
                raise DwarfError("a unit of debug data is longer than its section")
            self._unit(begin, Stream(stream.data, stream.at, end))
            stream.at = end

    def _unit(self, begin: int, stream: Stream) -> None:
        version = stream.number(2)
        if version not in VERSIONS:
            raise DwarfError(f"DWARF of version {version} is not read")
        if version >= 5:
            stream.number(1)  # the kind of the unit
            address, table = stream.number(1), stream.number(4)
        else:
            table, address = stream.number(4), stream.number(1)
        if address not in ADDRESS_BYTES:
            raise DwarfError(f"addresses of {address} bytes are not read")
        self._tree(_Unit(begin, version, address, self.sections), self._table(table), stream)

    def _tree(self, unit: _Unit, table: dict[int, Abbreviation], stream: Stream) -> None:
        parents: list[Entry] = []
        while stream.left:
            offset, code = stream.at, stream.leb()
            if not code:
                parents = parents[:-1]
                continue
            if code not in table or len(parents) > DEEPEST or len(self.found) >= MOST_ENTRIES:
                raise DwarfError("an entry of the debug data has no abbreviation, or there are too many")
            tag, has_children, attributes = table[code]
            entry = Entry(offset, tag, _attributes(attributes, stream, unit), parents[-1] if parents else None)
            self.found[offset] = entry
            if entry.parent is not None:
                entry.parent.children.append(entry)
            if has_children:
                parents.append(entry)

    def _table(self, at: int) -> dict[int, Abbreviation]:
        """The abbreviations at an offset of their section, by code."""
        if at in self.tables:
            return self.tables[at]
        stream, found = Stream(self.sections.get(".debug_abbrev"), at), dict[int, Abbreviation]()
        while code := stream.leb():
            self.declared += 1
            if self.declared > MOST_ENTRIES:
                raise DwarfError("there are too many abbreviations")
            found[code] = stream.leb(), bool(stream.number(1)), list(_declared(stream))
        self.tables[at] = found
        return found


def _declared(stream: Stream) -> Iterator[tuple[int, int, int]]:
    """The attributes of an abbreviation."""
    for _ in range(MOST_ATTRIBUTES):
        name, form = stream.leb(), stream.leb()
        if not name and not form:
            return
        if form not in FORMS and form != IMPLICIT_CONST:
            raise DwarfError(f"form 0x{form:x} of debug data is not read")
        yield name, form, stream.leb(signed=True) if form == IMPLICIT_CONST else 0
    raise DwarfError("an entry of the debug data has too many attributes")


def _attributes(declared: list[tuple[int, int, int]], stream: Stream, unit: _Unit) -> dict[int, Any]:
    found = {}
    for name, form, implicit in declared:
        value = implicit if form == IMPLICIT_CONST else FORMS[form](stream, unit)
        if name in KEPT:
            found[name] = value
    return found


def _fixed(size: int) -> Callable[[Stream, _Unit], int]:
    return lambda stream, unit: stream.number(size)


def _reference(size: int) -> Callable[[Stream, _Unit], int]:
    return lambda stream, unit: unit.begin + (stream.number(size) if size else stream.leb())


def _block(size: int) -> Callable[[Stream, _Unit], bytes]:
    return lambda stream, unit: stream.bytes(stream.number(size) if size else stream.leb())


def _text(section: str) -> Callable[[Stream, _Unit], str]:
    return lambda stream, unit: Stream(unit.sections.get(section), stream.number(4)).string()


FORMS: dict[int, Callable[[Stream, _Unit], Any]] = {
    0x01: lambda stream, unit: stream.number(unit.address),  # addr
    0x03: _block(2), 0x04: _block(4), 0x09: _block(0), 0x0A: _block(1), 0x18: _block(0),  # blocks, exprloc
    0x05: _fixed(2), 0x06: _fixed(4), 0x07: _fixed(8), 0x0B: _fixed(1), 0x1E: lambda stream, unit: stream.bytes(16),  # data
    0x08: lambda stream, unit: stream.string(), 0x0E: _text(".debug_str"), 0x1F: _text(".debug_line_str"),
    0x0C: _fixed(1), 0x19: lambda stream, unit: 1,  # flags
    0x0D: lambda stream, unit: stream.leb(signed=True), 0x0F: lambda stream, unit: stream.leb(),  # sdata, udata
    0x10: lambda stream, unit: stream.number(unit.address if unit.version == 2 else 4),  # ref_addr
    0x11: _reference(1), 0x12: _reference(2), 0x13: _reference(4), 0x14: _reference(8), 0x15: _reference(0),
    0x17: _fixed(4), 0x20: _fixed(8), 0x22: lambda stream, unit: stream.leb(), 0x23: lambda stream, unit: stream.leb(),
}  # fmt: skip
"""How attributes are written, by the number of the form (dwarfstd.org, version 5, section 7.5.6)."""
