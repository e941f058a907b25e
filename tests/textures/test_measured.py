"""What a GPU returned for texture fetches of all kinds, an H200's words in files of ``tests/data``.

``textures_sm_90.npz`` has some lanes of each of 576 launches, drawn at random; all 994,421 lanes were compared when it was made.
Of 16 launches of ``test_texture.py`` that taught more rules it has all lanes.  ``texture_levels_sm_90.npz`` has what was asked
later, of gradients first, of which 4 million were compared: of cubes only levels that do not hang on the last bit of a
reciprocal.  A spec has the instruction, the texture and its sampler, and the rows of its operands
(:data:`tests.support.texture_cases.ROWS`).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

import ptxemu
from tests.support.places import DATA
from tests.support.texture_cases import DIMS, HEADER, LANES, ROWS, entry
from tests.support.texture_gradients import cube_level, plain_level

GROUPS = {
    "textures_sm_90.npz": (
        "srgb", "table", "filter", "hot", "special", "mip", "address", "pos", "frac", "int", "cube", "gather", "border", "layers",
    ),
    "texture_levels_sm_90.npz": ("gradient", "wide", "line", "fraction", "levels", "depth"),
}  # fmt: skip


class Recorded:
    """A file: its specs, and the arrays that they describe."""

    def __init__(self, name: str) -> None:
        with np.load(DATA / name) as data:
            self.words: np.ndarray = data["words"]
            self.specs: list[dict[str, Any]] = json.loads(bytes(data["specs"]))

    def array(self, described: dict[str, Any]) -> np.ndarray:
        """An array of the file: its words, or a value that all of it has or counts from."""
        shape, dtype = described["shape"], np.dtype(described["dtype"])
        count = int(np.prod(shape))
        if "all" in described:
            return np.full(shape, described["all"], dtype)
        if "from" in described:
            return (np.arange(count, dtype=dtype) + dtype.type(described["from"])).reshape(shape)
        words = self.words[described["at"] :]
        return words[: -(-count * dtype.itemsize // 4)].view(np.uint8)[: count * dtype.itemsize].view(dtype).reshape(shape)

    def texture(self, spec: dict[str, Any]) -> Any:
        levels = [self.array(level) for level in spec["levels"]]
        device = ptxemu.default_device()
        if len(levels) == 1:
            return device.texture(levels[0], geometry=spec["geometry"], **spec["options"])
        made = device.texture(levels[0].shape, geometry=spec["geometry"], levels=len(levels), **spec["options"])
        for number, level in enumerate(levels):
            made.surface.upload(level, number)
        return made

    def fetched(self, spec: dict[str, Any]) -> np.ndarray:
        """The results of a spec's lanes, [component][lane]; they are run by warps of which the last repeats its first lane."""
        texture, rows = self.texture(spec), {name: self.array(row) for name, row in spec["rows"].items()}
        count = len(next(iter(rows.values())))
        found = []
        for first in range(0, count, LANES):
            inputs = np.zeros((len(ROWS), LANES), np.uint32)
            for name, values in rows.items():
                part = values[first : first + LANES]
                inputs[ROWS.index(name)] = np.concatenate([part, np.repeat(part[:1], LANES - len(part))]).view(np.uint32)
            out = np.zeros((4, LANES), np.uint32)
            kernel(spec["text"])[1, LANES](texture, inputs, out)
            found.append(out)
        return np.concatenate(found, axis=1)[:, :count]


recorded = cache(Recorded)


@cache
def kernel(text: str) -> ptxemu.Kernel:
    return ptxemu.loads(HEADER + entry(text))["k"]


@pytest.mark.parametrize(("file", "group"), [(file, group) for file, groups in GROUPS.items() for group in groups])
def test_words_are_those_of_the_gpu(file: str, group: str) -> None:
    specs = [spec for spec in recorded(file).specs if spec["key"].startswith(group)]
    assert specs
    for spec in specs:
        got, want = recorded(file).fetched(spec), recorded(file).array(spec["results"])
        wrong = np.argwhere(got != want)
        where = f"{spec['key']}: {spec['text']}, {spec['options']}"
        assert not wrong.size, f"{where}: component, lane {wrong[0]}: {got[tuple(wrong[0])]:#x}, not {want[tuple(wrong[0])]:#x}"


def test_model_has_the_levels_of_the_gpu() -> None:
    """The model of gradients, on some lanes of each launch."""
    file = recorded("texture_levels_sm_90.npz")
    for spec in (spec for spec in file.specs if spec["key"].startswith("gradient")):
        geometry, extents = spec["geometry"], spec["levels"][0]["shape"][::-1][: DIMS[spec["geometry"]]]
        rows = {name: file.array(row).view(np.float32) for name, row in spec["rows"].items()}
        axes = 3 if "cube" in geometry else len(extents)
        want = file.array(spec["results"])[0].view(np.float32)
        for lane in range(0, len(want), 5):
            steps = [[rows[f"{letter}{axis}"][lane] for axis in range(axes)] for letter in "gh"]
            position = [rows[name][lane] for name in "xyz"[:axes]]
            with np.errstate(all="ignore"):
                if "cube" in geometry:
                    level = cube_level(steps, extents[0], position)
                else:
                    level = plain_level(steps, extents, position if geometry == "3d" else None)
            biased = level + min(spec["options"].get("mip_bias", 0), 15)
            assert min(max(biased, 0), len(spec["levels"]) - 1) == want[lane], f"{spec['key']}, lane {lane}"
