"""The kernels of bench/kernels: what they are launched with, and what must come out, by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SEED = 1


@dataclass(frozen=True)
class Surface:
    """An array that the kernel reaches through a surface: rows of texels, planes of rows for three dimensions."""

    array: Array


@dataclass(frozen=True)
class Texture(Surface):
    """One that it samples by coordinates in texels: bilinearly, the edges go on."""


@dataclass(frozen=True)
class Case:
    """One launch.

    ``arguments`` are numbers, arrays and surfaces in the order of the parameters, ``expected`` the contents of some of them after
    the launch, by their index. ``tolerance`` is relative and absolute, 0 for equal bits; ``shared`` is the dynamic shared memory
    in bytes, ``cluster`` the blocks of a cluster. The C function takes ``extent`` in front of the arguments, since an array does
    not know its size there.
    """

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: list[int | float | Array | Surface]
    expected: dict[int, Array]
    tolerance: float = 0.0
    shared: int = 0
    extent: tuple[int, ...] = ()
    cluster: int = 1

    def check(self, index: int, found: Array) -> None:
        """Raises AssertionError if an argument does not hold what it must."""
        expected = self.expected[index]
        if self.tolerance:
            np.testing.assert_allclose(found, expected, rtol=self.tolerance, atol=self.tolerance)
        else:
            np.testing.assert_array_equal(found, expected)


Maker = Callable[[np.random.Generator, bool], Case]
CASES: dict[str, Maker] = {}
"""Makers by the name of the case, ``maker(random, small)``: that of the kernel, as a rule, or ``kernel:size``."""


def kernel_of(name: str) -> str:
    """What a case launches."""
    return name.partition(":")[0]


def case(maker: Maker) -> Maker:
    CASES[maker.__name__] = maker
    return maker


def make(name: str, small: bool = False) -> Case:
    """The case that is measured, or a small one for tests. The same at each call."""
    return CASES[name](np.random.default_rng(SEED), small)


def blocks(count: int, size: int) -> int:
    return -(-count // size)


def words(random: np.random.Generator, count: int) -> Array:
    return random.integers(0, 1 << 32, count, np.uint32)


def floats(random: np.random.Generator, *shape: int) -> Array:
    return random.uniform(-1, 1, shape).astype(np.float32)


@case
def saxpy(random: np.random.Generator, small: bool) -> Case:
    n = 10_007 if small else 1 << 24
    x, y, a = floats(random, n), floats(random, n), 1.5
    return Case((blocks(n, 256),), (256,), [n, a, x, y], {3: np.float32(a) * x + y}, 1e-6)


@case
def transpose(random: np.random.Generator, small: bool) -> Case:
    width, height = (131, 77) if small else (2048, 2048)
    values = floats(random, height, width)
    arguments = [width, height, values, np.zeros((width, height), np.float32)]
    return Case((blocks(width, 32), blocks(height, 32)), (32, 8), arguments, {3: values.T})


@case
def reduction(random: np.random.Generator, small: bool) -> Case:
    n = 10_007 if small else 1 << 24
    values = words(random, n)
    total = values.sum(dtype=np.uint32, keepdims=True)
    return Case((min(blocks(n, 256), 256),), (256,), [n, values, np.zeros(1, np.uint32)], {2: total}, shared=1024)


@case
def histogram(random: np.random.Generator, small: bool) -> Case:
    n = 2_501 if small else 1 << 22
    values = words(random, n)
    bins = np.bincount(values.view(np.uint8), minlength=256).astype(np.uint32)
    return Case((min(blocks(n, 256), 64),), (256,), [n, values, np.zeros(256, np.uint32)], {2: bins})


def _global_histogram(random: np.random.Generator, small: bool, bins: int) -> Case:
    n, bins = (2_501, min(bins, 512)) if small else (1 << 22, bins)
    values = words(random, n)
    counts = np.bincount(values % bins, minlength=bins).astype(np.uint32)
    return Case((min(blocks(n, 256), 1024),), (256,), [n, bins - 1, values, np.zeros(bins, np.uint32)], {3: counts})


for _bins in (256, 65_536):
    CASES[f"global_histogram:{_bins}"] = partial(_global_histogram, bins=_bins)


@case
def blur(random: np.random.Generator, small: bool) -> Case:
    width, height = (61, 37) if small else (1024, 1024)
    image = floats(random, height, width)
    padded = np.pad(image.astype(np.float64), 2)
    sums = sum(padded[dy : dy + height, dx : dx + width] for dy in range(5) for dx in range(5))
    arguments = [Surface(image), Surface(np.zeros_like(image))]
    return Case((blocks(width, 16), blocks(height, 16)), (16, 16), arguments, {1: sums / 25}, 1e-5, extent=(width, height))


@case
def bilinear(random: np.random.Generator, small: bool) -> Case:
    width, height = (61, 37) if small else (1024, 1024)
    picture, angle = floats(random, height, width), 0.3
    v, u = np.mgrid[:height, :width] - np.array([height, width]).reshape(2, 1, 1) / 2
    x = np.cos(angle) * u - np.sin(angle) * v + width / 2
    y = np.sin(angle) * u + np.cos(angle) * v + height / 2
    left, top = np.floor(x), np.floor(y)
    rows = [np.clip(top + step, 0, height - 1).astype(int) for step in (0, 1)]
    columns = [np.clip(left + step, 0, width - 1).astype(int) for step in (0, 1)]
    upper, lower = ((1 - (x - left)) * picture[row, columns[0]] + (x - left) * picture[row, columns[1]] for row in rows)
    turned = (1 - (y - top)) * upper + (y - top) * lower
    arguments = [Texture(picture), width, height, float(np.cos(angle)), float(np.sin(angle)), np.zeros_like(picture)]
    return Case((blocks(width, 16), blocks(height, 16)), (16, 16), arguments, {5: turned}, 1e-2)  # weights have 8 bits


def _mixed(value: Array) -> Array:
    value = (value ^ value >> 16) * np.uint32(0x7FEB352D)
    value = (value ^ value >> 15) * np.uint32(0x846CA68B)
    return value ^ value >> 16


@case
def surface_add(random: np.random.Generator, small: bool) -> Case:
    n, width, height = (5_000, 61, 37) if small else (1 << 22, 1024, 1024)
    i = np.arange(n, dtype=np.uint32)
    first = _mixed(i)
    x = (first % (width + width // 8)).astype(np.int64) - width // 16
    y = (_mixed(first) % (height + height // 8)).astype(np.int64) - height // 16
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    sums = np.bincount((y * width + x)[inside], (i & 7)[inside], width * height).astype(np.uint32).reshape(height, width)
    return Case((blocks(n, 256),), (256,), [n, width, height, Surface(np.zeros_like(sums))], {3: sums})


@case
def volume(random: np.random.Generator, small: bool) -> Case:
    width, height, depth = (19, 13, 7) if small else (256, 256, 64)
    texels = words(random, width * height * depth).reshape(depth, height, width)
    moved = texels[np.ix_(*((np.arange(size) + by).clip(0, size - 1) for size, by in ((depth, 1), (height, -1), (width, 1))))]
    arguments = [Surface(texels), Surface(np.zeros_like(texels))]
    grid = blocks(width, 32), blocks(height, 8), depth
    return Case(grid, (32, 8), arguments, {1: moved}, extent=(width, height, depth))


@case
def matmul(random: np.random.Generator, small: bool) -> Case:
    n = 64 if small else 512
    a, b = floats(random, n, n), floats(random, n, n)
    product = a.astype(np.float64) @ b.astype(np.float64)
    return Case((n // 16, n // 16), (16, 16), [n, a, b, np.zeros_like(a)], {3: product}, 1e-4)


@case
def nbody(random: np.random.Generator, small: bool) -> Case:
    n, softening = 256 if small else 8192, 1e-2
    bodies = floats(random, n, 4)
    pull = np.zeros((n, 4))
    for first in range(0, n, 256):
        part = bodies[None, :, :3].astype(np.float64) - bodies[first : first + 256, None, :3]
        weights = bodies[:, 3] / ((part**2).sum(2) + softening) ** 1.5
        pull[first : first + 256, :3] = (weights[:, :, None] * part).sum(1)
    arguments = [n, softening, bodies, np.zeros((n, 4), np.float32)]
    return Case((n // 256,), (256,), arguments, {3: pull}, 1e-2)


@case
def mandelbrot(random: np.random.Generator, small: bool) -> Case:
    width, height, rounds = (67, 41, 64) if small else (1024, 768, 256)
    left, top, step = np.float32(-2.1), np.float32(-1.2), np.float32(3 / width)
    cx = np.tile(left + step * np.arange(width, dtype=np.float32), height)
    cy = np.repeat(top + step * np.arange(height, dtype=np.float32), width)
    x, y = np.zeros((2, width * height), np.float32)
    counts, live = np.zeros(width * height, np.int32), np.arange(width * height)
    for _ in range(rounds):
        xx, yy, xy = x * x, y * y, x * y
        x, y = (xx - yy) + cx, (xy + xy) + cy
        inside = xx + yy <= 4
        live, cx, cy, x, y = (values[inside] for values in (live, cx, cy, x, y))
        counts[live] += 1
    arguments = [width, height, float(left), float(top), float(step), rounds, np.zeros_like(counts)]
    return Case((blocks(width, 32), blocks(height, 8)), (32, 8), arguments, {6: counts})


@case
def spmv(random: np.random.Generator, small: bool) -> Case:
    rows, mean = (1_000, 8) if small else (1 << 18, 16)
    lengths = random.geometric(1 / mean, rows).clip(max=8 * mean)
    starts = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    columns = random.integers(0, rows, starts[-1]).astype(np.int32)
    values, x = floats(random, len(columns)), floats(random, rows)
    y = np.add.reduceat(values.astype(np.float64) * x[columns], starts[:-1])
    return Case((blocks(rows, 256),), (256,), [rows, starts, columns, values, x, np.zeros(rows, np.float32)], {5: y}, 1e-4)


@case
def bitonic(random: np.random.Generator, small: bool) -> Case:
    runs = 5 if small else 2048
    keys = words(random, runs * 512)
    ordered = np.sort(keys.reshape(-1, 512), 1).ravel()
    return Case((runs,), (256,), [runs, keys, np.zeros_like(keys)], {2: ordered}, shared=2048)


@case
def scan(random: np.random.Generator, small: bool) -> Case:
    count = 9 if small else 16_384
    values = words(random, count * 256)
    rows = values.reshape(-1, 256)
    sums = rows.cumsum(1, dtype=np.uint32).ravel()
    arguments = [count, values, np.zeros_like(values), np.zeros(count, np.uint32)]
    return Case((count,), (256,), arguments, {2: sums, 3: rows.max(1)})


@case
def matvec(random: np.random.Generator, small: bool) -> Case:
    rows, columns = (64, 37) if small else (2048, 1024)
    matrix, vector = floats(random, rows, columns), floats(random, columns)
    expected = (matrix.astype(np.float64) @ vector).astype(np.float32)
    grid, block = (rows // 64,), (64,)
    return Case(grid, block, [columns, matrix, vector, np.zeros(rows, np.float32)], {3: expected}, 1e-4, extent=(rows,))


@case
def row_sums(random: np.random.Generator, small: bool) -> Case:
    rows, columns = (5, 1_003) if small else (1024, 4096)
    matrix = floats(random, rows, columns)
    expected = matrix.sum(1, dtype=np.float64).astype(np.float32)
    return Case((rows,), (256,), [columns, matrix, np.zeros(rows, np.float32)], {2: expected}, 1e-4, extent=(rows,))


@case
def filter(random: np.random.Generator, small: bool) -> Case:
    n = 1_003 if small else 1 << 20
    values, taps = floats(random, n), floats(random, 17)
    padded = np.concatenate([values, np.zeros(16, np.float32)]).astype(np.float64)
    expected = sum(padded[k : n + k] * taps[k] for k in range(17))
    arguments = [n, values, taps, np.zeros(n, np.float32)]
    return Case((blocks(n, 256),), (256,), arguments, {3: expected.astype(np.float32)}, 1e-5)


@case
def gray(random: np.random.Generator, small: bool) -> Case:
    n = 1_003 if small else 1 << 20
    pixels = random.integers(0, 256, (n, 3), np.uint8)
    expected = (pixels.astype(np.uint32) @ np.array([77, 150, 29], np.uint32) >> 8).astype(np.uint8)
    return Case((blocks(n, 256),), (256,), [n, pixels, np.zeros(n, np.uint8)], {2: expected})


@case
def sobel(random: np.random.Generator, small: bool) -> Case:
    width, height = (77, 41) if small else (1024, 1024)
    picture = random.integers(0, 256, (height, width), np.uint8)
    wide = picture.astype(np.int32)
    across, down = (
        (side[:-2, 2:] - side[:-2, :-2]) + 2 * (side[1:-1, 2:] - side[1:-1, :-2]) + (side[2:, 2:] - side[2:, :-2])
        for side in (wide, wide.T)
    )
    expected = np.zeros_like(picture)
    expected[1:-1, 1:-1] = np.minimum(abs(across) + abs(down.T), 255)
    arguments = [width, height, picture, np.zeros_like(picture)]
    return Case((blocks(width, 32), blocks(height, 8)), (32, 8), arguments, {3: expected})


@case
def cosines(random: np.random.Generator, small: bool) -> Case:
    width, height = (64, 24) if small else (1024, 1024)
    picture, k = floats(random, height, width), np.arange(8)
    cosine = np.cos((2 * k + 1) * k[:, None] * np.pi / 16).astype(np.float32)
    tiles = picture.astype(np.float64).reshape(height // 8, 8, width // 8, 8).swapaxes(1, 2)
    expected = (cosine @ tiles @ cosine.T).swapaxes(1, 2).reshape(height, width).astype(np.float32)
    arguments = [width, picture, cosine, np.zeros_like(picture)]
    return Case((width // 8, height // 8), (8, 8), arguments, {3: expected}, 1e-4, extent=(height,))


@case
def sha1(random: np.random.Generator, small: bool) -> Case:
    n = 301 if small else 1 << 17
    blocks_of_words = words(random, 16 * n).reshape(16, n)
    arguments = [n, blocks_of_words, np.zeros((5, n), np.uint32)]
    return Case((blocks(n, 128),), (128,), arguments, {2: _sha1(blocks_of_words)})


def _turned(word: Array, by: int) -> Array:
    return word << np.uint32(by) | word >> np.uint32(32 - by)


def _sha1(message: Array) -> Array:
    """The state after a block of 16 words, for each column (FIPS 180-4)."""
    start = [np.uint32(word) for word in (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)]
    constants = [np.uint32(word) for word in (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)]
    schedule = list(message)
    for t in range(16, 80):
        schedule.append(_turned(schedule[t - 3] ^ schedule[t - 8] ^ schedule[t - 14] ^ schedule[t - 16], 1))
    a, b, c, d, e = (np.full(message.shape[1], word) for word in start)
    for t, word in enumerate(schedule):
        mixed = (b & c | ~b & d, b ^ c ^ d, b & c | b & d | c & d, b ^ c ^ d)[t // 20]
        a, b, c, d, e = _turned(a, 5) + mixed + e + constants[t // 20] + word, a, _turned(b, 30), c, d
    return np.stack([one + other for one, other in zip(start, (a, b, c, d, e))])


@case
def bytes(random: np.random.Generator, small: bool) -> Case:
    width, height, depth = (48, 32, 37) if small else (512, 512, 256)
    a, b = (random.integers(-128, 128, shape, np.int8) for shape in ((height, depth), (depth, width)))
    product = a.astype(np.int32) @ b.astype(np.int32)
    arguments = [depth, a, b, np.zeros((height, width), np.int32)]
    return Case((width // 16, height // 16), (16, 16), arguments, {3: product}, extent=(width, height))


@case
def resample(random: np.random.Generator, small: bool) -> Case:
    old_width, old_height = (32, 16) if small else (512, 512)
    width, height = 2 * old_width, 2 * old_height  # powers of two, so that nothing is rounded
    picture = random.integers(0, 256, (old_height, old_width, 4), np.uint8)

    def places(count: int, old: int) -> tuple[Array, Array, Array]:
        at = (np.arange(count) + 0.5) * old / count - 0.5
        first = np.maximum(at.astype(np.int64), 0)
        return first, np.minimum(first + 1, old - 1), np.maximum(at - first, 0)

    (left, right, across), (top, bottom, down) = places(width, old_width), places(height, old_height)
    wide = picture.astype(np.float64)
    upper, lower = (row[:, left] + (row[:, right] - row[:, left]) * across[:, None] for row in (wide[top], wide[bottom]))
    expected = np.floor(upper + (lower - upper) * down[:, None, None] + 0.5)
    arguments = [width, height, old_width, old_height, picture, np.zeros((height, width, 4), np.uint8)]
    return Case((blocks(width, 32), blocks(height, 8)), (32, 8), arguments, {5: expected.astype(np.uint8)})


@case
def strides(random: np.random.Generator, small: bool) -> Case:
    n = 1_003 if small else 1 << 20
    x, y, a = floats(random, 2 * n), floats(random, 3 * n), 1.5
    expected = y.copy()
    expected[::3] += np.float32(a) * x[::2]
    return Case((blocks(n, 256),), (256,), [n, a, x, y], {3: expected}, 1e-6)


@case
def weights(random: np.random.Generator, small: bool) -> Case:
    n = 2_501 if small else 1 << 21
    keys, values = words(random, n), floats(random, n)
    sums = np.bincount(keys % 256, values.astype(np.float64), 256).astype(np.float32)
    return Case((min(blocks(n, 256), 64),), (256,), [n, keys, values, np.zeros(256, np.float32)], {3: sums}, 1e-3)


@case
def rotation(random: np.random.Generator, small: bool) -> Case:
    width, height = (77, 41) if small else (1024, 1024)
    picture, cosine, sine = floats(random, height, width), 0.8125, 0.5625  # of few bits, so that all round alike
    v, u = np.meshgrid(np.arange(height) - height // 2, np.arange(width) - width // 2, indexing="ij")
    x = np.floor(cosine * u - sine * v).astype(np.int64) + width // 2
    y = np.floor(sine * u + cosine * v).astype(np.int64) + height // 2
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    expected = np.where(inside, picture[y.clip(0, height - 1), x.clip(0, width - 1)], np.float32(0))
    arguments = [width, height, cosine, sine, Surface(picture), np.zeros_like(picture)]
    return Case((blocks(width, 32), blocks(height, 8)), (32, 8), arguments, {5: expected})


@case
def warp_rows(random: np.random.Generator, small: bool) -> Case:
    rows, columns = (21, 75) if small else (2048, 1000)
    matrix, vector = floats(random, rows, columns), floats(random, columns)
    expected = (matrix.astype(np.float64) @ vector).astype(np.float32)
    arguments = [rows, columns, matrix, vector, np.zeros(rows, np.float32)]
    return Case((blocks(rows, 4),), (128,), arguments, {4: expected}, 1e-4)


@case
def convolution(random: np.random.Generator, small: bool) -> Case:
    width, height = (77, 41) if small else (2048, 1024)
    picture, taps = floats(random, height, width), floats(random, 5, 5)
    padded = np.pad(picture.astype(np.float64), 2, mode="edge")
    expected = sum(taps[v, u] * padded[v : v + height, u : u + width] for v in range(5) for u in range(5))
    arguments = [width, height, taps, picture, np.zeros_like(picture)]
    return Case((blocks(width, 32), blocks(height, 16)), (32, 16), arguments, {4: expected.astype(np.float32)}, 1e-4)


@case
def paths(random: np.random.Generator, small: bool) -> Case:
    sequences, steps = (3, 9) if small else (128, 64)
    moves, worth = floats(random, 64, 64), floats(random, sequences, steps, 64)
    value = worth[:, 0]
    for step in range(1, steps):
        value = (value[:, :, None] + moves).max(axis=1) + worth[:, step]
    return Case((sequences,), (64,), [steps, moves, worth, np.zeros_like(value)], {3: value}, 1e-5, extent=(sequences,))
