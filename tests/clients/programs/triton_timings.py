"""Kernels of Triton on tensors of the CPU, checked; prints the seconds that a launch of each takes after the first, as JSON."""

import json
import os
import time

import triton
from triton_kernels import add, product, softmax, synchronize

SIMULATED = os.environ.get("TRITON_INTERPRET") == "1"
if not SIMULATED:
    DRIVER = triton.runtime.driver.active  # before torch is there, which would be asked for its CUDA

import torch  # noqa: E402


def wait():
    if not SIMULATED:
        synchronize()


def seconds(kernel, grid, *arguments, **constants):
    """Of a launch behind the first, whose results the program looks at."""
    kernel[grid](*arguments, **constants)
    wait()
    start = time.perf_counter()
    kernel[grid](*arguments, **constants)
    wait()
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
