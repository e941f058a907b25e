"""Triton for compute capabilities 10.0 and 12.0: products of fp8 and fp4 whose blocks have factors."""

import triton
import triton.language as tl
from triton_kernels import synchronize

DRIVER = triton.runtime.driver.active  # before torch is there, which would be asked for its CUDA

import torch  # noqa: E402

M, N, K, AT_ONCE = 128, 64, 256, 128
FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
MAGNITUDES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)  # of e2m1


@triton.jit
def product(
    a, a_factors, b, b_factors, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    IN_A_BYTE: tl.constexpr, IN_B_BYTE: tl.constexpr, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Rows of A, and columns of B, lie along k; each BLOCK elements have a factor."""
    row, column = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, K, AT_ONCE):
        block = at // BLOCK + tl.arange(0, AT_ONCE // BLOCK)
        x = tl.load(a + row[:, None] * (K // IN_A_BYTE) + (at // IN_A_BYTE + tl.arange(0, AT_ONCE // IN_A_BYTE))[None, :])
        y = tl.load(b + column[None, :] * (K // IN_B_BYTE) + (at // IN_B_BYTE + tl.arange(0, AT_ONCE // IN_B_BYTE))[:, None])
        of_x = tl.load(a_factors + row[:, None] * (K // BLOCK) + block[None, :])
        of_y = tl.load(b_factors + column[:, None] * (K // BLOCK) + block[None, :])
        total = tl.dot_scaled(x, of_x, A, y, of_y, B, total)
    tl.store(c + row[:, None] * N + column[None, :], total)


def elements(rows, kind):
    """Random ones as Triton takes them, and their values."""
    if kind in FP8:
        found = torch.randn(rows, K).to(FP8[kind])
        return found, found.double()
    found = torch.randint(0, 256, (rows, K // 2), dtype=torch.uint8)
    nibbles = torch.stack([found & 15, found >> 4], -1).reshape(rows, K).long()
    return found, torch.where(nibbles > 7, -1, 1) * MAGNITUDES[nibbles & 7]


def factors(rows, block):
    """The same of factors: powers of two, or of blocks of 16 elements e4m3."""
    if block == 16:
        found = torch.rand(rows, K // block).to(torch.float8_e4m3fn)
        return found, found.double()
    found = torch.randint(122, 132, (rows, K // block), dtype=torch.uint8)
    return found, torch.exp2(found.double() - 127)


def main():
    torch.manual_seed(1)
    for a_kind, b_kind, block in (("e4m3", "e4m3", 32), ("e5m2", "e4m3", 32), ("e2m1", "e2m1", 32), ("e2m1", "e2m1", 16)):
        (a, x), (b, y), (a_factors, of_x), (b_factors, of_y) = (
            *(elements(*given) for given in ((M, a_kind), (N, b_kind))), *(factors(rows, block) for rows in (M, N)),
        )  # fmt: skip
        c, in_byte = torch.zeros(M, N), [1 if kind in FP8 else 2 for kind in (a_kind, b_kind)]
        launched = product[(1,)](a, a_factors, b, b_factors, c, M, N, K, a_kind, b_kind, *in_byte, block, AT_ONCE)
        synchronize()
        assert "block_scale" in launched.asm["ptx"], (a_kind, b_kind)
        wanted = (x * of_x.repeat_interleave(block, 1)) @ (y * of_y.repeat_interleave(block, 1)).T
        worst = ((c.double() - wanted).abs() / wanted.abs().clamp(min=1)).max().item()
        assert worst < 1e-4, (a_kind, b_kind, worst)
    print("right")


main()
