"""Boxes that an H200 copied: tiles, im2col and interleaved, with swizzles, steps, fills and reductions, from and to global.

``tests/data/tensor_boxes.npz`` has a random sample of what was recorded (driver 580.159, CUDA 13.0, sm_90).  A case is a map
whose address is 0, and what came of a copy with it: the bytes of shared memory that changed, or the places and values that
changed in global memory.  Tensors of ``words`` have the numbers 0, 1, 2 ... in their words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.support.places import DATA

SET = dict(np.load(DATA / "tensor_boxes.npz"))
UNTOUCHED = 0xA5  # what was in shared memory
WORDS = np.arange(1 << 18, dtype="u4")
SHARED_WORDS = np.arange(len(SET["shared"]) // 4, dtype="u4") | 0x10000000


class Box(NamedTuple):
    """Of a load: ``data`` are the bytes of shared memory from ``start`` on; of a store: ``at`` and ``data``."""

    made: bytes
    mode: str
    reduce: str
    coords: list[int]
    offsets: list[int]
    place: int
    memory: np.ndarray
    shared: np.ndarray
    stores: bool
    start: int
    at: np.ndarray
    data: np.ndarray

    @property
    def kind(self) -> tuple[str, int, bool, str, int]:
        """What tells which kernel it was."""
        return self.mode, len(self.coords), self.stores, self.reduce, self.place


def _blob(number: int) -> np.ndarray:
    ends = SET["ends"]
    return SET["data"][int(ends[number - 1]) if number else 0 : int(ends[number])]


def boxes() -> Iterator[Box]:
    for case in json.loads(SET["cases"].tobytes()):
        words, stores, number = case["memory"] == "words", case["store"], case["at"]
        memory = WORDS if words else SET["memory"][: case["bytes"]]
        shared = SHARED_WORDS.view("u1") if words else SET["shared"]
        at = _blob(number).view("u4") if stores else np.zeros(0, "u4")
        data = _blob(number + 1).view(memory.dtype) if stores else _blob(number)
        yield Box(bytes.fromhex(case["map"]), case["mode"], case["reduce"], case["coords"], case["offsets"], case["place"],
                  memory, shared, stores, case.get("from", 0), at, data)  # fmt: skip
