"""Structs on the command line: ``{u32:1000,f32:2,ptr:x}``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxemu.case.arguments import REFERENCES, Name, StructSpec, check_depth, member
from ptxemu.cli.values import parse_number
from ptxemu.device.structs import ByValue
from ptxemu.text.errors import InputError, shown

OPEN, CLOSE = "{", "}"


def parse_struct(text: str, where: str, depth: int = 0) -> StructSpec:
    """The struct whose members a text in braces lists: ``TYPE:VALUE``, ``TYPE:{VALUE,...}`` or a struct in braces."""
    check_depth(depth, where)
    parts = enumerate(_parts(text, where))
    return StructSpec(tuple(_member(part, f"{where}, member {number}", depth) for number, part in parts))


def _member(text: str, where: str, depth: int) -> ByValue | Name | StructSpec:
    if text.startswith(OPEN):
        return parse_struct(text, where, depth + 1)
    kind, colon, written = text.partition(":")
    if not colon or not written:
        raise InputError(f"{where}: {shown(text)} is not TYPE:VALUE, such as u32:1000, ptr:NAME or float4:{{1,2,3,4}}")
    if kind == "bytes":
        return member(kind, written, where)
    if written.startswith(OPEN):
        return member(kind, [_number(part, where) for part in _parts(written, where)], where)
    is_name = kind in REFERENCES and parse_number(written) is None
    return member(kind, written if is_name else _number(written, where), where)


def _number(text: str, where: str) -> Any:
    number = parse_number(text)
    if number is None:
        raise InputError(f"{where}: {shown(text)} is not a number")
    return number


def _parts(text: str, where: str) -> Iterator[str]:
    """What lies between the commas of a text in braces, outside of braces in it."""
    if not text.endswith(CLOSE) or text.count(OPEN) != text.count(CLOSE):
        raise InputError(f"{where}: {shown(text)} needs as many }} as {{, and ends in }}")
    depth, begin = 0, 1
    for at, char in enumerate(text[1:], 1):
        if (char == "," and depth == 0) or at == len(text) - 1:
            yield text[begin:at].strip()
            begin = at + 1
        depth += (char == OPEN) - (char == CLOSE)
