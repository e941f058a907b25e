"""Numba: elements, shared memory with atomics, a matrix product in tiles, a stream with events."""

import numpy as np
from numba import cuda, int64
from numba_kernels import TILE, product


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def total(values, out):
    shared = cuda.shared.array(1, int64)
    if cuda.threadIdx.x == 0:
        shared[0] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(shared, 0, values[i])
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, shared[0])


def main() -> None:
    source = np.random.default_rng(1)
    a, b, c = source.random(1000), source.random(1000), np.zeros(1000)
    add[8, 128](a, b, c)
    assert np.array_equal(c, a + b)

    values, out = source.integers(-1000, 1000, 10000), np.zeros(1, np.int64)
    total[40, 256](values, out)
    assert out[0] == values.sum()

    stream, first, last = cuda.stream(), cuda.event(), cuda.event()
    a, b = source.random((64, 32), np.float32), source.random((32, 48), np.float32)
    first.record(stream)
    result = cuda.device_array((64, 48), np.float32, stream=stream)
    product[(6, 8), (TILE, TILE), stream](cuda.to_device(a, stream), cuda.to_device(b, stream), result)
    last.record(stream)
    found = result.copy_to_host(stream=stream)
    stream.synchronize()
    assert np.allclose(found, a @ b, rtol=1e-5)
    assert cuda.event_elapsed_time(first, last) >= 0
    print("right")


main()
