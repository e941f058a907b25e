"""Functions that stay functions: recursion, calls through pointers and tables, virtual calls, and the bound of the stack.

``data/kernels/calls.cu`` is the source of the compiled kernels.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel, run
from tests.support.places import CORPUS, KERNELS


@pytest.fixture(scope="module")
def compiled() -> ptxemu.Module:
    return ptxemu.load(KERNELS / "calls.ptx")


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@cache
def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, ackermann(m, n - 1) if n else 1)


def test_recursive_functions(compiled: ptxemu.Module) -> None:
    n = 75
    out = np.zeros((3, n), np.uint32)
    compiled["recurse"][2, 64](out, n)
    assert out[0].tolist() == [fibonacci(i % 13) for i in range(n)]
    assert out[1].tolist() == [ackermann(2, i % 7) for i in range(n)]
    assert out[2].tolist() == [int(i % 32 % 2 == 0) for i in range(n)]


def test_n_queens(compiled: ptxemu.Module) -> None:
    out = np.zeros(21, np.int32)
    compiled["n_queens"][1, 21](out)
    assert out.tolist() == [1, 0, 0, 2, 10, 4, 40] * 3


def test_quick_sort(compiled: ptxemu.Module) -> None:
    rows = np.random.default_rng(1).integers(-1000, 1000, (45, 33)).astype(np.int32)
    expected = np.sort(rows, axis=1)
    compiled["sort_rows"][3, 15](rows, 33)
    np.testing.assert_array_equal(rows, expected)


def walk(depth: int) -> int:
    total = 0
    for level in range(depth + 1):
        total += level * 10 + (total & 3) + 1
    return total


def test_frames_in_local_memory(compiled: ptxemu.Module) -> None:
    out = np.zeros(96, np.int32)
    compiled["frames"][1, 96](out)
    assert out.tolist() == [walk(thread % 40) for thread in range(96)]


MIXED = np.dtype([("a", "i1"), ("b", "i1"), ("c", "<i2"), ("d", "<f8"), ("e", "<i4", 3), ("name", "u1", 3)], align=True)


def test_structs_by_value(compiled: ptxemu.Module) -> None:
    out = np.zeros(40, MIXED)
    start = np.array((5, -7, 1000, 3.0, (1, 2, 3), (65, 66, 67)), MIXED)
    compiled["structs"][1, 40](out.view(np.uint8), start.tobytes())
    for thread, found in enumerate(out):
        a, b, c, d, e, name = 5, -7, 1000, 3.0, [1, 2, 3], [65, 66, 67]
        for depth in range(thread % 9, 0, -1):
            a, b, c, d, e = b + 1, a - 1, c + depth, d / 2, [e[2], e[0], e[1] + 1]
            name[depth % 3] = ord("a") + depth
        assert found.tolist()[:4] == (a, b, c, d)
        assert (found["e"].tolist(), found["name"].tolist()) == (e, name)


def test_collectives_and_barriers_inside(compiled: ptxemu.Module) -> None:
    out = np.zeros(64, np.int32)
    compiled["collective"][1, 64](out)
    value = np.arange(64)
    for depth in range(4, 0, -1):
        value = value + value[np.arange(64) ^ depth]
        odd = (value & 1).reshape(2, 32).sum(axis=1)
        value = value + np.repeat(odd, 32)
    np.testing.assert_array_equal(out, value)


def test_threads_leave_the_kernel_inside(compiled: ptxemu.Module) -> None:
    out, seen = np.zeros(96, np.int32), np.zeros(32, np.int32)
    compiled["partings"][1, 96](out, seen)
    lane = np.arange(96) % 32
    np.testing.assert_array_equal(out, np.where(lane > 20, lane + 11, 0))
    times = [0, *(20 - depth + 1 for depth in range(1, 21)), *[1] * 11]
    assert seen.tolist() == [3 * count for count in times]


def test_virtual_calls(compiled: ptxemu.Module) -> None:
    n = 50
    out = np.zeros((2, n), np.float32)
    compiled["virtual_calls"][1, 64](out, n)
    i = np.arange(n)
    square, disc = i * i, 3 * (i + 1) ** 2
    area = np.choose(i * 7 % 4, [square, disc, square + disc, 2 * square + disc])
    np.testing.assert_array_equal(out[0], area)
    np.testing.assert_array_equal(out[1], area * np.where(i * 7 % 4 == 1, 4, 2))


BINARY = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a**b]


def wrapped(value: int) -> int:
    """As a 32-bit integer."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def test_function_tables_and_pointers_from_the_device(compiled: ptxemu.Module) -> None:
    addresses = np.zeros(4, np.uint64)
    compiled["pointers"][1, 4](addresses)
    assert len({0, *addresses.tolist()}) == 5
    n = 70
    out = np.zeros((3, n), np.int32)
    for index, same in enumerate(addresses):
        compiled["apply"][3, 32](out, same, n)
        exact = [
            [BINARY[i & 3](i, 3) for i in range(n)],
            [BINARY[0 if i & 1 else 3](i, 2) for i in range(n)],
            [BINARY[index](i, i) for i in range(n)],
        ]
        assert out.tolist() == [[wrapped(value) for value in row] for row in exact]


