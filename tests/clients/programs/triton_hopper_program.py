"""Triton for compute capabilities 9.0 and 10.0: products of warpgroups or in tensor memory, tensor maps, clusters, attention."""

import math
import os

import triton
import triton.language as tl
from triton_kernels import product, synchronize

DRIVER = triton.runtime.driver.active  # before torch is there, which would be asked for its CUDA

import torch  # noqa: E402
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

MULTIPLIES = {"90": "wgmma", "100": "tcgen05.mma"}[os.environ["PTXEMU_ARCH"]]
HELD = []
"""Memory that launches still use."""


@triton.jit
def persistent(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PROGRAMS: tl.constexpr, APART: tl.constexpr):
    """A program makes several tiles; with APART some of its warps copy and others multiply."""
    columns = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * columns, PROGRAMS, flatten=not APART, warp_specialize=APART):
        row, column = tile // columns * M, tile % columns * N
        total = tl.zeros((M, N), tl.float32)
        for at in range(0, k, K):
            total = tl.dot(a.load([row, at]), b.load([column, at]).T, total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def by_own_maps(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The kernel makes its tensor maps."""
    a = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    b = tl.make_tensor_descriptor(b, shape=[k, n], strides=[n, 1], block_shape=[K, N])
    c = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        total = tl.dot(a.load([row, at]), b.load([at, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    row = tl.program_id(0) * M
    queries = q.load([row, 0])
    most, sums = tl.full((M,), float("-inf"), tl.float32), tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for at in range(0, n, N):
        scores = tl.dot(queries, k.load([at, 0]).T) * scale
        larger = tl.maximum(most, tl.max(scores, 1))
        powers, shrunk = tl.exp2(scores - larger[:, None]), tl.exp2(most - larger)
        sums = sums * shrunk + tl.sum(powers, 1)
        total = tl.dot(powers.to(tl.float16), v.load([at, 0]), total * shrunk[:, None])
        most = larger
    out.store([row, 0], (total / sums[:, None]).to(tl.float16))


def checked(what, launched, got, wanted, tolerance, instructions):
    synchronize()
    missing = [name for name in instructions if name not in launched.asm["ptx"]]
    assert not missing, (what, missing)
    worst = ((got.double() - wanted).abs() / wanted.abs().clamp(min=1)).max().item()
    assert worst < tolerance, (what, worst)


def products():
    m, n, k = 256, 192, 128
    for kind, tolerance in ((torch.float16, 1e-5), (torch.bfloat16, 1e-5), (torch.float8_e4m3fn, 1e-2), (torch.float32, 3e-2)):
        a, b, c = torch.randn(m, k).to(kind), torch.randn(k, n).to(kind), torch.zeros(m, n)
        launched = product[(m // 128, n // 64)](a, b, c, m, n, k, BM=128, BN=64, BK=32, num_warps=4)
        checked(kind, launched, c, a.double() @ b.double(), tolerance, [MULTIPLIES])

    a, b, c = torch.randn(m, k).half(), torch.randn(k, n).half(), torch.zeros(m, n).half()
    triton.set_allocator(scratch)
    launched = by_own_maps[(m // 128, n // 64)](a, b, c, m, n, k, 128, 64, 64, num_warps=4)
    checked("own maps", launched, c, a.double() @ b.double(), 1e-3, [MULTIPLIES, "tensormap.replace", "cp.async.bulk.tensor"])


def scratch(size, align, stream):
    HELD.append(torch.empty(size + align, dtype=torch.int8))
    return HELD[-1][-HELD[-1].data_ptr() % align :]


def tiles():
    m, n, k = 512, 256, 192
    a, b = torch.randn(m, k).half(), torch.randn(n, k).half()
    for apart, warps, rows, ctas, instruction in (
        (False, 8, 128, 1, MULTIPLIES), (True, 4, 64, 1, "setmaxnreg"),
        (False, 8, 128, 2, "barrier.cluster"), (False, 4, 128, 4, "%cluster_ctarank"),
    ):  # fmt: skip
        c = torch.zeros(m, n).half()
        blocks = (a, [rows, 64]), (b, [128, 64]), (c, [rows, 128])
        maps = [TensorDescriptor.from_tensor(tensor, block) for tensor, block in blocks]
        launched = persistent[(3,)](*maps, m, n, k, rows, 128, 64, 3, apart, num_warps=warps, num_stages=3, num_ctas=ctas)
        checked((apart, ctas), launched, c, a.double() @ b.double().T, 1e-3, ["cp.async.bulk.tensor", instruction])


def attend():
    n, d = 512, 64
    q, k, v, out = (torch.randn(n, d).half() for _ in range(4))
    maps = [TensorDescriptor.from_tensor(tensor, [rows, d]) for tensor, rows in ((q, 128), (k, 64), (v, 64), (out, 128))]
    launched = attention[(n // 128,)](*maps, n, math.log2(math.e) / math.sqrt(d), 128, 64, d, num_warps=4, num_stages=3)
    wanted = torch.softmax(q.double() @ k.double().T / math.sqrt(d), 1) @ v.double()
    checked("attention", launched, out, wanted, 1e-3, [MULTIPLIES, "cp.async.bulk.tensor"])


def main():
    torch.manual_seed(1)
    products()
    tiles()
    attend()
    print("right")


main()
