"""Kernels of Numba, checked; prints the seconds that a launch of each takes after the first, as JSON."""

import json
import time

import numpy as np
from numba import cuda, float32, int32
from numba_kernels import TILE, product

BINS = 64


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def mandelbrot(counts):
    x, y = cuda.grid(2)
    cr, ci = float32(3 * x / counts.shape[1] - 2), float32(2 * y / counts.shape[0] - 1)
    r, i, count = float32(0), float32(0), int32(0)
    while count < 50 and r * r + i * i < 4:
        r, i = r * r - i * i + cr, 2 * r * i + ci
        count += 1
    counts[y, x] = count


@cuda.jit
def histogram(values, counts):
    mine = cuda.shared.array(BINS, int32)
    if cuda.threadIdx.x < BINS:
        mine[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(mine, values[i], 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < BINS:
        cuda.atomic.add(counts, cuda.threadIdx.x, mine[cuda.threadIdx.x])


def seconds(kernel, grid, block, *arguments):
    """Of a launch behind the first, whose results the program looks at."""
    kernel[grid, block](*arguments)
    start = time.perf_counter()
    kernel[grid, block](*arguments)
    cuda.synchronize()
    return time.perf_counter() - start


def main():
    source = np.random.default_rng(1)
    x, y = source.random(4096, np.float32), np.zeros(4096, np.float32)
    taken = {"saxpy": seconds(saxpy, 16, 256, np.float32(2), x, y)}
    assert np.array_equal(y, 4 * x)

    counts = np.zeros((64, 64), np.int32)
    taken["mandelbrot"] = seconds(mandelbrot, (8, 8), (8, 8), counts)
    assert counts.max() == 50 and counts[0, 0] < 5

    values, found = source.integers(0, BINS, 4096, np.int32), np.zeros(BINS, np.int32)
    taken["histogram"] = seconds(histogram, 16, 256, values, found)
    assert np.array_equal(found, 2 * np.bincount(values, minlength=BINS))

    a, b, c = source.random((64, 64), np.float32), source.random((64, 64), np.float32), np.zeros((64, 64), np.float32)
    taken["product"] = seconds(product, (8, 8), (TILE, TILE), a, b, c)
    assert np.allclose(c, a @ b, rtol=1e-4)
    print(json.dumps(taken))


main()
