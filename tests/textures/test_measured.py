"""What a GPU returned for texture fetches of all kinds: an H200, whose words are in ``tests/data/textures_sm_90.npz``.

The file has some lanes of each of 576 launches, drawn at random; all 994,421 lanes were compared when it was made.  Of
16 launches of ``test_texture.py`` that taught more rules it has all lanes.  A spec
has the instruction, the texture and its sampler, and the rows of its operands (:data:`tests.support.texture_cases.ROWS`).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

import ptxemu
from tests.support.places import DATA
from tests.support.texture_cases import HEADER, LANES, ROWS, entry

WORDS = DATA / "textures_sm_90.npz"
GROUPS = (
    "srgb",
    "table",
    "filter",
    "hot",
    "special",
    "mip",
    "address",
    "pos",
    "frac",
    "int",
    "cube",
    "gather",
    "border",
    "layers",
)


@cache
def recorded() -> tuple[np.ndarray, list[dict[str, Any]]]:
    with np.load(WORDS) as data:
        return data["words"], json.loads(bytes(data["specs"]))


def array(described: dict[str, Any]) -> np.ndarray:
    """An array of the file: its words, or a value that all of it has or counts from."""
    shape, dtype = described["shape"], np.dtype(described["dtype"])
    count = int(np.prod(shape))
    if "all" in described:
        return np.full(shape, described["all"], dtype)
    if "from" in described:
        return (np.arange(count, dtype=dtype) + dtype.type(described["from"])).reshape(shape)
    words = recorded()[0][described["at"] :]
    return words[: -(-count * dtype.itemsize // 4)].view(np.uint8)[: count * dtype.itemsize].view(dtype).reshape(shape)


def texture_of(spec: dict[str, Any]) -> Any:
    levels = [array(level) for level in spec["levels"]]
    device = ptxemu.default_device()
    if len(levels) == 1:
        return device.texture(levels[0], geometry=spec["geometry"], **spec["options"])
    made = device.texture(levels[0].shape, geometry=spec["geometry"], levels=len(levels), **spec["options"])
    for number, level in enumerate(levels):
        made.surface.upload(level, number)
    return made


@cache
def kernel(text: str) -> ptxemu.Kernel:
    return ptxemu.loads(HEADER + entry(text))["k"]


def fetched(spec: dict[str, Any]) -> np.ndarray:
    """The results of a spec's lanes, [component][lane]; they are run by warps of which the last repeats its first lane."""
    texture, rows = texture_of(spec), {name: array(row) for name, row in spec["rows"].items()}
    count = len(next(iter(rows.values())))
    found = []
    for first in range(0, count, LANES):
        inputs = np.zeros((len(ROWS), LANES), np.uint32)
        for name, values in rows.items():
            part = values[first : first + LANES]
            inputs[ROWS.index(name)] = np.concatenate([part, np.repeat(part[:1], LANES - len(part))])
        out = np.zeros((4, LANES), np.uint32)
        kernel(spec["text"])[1, LANES](texture, inputs, out)
        found.append(out)
    return np.concatenate(found, axis=1)[:, :count]


@pytest.mark.parametrize("group", GROUPS)
def test_words_are_those_of_the_gpu(group: str) -> None:
    specs = [spec for spec in recorded()[1] if spec["key"].startswith(group)]
    assert specs
    for spec in specs:
        got, want = fetched(spec), array(spec["results"])
        wrong = np.argwhere(got != want)
        where = f"{spec['key']}: {spec['text']}, {spec['options']}"
        assert not wrong.size, f"{where}: component, lane {wrong[0]}: {got[tuple(wrong[0])]:#x}, not {want[tuple(wrong[0])]:#x}"
