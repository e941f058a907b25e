"""Sweeps: ``[[matrix]]`` tables of a case file. Each of their points is a case, ``scan.toml[block=128,n=1000]``."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from ptxemu.case.arithmetic import GREATEST, LEAST, calculate
from ptxemu.case.table import Table
from ptxemu.text.errors import InputError, shown

KEY = "matrix"
POINTS = "points"  # of a table: points that are written out
MAX_POINTS = 10_000  # of a case
MAX_NAMES = 16
NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
WORD = re.compile(r"[\w.+-]{1,64}", re.ASCII)  # values are part of names of files
CALCULATED = re.compile(r"\$\{([^{}]*)\}")
NAMED = re.compile(r"(.+)\[([^\[\]/]*)\]", re.DOTALL)

Value = int | float | bool | str | list[int]
Point = dict[str, Value]
Axis = Sequence[Point]


def split_point(path: Path) -> tuple[Path, str | None]:
    """A path, and the point of its sweep that is named behind it in brackets, if one is."""
    match = NAMED.fullmatch(str(path))
    if match is None or os.path.exists(path):
        return path, None
    return Path(match[1]), match[2]


def with_point(path: Path, label: str | None) -> Path:
    """What a case of a sweep is called: the inverse of ``split_point``."""
    return path if label is None else Path(f"{path}[{label}]")


def labels(root: Table) -> list[str]:
    """What the points of a case's sweep are called, each once; nothing if it has none."""
    sweeps = _sweeps(root)
    return list(dict.fromkeys(label(point) for axes in sweeps for point in _points(axes)))


def label(point: Point) -> str:
    """``block=128,n=1000``."""
    return ",".join(f"{name}={_text(value)}" for name, value in point.items())


def at_point(root: Table, wanted: str | None) -> Table:
    """A case file's table as it is at a point of its sweep, or as it is if it has none."""
    sweeps = _sweeps(root)
    if not sweeps:
        if wanted is not None:
            raise InputError(f"{root.file}: is no sweep: there is no [[{KEY}]]")
        return root
    first = label(next(_points(sweeps[0])))
    if wanted is None:
        count = sum(_count(axes) for axes in sweeps)
        raise InputError(f"{root.file}: is a sweep of {count} cases: name one, such as '{root.file}[{first}]'")
    point = next((found for axes in sweeps if (found := _find(axes, wanted)) is not None), None)
    if point is None:
        raise InputError(f"{root.file}: its sweep has no point {shown(wanted)}; the first is '{first}'")
    rest = {key: value for key, value in root.data.items() if key != KEY}
    try:
        return Table(root.file, "", _calculated(rest, point, root))
    except RecursionError:
        raise InputError(f"{root.file}: arrays and tables are nested too deeply") from None


def _sweeps(root: Table) -> list[list[Axis]]:
    """The axes of each table; every choice of one point of each axis is a point."""
    sweeps = [_axes(table) for table in root.tables(KEY)]
    count = sum(_count(axes) for axes in sweeps)
    if count > MAX_POINTS:
        raise root.fail(KEY, f"has {count} points, more than {MAX_POINTS}")
    return sweeps


def _count(axes: list[Axis]) -> int:
    return math.prod(len(axis) for axis in axes)


def _axes(table: Table) -> list[Axis]:
    axes = [_written_out(table) if key == POINTS else _values(table, key) for key in table.names()]
    names = [name for axis in axes for name in axis[0]]
    if not names:
        raise table.fail("", "is empty")
    if len(set(names)) < len(names):
        raise table.fail(POINTS, "name something that has a list as well")
    if len(names) > MAX_NAMES:
        raise table.fail("", f"has {len(names)} names, more than {MAX_NAMES}")
    return axes


def _values(table: Table, key: str) -> Axis:
    values = table.data[key]
    if not isinstance(values, list) or not values:
        raise table.fail(key, f"must be a list of values, not {shown(values)}")
    return [_checked({key: value}, table, "") for value in values]


def _written_out(table: Table) -> Axis:
    points = [_checked(dict(point.data), point, "") for point in table.tables(POINTS)]
    if not points:
        raise table.fail(POINTS, "is empty")
    for number, point in enumerate(points):
        if point.keys() != points[0].keys():
            raise table.fail(f"{POINTS}[{number}]", f"must have the names of the first: {', '.join(points[0])}")
    return points


def _checked(point: Point, table: Table, place: str) -> Point:
    for name, value in point.items():
        if not NAME.fullmatch(name):
            raise table.fail(place, f"{shown(name)} is no name: letters, digits and _")
        if not _is_value(value) or not WORD.fullmatch(_text(value)):
            raise table.fail(name, f"must be a number, a word of letters, digits and . + - _ or a shape, not {shown(value)}")
    return point


def _is_value(value: object) -> bool:
    if isinstance(value, int):
        return LEAST <= value <= GREATEST
    if isinstance(value, list):
        return 0 < len(value) <= 3 and all(type(item) is int and _is_value(item) for item in value)
    return isinstance(value, float | str)


def _points(axes: list[Axis]) -> Iterator[Point]:
    for parts in product(*axes):
        yield {name: value for part in parts for name, value in part.items()}


def _find(axes: list[Axis], wanted: str) -> Point | None:
    """The point of this name, found without making the others."""
    texts = dict(part.partition("=")[::2] for part in wanted.split(","))
    point: Point = {}
    for axis in axes:
        part = next((part for part in axis if all(texts.get(name) == _text(value) for name, value in part.items())), None)
        if part is None:
            return None
        point |= part
    return point if label(point) == wanted else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def _calculated(data: Any, point: Point, root: Table, place: str = "") -> Any:
    """Data in which ``${...}`` is replaced: by a value where it is all of a text, else by a text."""
    if isinstance(data, dict):
        return {key: _calculated(value, point, root, f"{place}.{key}" if place else key) for key, value in data.items()}
    if isinstance(data, list):
        return [_calculated(value, point, root, f"{place}[{number}]") for number, value in enumerate(data)]
    if not isinstance(data, str) or "${" not in data:
        return data
    whole = CALCULATED.fullmatch(data)
    if whole is not None:
        return _calculate(whole[1], point, root, place)
    return CALCULATED.sub(lambda match: _text(_calculate(match[1], point, root, place)), data)


def _calculate(text: str, point: Point, root: Table, place: str) -> Any:
    try:
        return calculate(text, point)
    except ValueError as error:
        raise root.fail(place, f"{shown(f'${{{text}}}')}: {error}") from None
