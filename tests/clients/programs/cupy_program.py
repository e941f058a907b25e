"""CuPy: its own kernels, those of programs, and what it was built with (CUB, Thrust), against NumPy."""

from __future__ import annotations

import cupy
import numpy as np

SCALE = r"""
extern "C" __global__ void scale(const float *in, float *out, float factor, int n) {
  extern __shared__ float kept[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  if (i < n) out[i] = factor * kept[threadIdx.x];
}
"""
POWERS = r"""
template <int P> __global__ void power(const long long *in, long long *out) {
  long long found = 1;
  for (int i = 0; i < P; i++) found *= in[threadIdx.x];
  out[threadIdx.x] = found;
}
"""


def check(found: cupy.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(cupy.asnumpy(found), expected, rtol=1e-5)


def elements(numbers: np.ndarray) -> None:
    given = cupy.asarray(numbers)
    check(2 * given + 1, 2 * numbers + 1)
    check(cupy.where(given > 0, cupy.exp(given), -given), np.where(numbers > 0, np.exp(numbers), -numbers))
    check(given[::-1, 3:][given[::-1, 3:] > 0.5], numbers[::-1, 3:][numbers[::-1, 3:] > 0.5])
    check(given.T.copy(), numbers.T)
    check(given.astype("f2"), numbers.astype("f2"))
    squares = cupy.ElementwiseKernel("T x", "T y", "y = x * x", "squares")
    check(squares(given), numbers**2)


def reductions(numbers: np.ndarray) -> None:
    given = cupy.asarray(numbers)
    for axis in (None, 0, 1):
        check(given.sum(axis), numbers.sum(axis))
        check(given.max(axis), numbers.max(axis))
        check(given.argmin(axis), numbers.argmin(axis))
    check(cupy.cumsum(given), np.cumsum(numbers))
    check(cupy.sort(given.ravel()), np.sort(numbers.ravel()))
    check(cupy.argsort(given[0]), np.argsort(numbers[0]))
    check(cupy.bincount(cupy.asarray([1, 2, 2, 5])), np.bincount([1, 2, 2, 5]))
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    check(norm(given), np.sqrt((numbers**2).sum()))


def kernels(numbers: np.ndarray) -> None:
    given, out = cupy.asarray(numbers.ravel()), cupy.empty(numbers.size, "f4")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        cupy.RawKernel(SCALE, "scale")((8,), (128,), (given, out, np.float32(3), numbers.size), shared_mem=512)
        stream.synchronize()
    check(out, 3 * numbers.ravel())
    module = cupy.RawModule(code=POWERS, name_expressions=["power<3>"])
    counts = cupy.arange(32, dtype="i8")
    module.get_function("power<3>")((1,), (32,), (counts, counts))
    check(counts, np.arange(32) ** 3)


def main() -> None:
    numbers = np.random.default_rng(1).standard_normal((20, 50)).astype("f4")
    elements(numbers)
    reductions(numbers)
    kernels(numbers)
    print("right")


if __name__ == "__main__":
    main()
