"""Copies of tensors as the PTX manual describes them (sections "Tensors" and "Swizzling Modes"), on NumPy arrays.

Coordinates are the manual's, innermost first; arrays are NumPy's, innermost last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

OUTSIDE = {2: 0x7FF7, 4: 0x7FF77FF7, 8: 0x7FF77FF77FF77FF7}  # the bits of NaN, by the bytes of an element, as measured on an H200
SPANS = {"none": 0, "32B": 32, "64B": 64, "96B": 96}  # bytes that a swizzled row takes; 128 of other modes

# The manual's tables: which 16 bytes of a line of 128 lie at each place, line after line.
TABLES = {
    "none": ["01234567"],
    "32B": ["01234567", "10325476"],
    "96B": ["01234567", "10325476"],
    "64B": ["01234567", "10325476", "23016745", "32107654"],
    "128B": ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
    "128B_atom_32B": ["01234567", "23016745", "45670123", "67452301"],
    "128B_atom_32B_flip_8B": ["01234567", "23016745", "45670123", "67452301"],
    "128B_atom_64B": ["01234567", "45670123"],
}


def swizzled(data: np.ndarray, mode: str, start: int = 0) -> np.ndarray:
    """Bytes (a multiple of 128 of them) as they lie in shared memory from ``start`` on, a multiple of 128."""
    lines = data.reshape(-1, 8, 2, 8)  # lines, their 16 bytes, and the halves of these
    out = np.empty_like(lines)
    for number, line in enumerate(lines):
        row = start // 128 + number
        table = TABLES[mode][row % len(TABLES[mode])]
        flip = mode.endswith("flip_8B") and row % 2
        for place, source in enumerate(table):
            out[number, place] = line[int(source)][::-1] if flip else line[int(source)]
    return out.reshape(-1)


def apart(rows: np.ndarray, width: int, mode: str) -> np.ndarray:
    """Rows of so many bytes, each in as many as are swizzled, as an H200 lays them."""
    lines = rows.view("u1").reshape(-1, width)
    return np.pad(lines, ((0, 0), (0, max(0, SPANS.get(mode, 128) - width)))).reshape(-1)


def element(array: np.ndarray, place: Sequence[int], nan: bool) -> np.ndarray:
    """The elements at a place along all axes but the last (whose places are an array), or what fills what is outside."""
    *outer, inner = place
    outside = array.dtype.type(0)
    if nan:
        outside = np.array(OUTSIDE[array.itemsize], f"u{array.itemsize}").view(array.dtype)[()]
    found = np.full(len(inner), outside, array.dtype)
    if all(0 <= at < size for at, size in zip(outer, array.shape)):
        inside = (inner >= 0) & (inner < array.shape[-1])
        found[inside] = array[tuple(outer)][inner[inside]]
    return found


def gathered(array: np.ndarray, rows: Iterator[Sequence[int]], first: int, width: int, nan: bool = False) -> np.ndarray:
    """Rows of ``width`` elements from ``first`` on, at places along all axes but the last."""
    return np.concatenate([element(array, (*row, first + np.arange(width)), nan) for row in rows])


def tile_rows(coords: Sequence[int], box: Sequence[int], steps: Sequence[int]) -> Iterator[Sequence[int]]:
    """Where the rows of a box begin: along each axis from the coordinate on, in steps, while that is in the box."""
    axes = [range(at, at + size, step) for at, size, step in zip(reversed(coords), box, steps)]
    return product(*axes[:-1])


def pixels(
    shape: Sequence[int], coords: Sequence[int], lower: Sequence[int], upper: Sequence[int], steps: Sequence[int],
    offsets: Sequence[int], count: int,
) -> Iterator[Sequence[int]]:  # fmt: skip
    """The pixels of an im2col copy: those of the bounding box, image by image, from the coordinates on.

    All but ``coords`` and ``offsets`` are in NumPy's order.
    """
    _, *start, image = coords
    sides = [range(low, size + high, step) for low, size, high, step in zip(lower, shape[1:-1], upper, steps[1:-1])]
    box = list(product(*sides))
    first = box.index(tuple(reversed(start)))
    for number in range(first, first + count):
        place = box[number % len(box)]
        yield image + number // len(box), *(at + shift for at, shift in zip(place, reversed(offsets)))
