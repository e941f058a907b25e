"""The arguments of launches, in cases and on the command line (docs/commands.md, "Structs")."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from ptxemu.case.arrays import dtype_of, values
from ptxemu.case.images import ConstantSpec, read_constants
from ptxemu.case.sources import ArraySpec, read_array
from ptxemu.case.table import Table
from ptxemu.device.structs import DEEPEST, POINTER, ByValue
from ptxemu.text.errors import InputError, shown
from ptxemu.text.suggestions import closest

STRUCT = "struct"
REFERENCES = {"ptr": "array", "handle": "surface, texture or sampler"}
VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|half|float|double)([234])")  # of CUDA C++
WIDEST = 16  # bytes that vectors are aligned to at most


class Name(Struct, frozen=True):
    """An argument that names a buffer, surface, texture or sampler. ``kind`` is the one of REFERENCES that it must be, if any."""

    name: str
    kind: str | None = None


class StructSpec(Struct, frozen=True):
    """A struct in members: numbers, what pointers and handles in it refer to, and structs."""

    members: tuple[ByValue | Name | StructSpec, ...]

    def names(self) -> Iterator[Name]:
        """All that it refers to."""
        for member in self.members:
            if isinstance(member, StructSpec):
                yield from member.names()
            elif isinstance(member, Name):
                yield member

    def resolved(self, find: Callable[[str], object]) -> list[object]:
        """The members as kernels take them; ``find`` knows what is named."""
        return [
            member.resolved(find) if isinstance(member, StructSpec) else find(member.name) if isinstance(member, Name) else member
            for member in self.members
        ]


Argument = Name | StructSpec | ConstantSpec | bytes | int | float


def check_names(argument: Argument, arrays: Collection[str], handles: Collection[str], where: str) -> None:
    """Whether there is what an argument refers to by name: one of the arrays, or a surface, texture or sampler."""
    names = argument.names() if isinstance(argument, StructSpec) else [argument] if isinstance(argument, Name) else []
    for item in names:
        known = {"ptr": arrays, "handle": handles}.get(item.kind or "", {*arrays, *handles})
        if item.name not in known:
            what = REFERENCES.get(item.kind or "", "array, surface, texture or sampler")
            raise InputError(f"{where}: no {what} is named {shown(item.name)}{closest(item.name, known)}")


def read_argument(table: Table, key: str, buffers: dict[str, ArraySpec], folder: Path) -> Argument:
    """The argument that a case gives; an array that it describes becomes a buffer."""
    value = table.any(key)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return Name(value)
    if isinstance(value, dict) and "bytes" in value:
        inner = table.table(key)
        text = inner.need("bytes", str)
        inner.finish()
        return from_hexadecimal(text, inner.where("bytes"))
    if isinstance(value, dict) and "registers" in value:
        return read_constants(table.table(key))
    if isinstance(value, dict) and STRUCT in value:
        inner = table.table(key)
        found = _read_struct(inner, 0)
        inner.finish()
        return found
    if key in buffers:
        raise table.fail(key, f'the case has an array of this name; say {key} = "{key}" to use it')
    buffers[key] = read_array(table.table(key), folder)
    return Name(key)


def _read_struct(table: Table, depth: int) -> StructSpec:
    """The struct of a list of tables with one key, the type of the member: ``[{ u32 = 1000 }, { ptr = "x" }]``."""
    check_depth(depth, table.where())
    members: list[ByValue | Name | StructSpec] = []
    for item in table.tables(STRUCT):
        names = item.names()
        if len(names) != 1:
            raise item.fail("", 'must be one member, such as { u32 = 1000 } or { ptr = "x" }')
        kind = names[0]
        members.append(_read_struct(item, depth + 1) if kind == STRUCT else member(kind, item.any(kind), item.where()))
    return StructSpec(tuple(members))


def check_depth(depth: int, where: str) -> None:
    if depth > DEEPEST:
        raise InputError(f"{where}: structs are nested more than {DEEPEST} deep")


def member(kind: str, value: Any, where: str) -> ByValue | Name:
    """A member of a type with a value: a number, a list of them for an array or a vector, or the name of what a pointer is to."""
    if kind in REFERENCES:
        return _reference(kind, value, where)
    if kind == "bytes":
        if not isinstance(value, str):
            raise InputError(f"{where}: bytes are a text of hexadecimal digits, not {shown(value)}")
        return ByValue(from_hexadecimal(value, where), 1)
    vector = VECTOR.fullmatch(kind)
    name = vector[1] if vector else kind
    dtype = dtype_of(name, where)
    array = values({"dtype": name, "values": value}, where)
    if vector and array.shape != (int(vector[2]),):
        raise InputError(f"{where}: {kind} has {vector[2]} elements, not {shown(value)}")
    align = min(WIDEST, array.nbytes) if vector and vector[2] in "24" else dtype.alignment
    return ByValue(array.tobytes(), align)


def _reference(kind: str, value: Any, where: str) -> ByValue | Name:
    if isinstance(value, str) and value:
        return Name(value, kind)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << (8 * POINTER):
        return ByValue(np.uint64(value).tobytes(), POINTER)
    raise InputError(f"{where}: {kind} is a name ({REFERENCES[kind]}) or 0, not {shown(value)}")


def from_hexadecimal(text: str, where: str) -> bytes:
    """Bytes in digits, two each."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InputError(f"{where}: must be hexadecimal digits, two a byte") from None
