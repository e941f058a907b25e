"""Triton: a sum of vectors, softmax of rows and a product of matrices, on memory of NumPy."""

import numpy as np
import triton
import triton.language as tl
from triton_kernels import add, product, softmax, synchronize


class Tensor:
    """An array as Triton takes it: the address of its first element and the name of its type."""

    def __init__(self, array):
        self.array, self.dtype = array, str(array.dtype)

    def data_ptr(self):
        return self.array.ctypes.data


@triton.jit
def histogram(values, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.atomic_add(counts + tl.load(values + at, mask=inside, other=0), 1, mask=inside)


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
