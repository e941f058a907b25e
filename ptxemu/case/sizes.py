"""The sizes in the data of a case file: extents of grids, blocks and arrays, and the numbers that tell kernels of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ptxemu.case.arrays import GENERATORS
from ptxemu.case.images import EXTENTS
from ptxemu.case.sources import FILES

Place = tuple[str | int, ...]
"""The way to a value: keys of tables and numbers in lists."""
IMAGES = ("surfaces", "textures")


def value_at(data: Any, place: Place) -> Any:
    """The value at a place."""
    for key in place:
        data = data[key]
    return data


def with_value(data: Any, place: Place, value: Any) -> Any:
    """A copy of the data with another value at a place; the rest is shared."""
    if not place:
        return value
    copy: Any = list(data) if isinstance(data, list) else dict(data)
    copy[place[0]] = with_value(data[place[0]], place[1:], value)
    return copy


def launches(data: dict[str, Any]) -> list[Place]:
    """Where the launches are."""
    return [("launch", number) for number in range(len(data["launch"]))] if "launch" in data else [()]


def axes(data: dict[str, Any], key: str) -> list[Place]:
    """Where the extents of the ``grid`` or ``block`` of each launch are that are more than 1."""
    found = []
    for launch in launches(data):
        value = value_at(data, launch)[key]
        found += [(*launch, key, axis) for axis in range(len(value))] if isinstance(value, list) else [(*launch, key)]
    return [place for place in found if _is_size(value_at(data, place))]


def sizes(data: dict[str, Any]) -> dict[int, list[Place]]:
    """Where extents of arrays, surfaces and textures are, and integer arguments, by their value: the same one is one size."""
    found: dict[int, list[Place]] = defaultdict(list)
    arguments = [(*launch, "args") for launch in launches(data)]
    for place, value in _leaves(data):
        is_extent = "shape" in place[-2:] or (place[0] in IMAGES and place[-1] in EXTENTS)
        if _is_size(value) and (is_extent or place[:-1] in arguments):
            found[value].append(place)
    return dict(found)


def arrays(data: dict[str, Any]) -> list[Place]:
    """Where the arrays are that launches get: tables of the case's buffers and of arguments."""
    groups = [("buffers",), *((*launch, "args") for launch in launches(data))]
    tables = [((*group, name), table) for group in groups for name, table in _table(data, group).items()]
    return [place for place, table in tables if isinstance(table, dict) and table.keys() & {*GENERATORS, "npy", "values"}]


def files(data: dict[str, Any]) -> list[Place]:
    """Where the names of files with arrays and pictures are."""
    arguments = [(*launch, "args") for launch in launches(data)]
    leaves = ((place, value) for place, value in _leaves(data) if place[-1] in FILES and place[:-1] not in arguments)
    return [place for place, value in leaves if isinstance(value, str)]


def threads(data: dict[str, Any]) -> int:
    """How many threads the smallest launch has."""
    counts = [_product(value_at(data, launch)[key] for key in ("grid", "block")) for launch in launches(data)]
    return min(counts)


def elements(data: dict[str, Any]) -> int:
    """How many elements the largest array with a shape has."""
    shapes = [value for place, value in _values(data) if place[-1] == "shape"]
    return max((_product([shape]) for shape in shapes), default=1)


def _product(extents: Any) -> int:
    return math.prod(math.prod(extent) if isinstance(extent, list) else extent for extent in extents)


def _is_size(value: Any) -> bool:
    return type(value) is int and value > 1


def _table(data: dict[str, Any], place: Place) -> dict[str, Any]:
    parent = value_at(data, place[:-1])
    found: dict[str, Any] = parent.get(place[-1], {})
    return found


def _leaves(data: Any) -> Iterator[tuple[Place, Any]]:
    return ((place, value) for place, value in _values(data) if not isinstance(value, dict | list))


def _values(data: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """All values with their places, but for literal contents of arrays."""
    if place:
        yield place, data
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key != "values":
            yield from _values(value, (*place, key))
