"""Triton: a sum of vectors, softmax of rows and a product of matrices, on memory of NumPy."""

import ctypes

import numpy as np
import triton
import triton.language as tl


class Tensor:
    """An array as Triton takes it: the address of its first element and the name of its type."""

    def __init__(self, array):
        self.array, self.dtype = array, str(array.dtype)

    def data_ptr(self):
        return self.array.ctypes.data


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + inner, mask=(rows[:, None] < M) & (k + inner < K), other=0.0)
        right = tl.load(b + (k + inner[:, None]) * N + columns, mask=(k + inner[:, None] < K) & (columns < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns, total, mask=(rows[:, None] < M) & (columns < N))


@triton.jit
def histogram(values, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(counts + tl.load(values + at, mask=inside, other=0), 1, mask=inside)


def synchronize():
    """Wait for what was launched, which may also have failed."""
    error = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
    assert error == 0, error


def main():
    source = np.random.default_rng(1)

    n = 10_000
    x, y, out = source.random(n, np.float32), source.random(n, np.float32), np.zeros(n, np.float32)
    add[(triton.cdiv(n, 1024),)](Tensor(x), Tensor(y), Tensor(out), n, BLOCK=1024)
    synchronize()
    assert np.array_equal(out, x + y)

    x = source.standard_normal((37, 781), np.float32)
    out = np.zeros_like(x)
    softmax[(len(x),)](Tensor(x), Tensor(out), x.shape[1], BLOCK=1024)
    synchronize()
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    assert np.allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)

    for kind, tolerance in ((np.float32, 2e-3), (np.float16, 1e-3)):  # tensor cores take f32 with 10 bits of mantissa
        a, b = source.random((100, 70), np.float32).astype(kind), source.random((70, 90), np.float32).astype(kind)
        c = np.zeros((100, 90), np.float32)
        grid = (triton.cdiv(100, 32), triton.cdiv(90, 64))
        product[grid](Tensor(a), Tensor(b), Tensor(c), 100, 90, 70, BM=32, BN=64, BK=32)
        synchronize()
        assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=tolerance)

    values, counts = source.integers(0, 16, n, np.int32), np.zeros(16, np.int32)
    histogram[(triton.cdiv(n, 256),)](Tensor(values), Tensor(counts), n, BLOCK=256)
    synchronize()
    assert np.array_equal(counts, np.bincount(values, minlength=16))
    print("right")


main()
