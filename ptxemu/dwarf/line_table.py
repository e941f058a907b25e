"""Line tables of machine code: ``.debug_line`` as LLVM writes it (DWARF 4, section 6.2)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxemu.dwarf.stream import DwarfError, Stream
from ptxemu.text.source import Location

COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, CONST_ADD_PC, FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
END_SEQUENCE, SET_ADDRESS = 1, 2
VERSIONS = range(2, 5)


class Row(Struct, frozen=True):
    """From an address on code belongs to ``place``; None ends a sequence."""

    address: int
    place: Location | None


class _Head(Struct):
    files: list[str]
    shortest: int
    line_base: int
    line_range: int
    opcode_base: int
    operands: bytes


def rows_of(data: bytes) -> Iterator[Row]:
    """All of a section, in the order of its sequences. Raises DwarfError."""
    stream = Stream(data)
    while stream.left:
        end = stream.number(4) + stream.at
        if end > len(data):
            raise DwarfError("a line table is longer than its section")
        unit = Stream(data, stream.at, end)
        yield from _rows(unit, _head(unit))
        stream.at = end


def _head(stream: Stream) -> _Head:
    version = stream.number(2)
    if version not in VERSIONS:
        raise DwarfError("line tables of other versions are not read")
    program = stream.number(4) + stream.at
    shortest = stream.number(1)
    stream.bytes(1 if version < 4 else 2)  # of machines with several operations an instruction; what statements are by default
    base, extent, opcodes = stream.number(1, signed=True), stream.number(1), stream.number(1)
    if not extent or not opcodes:
        raise DwarfError("a line table has no opcodes")
    operands = stream.bytes(opcodes - 1)
    folders, files = [""], [""]
    while folder := stream.string():
        folders.append(folder)
    while name := stream.string():
        number, _, _ = stream.leb(), stream.leb(), stream.leb()
        folder = folders[number] if number < len(folders) else ""
        files.append(f"{folder}/{name}" if folder and name[0] != "/" else name)
    stream.at = program
    return _Head(files, shortest, base, extent, opcodes, operands)


def _rows(stream: Stream, head: _Head) -> Iterator[Row]:
    address, file, line = 0, 1, 1

    def row() -> Row:
        name = head.files[file] if file < len(head.files) else ""
        return Row(address, Location(name, line))

    while stream.left:
        opcode = stream.number(1)
        if opcode >= head.opcode_base:
            steps, change = divmod(opcode - head.opcode_base, head.line_range)
            address, line = address + steps * head.shortest, line + head.line_base + change
            yield row()
        elif opcode == 0:
            extended = Stream(stream.data, stream.at)
            size = extended.leb()
            stream.at = extended.at
            content = Stream(stream.bytes(size))
            kind = content.number(1)
            if kind == END_SEQUENCE:
                yield Row(address, None)
                address, file, line = 0, 1, 1
            elif kind == SET_ADDRESS:
                address = content.number(content.left)
        elif opcode == COPY:
            yield row()
        elif opcode == ADVANCE_PC:
            address += stream.leb() * head.shortest
        elif opcode == ADVANCE_LINE:
            line += stream.leb(signed=True)
        elif opcode == SET_FILE:
            file = stream.leb()
        elif opcode == CONST_ADD_PC:
            address += (255 - head.opcode_base) // head.line_range * head.shortest
        elif opcode == FIXED_ADVANCE_PC:
            address += stream.number(2)
        else:
            for _ in range(head.operands[opcode - 1]):
                stream.leb()
