"""Kernels of Triton on tensors of the CPU, checked; prints the seconds that a launch of each takes after the first, as JSON."""

import ctypes
import json
import os
import time

import triton
import triton.language as tl

SIMULATED = os.environ.get("TRITON_INTERPRET") == "1"
if not SIMULATED:
    DRIVER = triton.runtime.driver.active  # before torch is there, which would be asked for its CUDA

import torch  # noqa: E402


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + inner[None, :])
        right = tl.load(b + (k + inner[:, None]) * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def synchronize():
    if not SIMULATED:
        error = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
        assert error == 0, error


def seconds(kernel, grid, *arguments, **constants):
    """Of a launch behind the first, whose results the program looks at."""
    kernel[grid](*arguments, **constants)
    synchronize()
    start = time.perf_counter()
    kernel[grid](*arguments, **constants)
    synchronize()
    return time.perf_counter() - start


def main():
    torch.manual_seed(1)
    x, y, out = torch.rand(1 << 18), torch.rand(1 << 18), torch.zeros(1 << 18)
    taken = {"add": seconds(add, (256,), x, y, out, 1 << 18, BLOCK=1024)}
    assert torch.equal(out, x + y)

    x, out = torch.randn(256, 781), torch.zeros(256, 781)
    taken["softmax"] = seconds(softmax, (256,), x, out, 781, BLOCK=1024)
    assert torch.allclose(out, torch.softmax(x, dim=1), rtol=1e-5, atol=1e-7)

    a, b, c = torch.rand(256, 256).half(), torch.rand(256, 256).half(), torch.zeros(256, 256)
    taken["product"] = seconds(product, (8, 4), a, b, c, 256, 256, 256, BM=32, BN=64, BK=32)
    assert torch.allclose(c, a.float() @ b.float(), rtol=1e-3)
    print(json.dumps(taken))


main()
