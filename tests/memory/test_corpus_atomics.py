"""Atomic kernels as nvcc writes them for global memory: every result must come from one serial order of the lanes."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import ptxemu
from tests.support.places import CORPUS

TEXT = (CORPUS / "atomics_global.ptx").read_text()
KERNELS = [name for name in re.findall(r"\.entry\s+(\w+)", TEXT) if name != "atom_half"]
TYPES = {"i32": np.int32, "u32": np.uint32, "u64": np.uint64, "i64": np.int64, "f32": np.float32, "f64": np.float64}
ORDERS = {
    "i32": "add sub exch min max and or xor cas", "u32": "add sub exch min max and or xor cas inc dec",
    "u64": "add exch min max and or xor cas", "i64": "min max and or xor", "f32": "add exch", "f64": "add",
}  # fmt: skip
OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda old, b, v: old + b, "sub": lambda old, b, v: old - b, "exch": lambda old, b, v: b,
    "min": lambda old, b, v: min(old, b), "max": lambda old, b, v: max(old, b), "and": lambda old, b, v: old & b,
    "or": lambda old, b, v: old | b, "xor": lambda old, b, v: old ^ b, "cas": lambda old, b, v: b if old == v else old,
    "inc": lambda old, b, v: 0 if old >= b else old + 1, "dec": lambda old, b, v: b if old == 0 or old > b else old - 1,
}  # fmt: skip
LANES = 45


def serial(operation: str, start: int, value: int, old: list[int], end: int, wrap: Callable[[int], int]) -> bool:
    """Whether some order of the lanes gives each the value it saw: each takes a step from one seen value to the next."""
    apply = OPERATIONS[operation]
    steps: dict[int, list[int]] = {}
    for lane, seen in enumerate(old):
        steps.setdefault(seen, []).append(wrap(apply(seen, value + lane, value)))
    # An order exists if the steps form a walk from start to end that uses each once (an Eulerian path: degrees and reach).
    degree: dict[int, int] = {}
    for seen, results in steps.items():
        for result in results:
            degree[seen] = degree.get(seen, 0) + 1
            degree[result] = degree.get(result, 0) - 1
    degree[start] = degree.get(start, 0) - 1
    degree[end] = degree.get(end, 0) + 1
    reached, front = {start}, [start]
    while front:
        for result in steps.get(front.pop(), []):
            if result not in reached:
                reached.add(result)
                front.append(result)
    return not any(degree.values()) and set(steps) <= reached


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_lane_takes_its_turn(kernel: str) -> None:
    kind = kernel.split("_")[1]
    dtype = np.dtype(TYPES[kind])
    operations = ORDERS[kind].split()
    value = 5
    cells = np.array([{"cas": value, "min": 40, "max": 9, "and": 0x7FFFFFFF}.get(name, 3) for name in operations], dtype)
    start = cells.tolist()
    old = np.zeros((len(operations), LANES), dtype)
    ptxemu.load(CORPUS / "atomics_global.ptx")[kernel][1, LANES](cells, old, value)
    wrap = (lambda x: int(np.array(x % 2 ** (8 * dtype.itemsize), np.uint64).astype(dtype))) if dtype.kind != "f" else float
    for index, name in enumerate(operations):
        assert serial(name, start[index], value, old[index].tolist(), cells[index].item(), wrap), name


def test_walks_that_no_order_gives() -> None:
    assert serial("add", 0, 1, [0, 1, 3], 6, int)
    assert not serial("add", 0, 1, [0, 0, 3], 6, int)
    assert not serial("add", 0, 1, [0, 1, 3], 7, int)
    assert not serial("exch", 0, 1, [0, 2, 1], 3, int)


def test_half_precision() -> None:
    half, pair = np.array([1.5], np.float16), np.array([[1, 2], [0, 0]], np.float16)
    bf16, bf16_pair = np.array([0x3FC0], np.uint16), np.array([[0x3F80, 0x4000], [0, 0]], np.uint16)
    short = np.array([1, 7], np.uint16)
    ptxemu.load(CORPUS / "atomics_global.ptx")["atom_half"][1, 1](half, pair, bf16, bf16_pair, short, 0.25)
    assert half[0] == 1.75
    assert pair.tolist() == [[1.25, 2.25], [1, 2]]
    assert bf16.tolist() == [0x3FE0]
    assert bf16_pair.tolist() == [[0x3FA0, 0x4010], [0x3F80, 0x4000]]
    assert short.tolist() == [2, 1]


def halves(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def test_half_arithmetic() -> None:
    """``half.cu``: each row of the output is one packed operation on the inputs."""
    n = 24
    rng = np.random.default_rng(5)
    a, b = (rng.uniform(0.25, 3, (2, n, 2)) * np.array([1, -1])).astype(np.float16)
    b[3] = a[3]
    out, f, s = np.zeros((12, n, 2), np.float16), np.zeros((2, n), np.float32), np.zeros((2, n), np.int16)
    ptxemu.load(CORPUS / "half.ptx")["halfs"][1, 32](a, b, out, f, s, n)
    x, y = halves(a), halves(b)
    fused = x * y + x  # exact in double precision
    with np.errstate(invalid="ignore"):
        rows = [x + y, x * y, fused, np.minimum(x, y), np.maximum(x, y), np.abs(x), np.sqrt(x), np.exp2(x), 1 / y]
        rows += [np.clip(x + y, 0, 1), np.maximum(fused, 0), np.stack([f[0].astype(np.float64), np.ones(n)], 1)]
    for index, expected in enumerate(rows):
        tolerance = {6: 1e-3, 7: 1e-3, 8: 1e-3}.get(index, 0)
        np.testing.assert_allclose(halves(out[index]), expected.astype(np.float16), rtol=tolerance, err_msg=f"row {index}")
    np.testing.assert_array_equal(f[0], (a[:, 0].astype(np.float32) + b[:, 1].astype(np.float32)))
    np.testing.assert_array_equal(f[1], a[:, 0] > b[:, 0])
    np.testing.assert_array_equal(s[0], np.trunc(a[:, 0]).astype(np.int16))
    np.testing.assert_array_equal(s[1], np.where(a[:, 0] == b[:, 0], -1, 0))
