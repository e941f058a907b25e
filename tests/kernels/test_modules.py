"""Larger modules as nvcc writes them from templates: block primitives of CUB and bf16 arithmetic, compared with NumPy.

The sources lie beside the PTX in ``data/modules``.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ptxemu
from tests.support.places import MODULES

pytestmark = pytest.mark.filterwarnings("error::ptxemu.DtypeWarning")


@pytest.fixture(scope="module", params=["cub_80", "cub_90"])
def module(request: pytest.FixtureRequest) -> ptxemu.Module:
    return ptxemu.load(MODULES / f"{request.param}.ptx")


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_block_scan(module: ptxemu.Module) -> None:
    data = random(1).integers(-1000, 1000, 3 * 512, dtype=np.int32)
    out, total = np.zeros_like(data), np.zeros(3, np.int32)
    module["scan"][3, 128](data, out, total)
    blocks = data.reshape(3, 512)
    np.testing.assert_array_equal(total, blocks.sum(1))
    np.testing.assert_array_equal(out.reshape(3, 512), blocks.cumsum(1) - blocks)


def test_raking_scan(module: ptxemu.Module) -> None:
    data = random(2).integers(-(2**31), 2**31, 96).astype(np.int32)
    out = np.zeros_like(data)
    module["raking_max"][1, 96](data, out)
    np.testing.assert_array_equal(out, np.maximum.accumulate(data))


def test_radix_sort(module: ptxemu.Module) -> None:
    keys = random(3).integers(0, 500, 512, dtype=np.uint32)
    keys[::7] *= 8_000_000
    expected, order = np.sort(keys), np.argsort(keys, kind="stable")
    values = np.zeros(512, np.int32)
    module["sort"][1, 128](keys, values)
    np.testing.assert_array_equal(keys, expected)
    np.testing.assert_array_equal(values, order)


def test_radix_sort_of_floats(module: ptxemu.Module) -> None:
    keys = random(4).standard_normal(192, np.float32)
    keys[:4] = [np.inf, -np.inf, 0, 1e-40]
    expected = np.sort(keys)[::-1]
    module["sort_floats"][1, 64](keys)
    np.testing.assert_array_equal(keys, expected)


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_block_reduce(module: ptxemu.Module, n: int) -> None:
    data, out = random(5).integers(-99, 99, n).astype(np.float64), np.zeros(1)
    module["reduce"][1, 256](data, out, n)
    assert out[0] == data.sum()


@pytest.mark.parametrize("valid", [32, 17, 1])
def test_warp_primitives(module: ptxemu.Module, valid: int) -> None:
    data = random(6).integers(-99, 99, 128, dtype=np.int32)
    sums, scans = np.zeros(4, np.int32), np.zeros(128, np.int32)
    module["warps"][1, 128](data, sums, scans, valid)
    np.testing.assert_array_equal(sums, data.reshape(4, 32)[:, :valid].sum(1))
    np.testing.assert_array_equal(scans, data.reshape(8, 16).cumsum(1).ravel())


def test_histogram(module: ptxemu.Module) -> None:
    data, out = random(7).integers(0, 256, 512, dtype=np.uint8), np.zeros(64, np.uint32)
    module["histogram"][1, 128](data, out)
    np.testing.assert_array_equal(out, np.bincount(data & 63, minlength=64))


def test_bf16(module: ptxemu.Module) -> None:
    n, bf16 = 50, ml_dtypes.bfloat16
    a, b = random(8).uniform(0.25, 4, (2, n, 2)).astype(bf16)
    a[::3] *= bf16(-1)
    b[5] = a[5]
    out, f = np.zeros((10, n, 2), np.uint16), np.zeros((2, n), np.float32)
    module["bf16"][2, 32](a.view(np.uint16), b.view(np.uint16), out, f, n)
    x, y = a.astype(np.float64), b.astype(np.float64)
    fused = x * y + x  # exact in double precision
    # the device function divides with a reciprocal, which may be off by a rounding
    rows = [x + y, x - y, x * y, fused, np.minimum(x, y), np.maximum(x, y), np.abs(x), x / y, np.maximum(fused, 0)]
    rows += [np.stack([x[:, 0] * 3, y[:, 1]], 1)]
    for index, expected in enumerate(rows):
        found = out[index].view(bf16).astype(np.float64)
        np.testing.assert_allclose(
            found, expected.astype(bf16).astype(np.float64), rtol=2**-8 * (index == 7), err_msg=f"row {index}"
        )
    np.testing.assert_array_equal(f[0], (x[:, 0] + y[:, 1]).astype(np.float32))
    np.testing.assert_array_equal(f[1], x[:, 0] < y[:, 0])
