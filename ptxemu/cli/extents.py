"""Extents of grids, blocks and arrays on the command line."""

from __future__ import annotations

import re

from ptxemu.text.errors import LONGEST_SHOWN, InputError, shown

COUNT = re.compile(r" *[0-9]{1,20} *")  # longer ones are never right


def parse_extent(text: str, option: str) -> tuple[int, ...]:
    """``128``, ``16x16`` or ``16,16`` as a tuple."""
    parts = re.split(r"[x,]", text)
    if not 1 <= len(parts) <= 3 or not all(map(COUNT.fullmatch, parts)):
        raise InputError(f"{option} {text[:LONGEST_SHOWN]}: must be one to three numbers such as 256 or 16x16")
    return tuple(int(part) for part in parts)


def parse_shape(text: str, where: str) -> list[int]:
    """``1024`` or ``64x64`` as a list."""
    parts = re.split(r"[x,]", text)
    if not all(map(COUNT.fullmatch, parts)):
        raise InputError(f"{where}: shape {shown(text)} must be numbers such as 1024 or 64x64")
    return [int(part) for part in parts]
