"""Tensor maps that an H200 made: what cuTensorMapEncode* returned and wrote, and what tensormap.replace changed.

``tests/data/tensor_maps.npz`` has a random sample of what was recorded (driver 580.159, CUDA 13.0, sm_90): 3,123 of 39,663 calls,
of which 13,185 made a map, and 1,452 of 13,552 changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.support.places import DATA

WORDS = dict(np.load(DATA / "tensor_maps.npz"))
APIS = ("Tiled", "Im2col", "Im2colWide")
NONE = 0xDEADDEADDEADDEAD  # no such argument
LENGTHS = {"dim": 5, "stride": 4, "box": 5, "step": 5, "lower": 3, "upper": 3}
ORDER = {
    "Tiled": ("type", "rank", "address", "dim", "stride", "box", "step", "interleave", "swizzle", "promotion", "fill"),
    "Im2col": ("type", "rank", "address", "dim", "stride", "lower", "upper", "channels", "pixels", "step", "interleave",
               "swizzle", "promotion", "fill"),
    "Im2colWide": ("type", "rank", "address", "dim", "stride", "lower", "upper", "channels", "pixels", "step", "interleave",
                   "mode", "swizzle", "promotion", "fill"),
}  # fmt: skip


class Call(NamedTuple):
    """Arguments, arrays as tuples; the CUresult; and the map, if there is one."""

    api: str
    arguments: dict[str, int | tuple[int, ...]]
    error: int
    made: bytes


def calls() -> Iterator[Call]:
    columns = {str(name): place for place, name in enumerate(WORDS["columns"])}
    for row, error, made in zip(WORDS["arguments"], WORDS["errors"], WORDS["maps"]):
        api = APIS[int(row[columns["api"]])]
        given: dict[str, int | tuple[int, ...]] = {}
        for name in ORDER[api]:
            places = [columns.get(f"{name}{number}", -1) for number in range(LENGTHS.get(name, 0))]
            values = tuple(int(row[place]) for place in places if int(row[place]) != NONE)
            scalar = not places or (api == "Im2colWide" and name in ("lower", "upper"))
            given[name] = int(row[columns.get(name, places[0] if places else -1)]) if scalar else values
        yield Call(api, given, int(error), made.tobytes())


class Change(NamedTuple):
    """A field that became a value, in a map that was and that is."""

    value: int
    before: bytes
    after: bytes


def changes() -> dict[tuple[str, int | None], list[Change]]:
    """Those of each field with each ordinal, if it has any."""
    found: dict[tuple[str, int | None], list[Change]] = {}
    columns = (WORDS[name] for name in ("fields", "ordinals", "values", "before", "after"))
    for field, ordinal, value, before, after in zip(*columns):
        key = str(field), None if ordinal == 255 else int(ordinal)
        found.setdefault(key, []).append(Change(int(value), before.tobytes(), after.tobytes()))
    return found
