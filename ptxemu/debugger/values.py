"""Values of variables, as text and by their parts; and as numbers for expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxemu.debugger.inspect import MOST_BYTES
from ptxemu.debugger.variables import Scope, Value
from ptxemu.dwarf.names import At, Encoding, Tag
from ptxemu.dwarf.stream import DwarfError
from ptxemu.dwarf.types import POINTERS, RECORDS
from ptxemu.text.errors import InputError, printable

MOST_ELEMENTS = 200  # that are shown of an array
DEEPEST = 8  # structs and arrays within each other
FLOATS = {2: "f2", 4: "f4", 8: "f8"}
CHARACTERS = (Encoding.SIGNED_CHAR, Encoding.UNSIGNED_CHAR)
SIGNED = (Encoding.SIGNED, Encoding.SIGNED_CHAR)


def has_parts(value: Value) -> bool:
    kind = value.type.plain
    return (
        value.count is not None
        or kind.tag in RECORDS
        or kind.tag == Tag.ARRAY_TYPE
        or (kind.tag in POINTERS and kind.target.tag != 0)
    )


def parts(scope: Scope, value: Value, most: int = MOST_ELEMENTS) -> Iterator[tuple[str, Value]]:
    """Members of a struct, elements of an array, what a pointer leads to; by name."""
    kind = value.type.plain
    if value.count is not None or kind.tag == Tag.ARRAY_TYPE:
        count = value.count if value.count is not None else next(iter(kind.counts), 0)
        yield from ((f"[{index}]", element(scope, value, index)) for index in range(min(count, most)))
    elif kind.tag in RECORDS:
        yield from ((member.name, part(value, member.offset, member)) for member in kind.members)
    elif kind.tag in POINTERS and kind.target.tag != 0:
        yield "*", scope.target(value)


def part(value: Value, offset: int, member: Any) -> Value:
    if value.place is not None:
        return Value(member.type, value.place + offset, field=member.bits)
    return Value(member.type, None, value.bits >> 8 * offset, field=member.bits)


def member(value: Value, name: str) -> Value:
    """A member of a struct by its name, also of one without a name in it, or of a base. Raises InputError."""
    found = _member(value, name, DEEPEST)
    if found is None:
        raise InputError(f"{value.type} has no member {name}")
    return found


def _member(value: Value, name: str, depth: int) -> Value | None:
    kind = value.type.plain
    if kind.tag not in RECORDS or not depth:
        return None
    for one in kind.members:
        if one.name == name:
            return part(value, one.offset, one)
        inner = _member(part(value, one.offset, one), name, depth - 1) if not one.name or one.name[0] == "<" else None
        if inner is not None:
            return inner
    return None


def element(scope: Scope, value: Value, index: int) -> Value:
    """An element of an array, or behind a pointer."""
    kind = value.type.plain
    if value.count is None and kind.tag in POINTERS:
        value = scope.target(value)
        element_type = value.type
    else:
        element_type = value.type if value.count is not None else kind.element
    offset = index * element_type.size
    if value.place is not None:
        return Value(element_type, value.place + offset)
    if offset < 0:
        raise InputError("there is nothing before what is in a register")
    return Value(element_type, None, value.bits >> 8 * offset)


# ---------------------------------------------------------------- as text


def shown(scope: Scope, value: Value, depth: int = DEEPEST) -> str:
    """As gdb shows it: ``{x = 1.5, name = "ab"}``; what cannot be read says why."""
    try:
        return _shown(scope, value, depth)
    except InputError as error:
        return f"<{error}>"


def _shown(scope: Scope, value: Value, depth: int) -> str:
    kind = value.type.plain
    if kind.tag in POINTERS:
        if value.count is None:
            return f"0x{scope.number(value):x}"
    elif kind.tag == Tag.ENUMERATION_TYPE and value.count is None:
        number = scalar(scope, value)
        return next((name for name, one in kind.values if one == number), str(number))
    if not has_parts(value):
        return _base(scope, value)
    if not depth:
        return "{...}"
    if value.place is not None and value.size <= MOST_BYTES:
        scope.raw(value)  # if it cannot be read, that is said once
    if _is_text(value):
        return _text(scope.raw(value))
    found = list(parts(scope, value, MOST_ELEMENTS + 1))
    texts = [(name, shown(scope, one, depth - 1)) for name, one in found[:MOST_ELEMENTS]]
    more = ", ..." if len(found) > MOST_ELEMENTS else ""
    if value.count is None and kind.tag in RECORDS:
        return "{" + ", ".join(f"{name} = {text}" for name, text in texts) + more + "}"
    return "{" + _repeats([text for _, text in texts]) + more + "}"


def _repeats(texts: list[str], least: int = 10) -> str:
    """Elements, with those that come often in a row shown once."""
    found, at = [], 0
    while at < len(texts):
        end = next((index for index in range(at, len(texts)) if texts[index] != texts[at]), len(texts))
        found += [f"{texts[at]} <repeats {end - at} times>"] if end - at >= least else texts[at:end]
        at = end
    return ", ".join(found)


def _is_text(value: Value) -> bool:
    kind = value.type.plain
    if kind.tag == Tag.ARRAY_TYPE and len(kind.counts) == 1:
        kind = kind.target.plain
    elif value.count is None:
        return False
    return kind.entry is not None and kind.entry.number(At.ENCODING) in CHARACTERS and value.size <= MOST_ELEMENTS


def _text(data: bytes) -> str:
    """Characters in quotes; zeros at the end are left out, but for one."""
    kept = data.rstrip(b"\0")
    return '"' + "".join(chr(one) if 32 <= one < 127 and one not in b'"\\' else f"\\{one:03o}" for one in kept) + '"'


def _base(scope: Scope, value: Value) -> str:
    number = scalar(scope, value)
    kind = value.type.plain
    if kind.entry is not None and kind.entry.number(At.ENCODING) in CHARACTERS and isinstance(number, int):
        return f"{number} {chr(number & 0xFF)!r}" if 32 <= number & 0xFF < 127 else f"{number} '\\{number & 0xFF:03o}'"
    return {True: "true", False: "false"}[number] if isinstance(number, bool) else str(number)


def described(scope: Scope, value: Value) -> str:
    """With its type where that says more: ``(float *) 0x7f00``."""
    text = shown(scope, value)
    return f"({printable(str(value.type))}) {text}" if value.count is None and value.type.plain.tag in POINTERS else text


def type_lines(value: Value) -> Iterator[str]:
    """Its type, and members if it is a struct."""
    kind = value.type.plain
    if kind.tag not in RECORDS or value.count is not None:
        yield str(value.type) if value.count is None else f"{value.type} [{value.count}]"
        return
    yield f"{value.type} {{"
    for one in kind.members:
        yield f"    {one.type} {one.name}{f' : {one.bits[1]}' if one.bits else ''};"
    yield f"}}  // {kind.size} bytes"


# ---------------------------------------------------------------- as numbers


def scalar(scope: Scope, value: Value) -> Any:
    """A number, or a truth value. Raises InputError for what is none."""
    kind = value.type.plain
    encoding = None if kind.entry is None else kind.entry.number(At.ENCODING)
    bits, size = scope.number(value), kind.size
    width = 8 * size if value.field is None else value.field[1]
    if encoding == Encoding.BOOLEAN:
        return bits != 0
    if encoding == Encoding.FLOAT and size in FLOATS:
        return np.frombuffer(bits.to_bytes(size, "little"), FLOATS[size])[0]
    if kind.tag in POINTERS:
        return bits
    if kind.tag == Tag.ENUMERATION_TYPE:
        return bits - (1 << width) if any(one < 0 for _, one in kind.values) and bits >> width - 1 else bits
    if encoding is None or encoding == Encoding.FLOAT:
        raise InputError(f"{value.type} is not a number")
    return bits - (1 << width) if encoding in SIGNED and width and bits >> width - 1 else bits


def plain(scope: Scope, value: Value) -> Any:
    """For expressions: a number, or an array of them."""
    kind = value.type.plain
    if value.count is None and kind.tag != Tag.ARRAY_TYPE:
        found = scalar(scope, value)
        return float(found) if isinstance(found, np.floating) else found
    if value.size > MOST_BYTES:
        raise DwarfError(f"{value.type} is longer than {MOST_BYTES} bytes")
    return np.array([plain(scope, one) for _, one in parts(scope, value, MOST_BYTES)])
