"""Argument values on the command line: numbers, files and generated arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ptxemu.case.arguments import from_hexadecimal
from ptxemu.case.array_files import load_array
from ptxemu.case.arrays import GENERATORS, Array, dtype_of
from ptxemu.cli.extents import parse_shape
from ptxemu.text.errors import InputError, shown

Value = int | float | bytes | Array


def split_pair(text: str, option: str) -> tuple[str, str]:
    """``name=value`` as a pair."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise InputError(f"{option} {text}: must be name=value")
    return name, value


def parse_value(text: str, where: str) -> Value:
    """A number, ``@file.npy``, ``@file.png``, ``bytes:HEX``, or ``zeros|full|arange|random:dtype:shape:...``."""
    if text.startswith("@"):
        return load_array(Path(text[1:]), where)
    kind, colon, rest = text.partition(":")
    if colon:
        return from_hexadecimal(rest, f"{where}: bytes") if kind == "bytes" else _generated(kind, rest, where)
    number = parse_number(text)
    if number is None:
        raise InputError(f"{where}: {shown(text)} is not a number, @file.npy or an array such as zeros:f32:1024")
    return number


def parse_number(text: str) -> int | float | None:
    """An integer in Python's notations, or a float; None if the text is neither, or is too large for either."""
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isinf(number) and any(digit in text for digit in "0123456789") else number


def _generated(kind: str, rest: str, where: str) -> Array:
    if kind not in GENERATORS:
        raise InputError(f"{where}: no array is made by {shown(kind)}; there are {', '.join(GENERATORS)}")
    dtype, *fields = rest.split(":")
    dtype_of(dtype, where)
    make, keys = GENERATORS[kind]
    if not fields or len(fields) >= len(keys):
        raise InputError(f"{where}: must be {':'.join([kind, *keys])}")
    spec: dict[str, Any] = {"dtype": dtype, "shape": parse_shape(fields[0], where)}
    for name, text in zip(keys[2:], fields[1:], strict=False):
        number = parse_number(text)
        if number is None:
            raise InputError(f"{where}: {name} {shown(text)} is not a number")
        spec[name] = number
    return make(spec, where)