def test_recursion_through_a_pointer(compiled: ptxemu.Module) -> None:
    values = np.array([3, -2, 5, 7, 1, -4, 2, 6, 9], np.int32)
    out = np.zeros(64, np.int32)
    compiled["folds"][1, 64](out, values)
    for thread, found in enumerate(out.tolist()):
        total = int(values[0])
        for value in values[1 : 1 + thread % 9].tolist():
            total = BINARY[thread % 3](total, value)
        assert found == total


def test_recursion_of_the_corpus() -> None:
    n = 50
    out = np.zeros((2, n), np.int32)
    ptxemu.load(CORPUS / "recursion.ptx")["rec"][1, 64](out, n)
    assert out.tolist() == [[fibonacci(i % 12) for i in range(n)], [ackermann(2, i % 5) for i in range(n)]]


@pytest.mark.parametrize("select", [0, 1])
def test_calls_of_the_corpus(select: int) -> None:
    n = 37
    quarter = np.array([1.5], np.float32)
    out = np.zeros(n, [("a", "<f4"), ("b", "<f4"), ("c", "<f4"), ("d", "<i4")])
    products = np.zeros(n, np.int32)
    ptxemu.load(CORPUS / "calls.ptx")["calls"][1, n](
        struct.pack("<3fi", 1, 2, 3, 4), quarter, out.view(np.uint8), products, select
    )
    i = np.arange(n)
    assert set(out["a"]) == {2.5} and set(out["b"]) == {2.0}
    np.testing.assert_array_equal(out["c"], np.where((select + i) & 1, 1.5 - i, 1.5 * i + 1))
    np.testing.assert_array_equal(out["d"], 2 * (4 + i) + 1)
    np.testing.assert_array_equal(products, 4 * i)


def test_branch_table_of_the_corpus() -> None:
    out = np.zeros(40, np.uint32)
    ptxemu.load(CORPUS / "hand_brx.ptx")["brx"][1, 64](out, 40)
    assert out.tolist() == [(10, 2 * i, 42, 6 if i < 7 else 2)[i & 3] for i in range(40)]


PEEK = """
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u32 %r2, [n]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 8; add.u64 %rd3, %rd2, %rd3; ld.global.u64 %rd4, [%rd3];
  mul.lo.u32 %r3, %r1, %r2; mul.wide.u32 %rd5, %r3, 4; add.u64 %rd5, %rd1, %rd5;
NEXT:
  ld.u32 %r4, [%rd4]; st.global.u32 [%rd5], %r4; add.u64 %rd4, %rd4, 4; add.u64 %rd5, %rd5, 4;
  sub.u32 %r2, %r2, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra NEXT;
  ret;
"""


@pytest.mark.parametrize("n", [4, 17, 64])
def test_alloca_and_malloc_of_the_corpus(n: int) -> None:
    """Every thread fills words from malloc, of which the odd threads free theirs, and counts in memory from alloca."""
    threads = 40
    addresses = np.zeros(threads, np.uint64)
    ptxemu.load(CORPUS / "alloca_malloc.ptx")["am"][1, threads](addresses, n)
    assert len(set(addresses[::2].tolist()) | {0}) == threads // 2 + 1
    words = np.zeros((threads // 2, n), np.uint32)
    run(kernel(PEEK, ".param .u64 out, .param .u64 words, .param .u32 n"), 1, threads // 2, words, addresses[::2].copy(), n)
    expected = np.full((threads // 2, n), 0x07070707, np.uint32)
    expected[:, n // 2] = np.arange(0, threads, 2)
    expected[:, 0] = n - 1
    np.testing.assert_array_equal(words, expected)


def test_too_much_alloca_in_the_corpus() -> None:
    with pytest.raises(ptxemu.Fault, match=r"stack overflow in kernel `am` at .*alloca_malloc\.ptx:122"):
        ptxemu.load(CORPUS / "alloca_malloc.ptx")["am"][1, 32](np.zeros(32, np.uint64), 100_000)


def test_surfaces_atomics_and_output_inside() -> None:
    texels = np.arange(64, dtype=np.int32).reshape(8, 8)
    device = ptxemu.Device(memory="64 MiB")
    leaves = device.surface(texels, format="R32_SINT")
    out, visits, output = np.zeros(40, np.int32), np.zeros(8, np.int32), []
    ptxemu.load(KERNELS / "calls.ptx", device=device)["trees"][1, 40](out, visits, leaves, printf=output.append)
    visited, written, lines = np.zeros(8, np.int32), texels.copy(), []

    def tree(depth: int, node: int, thread: int) -> int:
        if depth == 0:
            visited[node & 7] += 1
            value = int(texels[thread & 3, node & 7])
            written[(thread & 3) + 4, node & 7] = value + 1
            return value
        left = tree(depth - 1, node * 2, thread)
        right = tree(depth - 1, node * 2 + 1, thread) if node & 1 << (thread & 3) else 1
        if depth == 3 and thread == 5:
            lines.append(f"node {node}: {left} {right}\n")
        return left + right * 3

    assert out.tolist() == [tree(3, thread + 1, thread) for thread in range(40)]
    np.testing.assert_array_equal(visits, visited)
    np.testing.assert_array_equal(leaves.copy_to_host(), written)
    assert output == lines
