"""Triton on tensors of a PyTorch without CUDA: normalised rows and their sum over blocks."""

import triton
import triton.language as tl
from triton_kernels import synchronize

DRIVER = triton.runtime.driver.active  # before torch is there, which would be asked for its CUDA

import torch  # noqa: E402


@triton.jit
def normalise(x, out, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, values - tl.sum(values) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred) / columns + epsilon)
    tl.store(out + row * columns + at, centred * scale, mask=inside)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0)))


def main():
    torch.manual_seed(1)
    for kind, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        x = torch.randn(40, 300).to(kind)
        out = torch.empty_like(x)
        normalise[(40,)](x, out, 300, 1e-5, BLOCK=512)
        synchronize()
        wanted = torch.nn.functional.layer_norm(x.double(), (300,))
        assert torch.allclose(out.double(), wanted, rtol=tolerance, atol=tolerance), (kind, (out.double() - wanted).abs().max())

    x, out = torch.randint(-1000, 1000, (10_000,), dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    total[(triton.cdiv(10_000, 512),)](x, out, 10_000, BLOCK=512)
    synchronize()
    assert out.item() == x.sum().item()
    print("right")


main()
