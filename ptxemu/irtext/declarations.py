"""Reading declarations of variables."""

from __future__ import annotations

import re

from ptxemu.ir.ops import Variable
from ptxemu.ir.types import TYPES
from ptxemu.irtext.cursor import Cursor, Problem
from ptxemu.irtext.words import natural


def declared(cursor: Cursor, space: str, pos: int) -> Variable:
    """``@name: type[extents]``, and alignment and size."""
    cursor.expect("@")
    name = cursor.name()
    cursor.expect(":")
    return extent(cursor, name, space, pos)


EXTENT = re.compile(r"(?:v(?P<vector>\d+)\.)?(?P<type>\w+)(?P<dims>(?:\[\d*\])*)")


def extent(cursor: Cursor, name: str, space: str, pos: int) -> Variable:
    match = cursor.match(EXTENT, "a type")
    if match["type"] not in TYPES:
        raise Problem(f"there is no type '{match['type']}'")
    kind, vector = TYPES[match["type"]], int(match["vector"] or 1)
    dims = tuple(int(digits) if digits else None for digits in re.findall(r"\[(\d*)\]", match["dims"]))
    align, size = natural(kind, vector, dims)
    align = cursor.integer() if cursor.keyword("align") else align
    size = cursor.integer() if cursor.keyword("size") else size
    return Variable(name, space, kind, vector, dims, size, align, [], [], "", pos)
