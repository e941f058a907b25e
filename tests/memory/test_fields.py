"""Fields of structures that lie side by side, one for each lane: values, masks, what lies between, pages and faults, of loads
and of stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512

THREADS = 128
PAGE = 4096
POINT, PIXEL, TWO_OF_FOUR = (12, 4, (0, 4, 8)), (3, 1, (0, 1, 2)), (8, 2, (2, 6))
LAYOUTS = [
    POINT, PIXEL, TWO_OF_FOUR, (12, 4, (8, 0, 4)), (8, 4, (4, 0)), (16, 4, (12, 4, 0)), (4, 1, (3, 1)), (16, 8, (0, 8)),
    (6, 2, (-2, 0, 2)), (32, 8, (0, 8, 24)), (12, 4, (0, 4, 8, 12, 16, 20, 36)), (8, 4, (0, 4, 0)),
]  # fmt: skip
"""Bytes of a structure and of an element, and offsets of fields."""
Layout = tuple[int, int, tuple[int, ...]]


def text(layout: Layout, between: str = "") -> str:
    """Each thread but those that an array leaves out reads fields of its structure, one after another, and ``between`` is behind
    the first of them. The results are 64 bits each."""
    stride, size, offsets = layout
    loads = [f"ld.global.u{8 * size} %rd{20 + number}, [%rd6+{offset}];" for number, offset in enumerate(offsets)]
    stores = [f"st.global.u64 [%rd1+{8 * THREADS * number}], %rd{20 + number};" for number in range(len(offsets))]
    body = f"""ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [data]; ld.param.u64 %rd4, [on]; ld.param.u64 %rd3, [start];
    mul.wide.u32 %rd5, %r0, 8; add.u64 %rd1, %rd1, %rd5; mul.wide.u32 %rd5, %r0, 4; add.u64 %rd4, %rd4, %rd5;
    ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra E;
    mul.wide.u32 %rd6, %r0, {stride}; add.u64 %rd6, %rd6, %rd2; add.u64 %rd6, %rd6, %rd3;
    {loads[0]}
    {between}
    """
    parameters = ".param .u64 out, .param .u64 data, .param .u64 start, .param .u64 on"
    return kernel(GLOBAL_INDEX + body + "\n".join(loads[1:]) + " ".join(stores) + "E:", parameters)


def launch(program: str, data: np.ndarray, start: int, on: np.ndarray, count: int) -> np.ndarray:
    """What two blocks have read of structures that begin at a place in an array of bytes."""
    out = np.zeros((count, THREADS), np.uint64)
    ptxemu.loads(program, filename="test.ptx")["k"][2, THREADS // 2](out, data, start, on.astype(np.uint32))
    return out


def expected(layout: Layout, data: np.ndarray, start: int, on: np.ndarray) -> np.ndarray:
    stride, size, offsets = layout
    places = start + stride * np.arange(THREADS)
    bytes = [
        [data[places + offset + byte].astype(np.uint64) << np.uint64(8 * byte) for byte in range(size)] for offset in offsets
    ]
    return np.where(on, np.sum(bytes, axis=1, dtype=np.uint64), 0)


def code_of(layout: Layout, between: str = "", cpu: str = "x86-64-v4") -> str:
    return str(compile.emit(compile.front(text(layout, between)), "k", compile.Options(cpu=cpu), "llvm"))


def bytes_of(random: np.random.Generator, pages: int) -> np.ndarray:
    return random.integers(0, 256, pages * PAGE, np.uint8)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    ("layout", "load"), [(POINT, "load <96 x i32>"), (PIXEL, "load <96 x i8>"), (TWO_OF_FOUR, "load <128 x i16>")]
)
def test_the_structures_of_all_lanes_are_loaded_once(layout: Layout, load: str, cpu: str) -> None:
    assert code_of(layout, cpu=cpu).count(load) == 1


@pytest.mark.parametrize(
    ("layout", "between"),
    [
        ((12, 4, (4,)), ""),
        ((36, 4, (0, 4, 8)), ""),
        ((12, 4, (0, 12)), ""),
        ((12, 4, (0, 4)), "bar.sync 0;"),
        ((12, 4, (0, 4)), "st.global.u32 [%rd1], %r0;"),
    ],
)
def test_loads_of_one_field_of_large_structures_or_apart_stay_alone(layout: Layout, between: str) -> None:
    code = code_of(layout, between)
    assert f"load <{32 * layout[0] // layout[1]} x i{8 * layout[1]}>" not in code


@pytest.mark.parametrize("avx512", [True, False])
@pytest.mark.parametrize("chosen", ["all", "some", "none"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_values(layout: Layout, chosen: str, avx512: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not avx512:
        without_avx512(monkeypatch, tmp_path)
    stride, size, offsets = layout
    random = np.random.default_rng(stride)
    on = {"all": np.ones(THREADS), "some": random.integers(0, 2, THREADS), "none": np.zeros(THREADS)}[chosen] == 1
    data = bytes_of(random, 3)
    for start in (-min(offsets), PAGE - 40 * stride // size * size, len(data) - max(offsets) - size - (THREADS - 1) * stride):
        found = launch(text(layout), data, start, on, len(offsets))
        np.testing.assert_array_equal(found, expected(layout, data, start, on))


@pytest.mark.parametrize("between", ["st.global.u32 [%rd6+4], %r0;", "atom.global.exch.b32 %r5, [%rd6+4], %r0;"])
def test_what_is_written_between_is_seen(between: str) -> None:
    data, on = np.full(12 * THREADS, 7, np.uint8), np.ones(THREADS, bool)
    found = launch(text(POINT, between), data, 0, on, 3)
    np.testing.assert_array_equal(found, [np.full(THREADS, 0x07070707), np.arange(THREADS), np.full(THREADS, 0x07070707)])


@pytest.mark.parametrize("at_the_end", [True, False])
@pytest.mark.parametrize("beyond", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "layout", [POINT, PIXEL, TWO_OF_FOUR, (12, 4, (8, 0, 4)), (12, 4, (4, 8, 0)), (16, 4, (12, 4, 0))], ids=str
)
def test_the_load_that_fails_is_told(layout: Layout, beyond: int, at_the_end: bool) -> None:
    """The first one that goes beyond the array, by so many elements, in its first thread or its last one."""
    stride, size, offsets = layout
    data = bytes_of(np.random.default_rng(1), 2)
    start = len(data) - THREADS * stride + beyond * size if at_the_end else -beyond * size
    thread = THREADS - 1 if at_the_end else 0
    places = [start + thread * stride + offset for offset in offsets]
    failing = [number for number, place in enumerate(places) if not 0 <= place <= len(data) - size]
    program, on = text(layout), np.ones(THREADS, bool)
    lines = [number for number, line in enumerate(program.splitlines(), 1) if "[%rd6" in line]
    if not failing:
        launch(program, data, start, on, len(offsets))
        return
    with pytest.raises(ptxemu.Fault) as fault:
        launch(program, data, start, on, len(offsets))
    assert fault.value.details.location.line == lines[failing[0]]
    assert fault.value.details.block == (thread // (THREADS // 2), 0, 0)
    assert fault.value.details.warp == thread % (THREADS // 2) // 32


WRAPPING = kernel(
    GLOBAL_INDEX
    + """ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [data]; ld.param.u32 %r6, [first];
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd1, %rd1, %rd5; add.u32 %r6, %r6, %r0; mul.lo.u32 %r6, %r6, 12;
    cvt.u64.u32 %rd6, %r6; add.u64 %rd6, %rd6, %rd2;
    ld.global.u32 %r7, [%rd6]; ld.global.u32 %r8, [%rd6+4]; ld.global.u32 %r9, [%rd6+8];
    add.u32 %r7, %r7, %r8; sub.u32 %r7, %r7, %r9; st.global.u32 [%rd1], %r7;""",
    ".param .u64 out, .param .u64 data, .param .u32 first",
)
"""Words of the structures from the first one on, whose places are products of 32 bits."""


def test_an_index_that_has_wrapped() -> None:
    data = np.random.default_rng(2).integers(0, 1 << 32, 3 * 64, dtype=np.uint32)
    out = np.zeros(32, np.uint32)
    ptxemu.loads(WRAPPING)["k"][1, 32](out, data, (1 << 30) + 3)  # times 12 is 36 beyond 3 << 32
    rows = data.reshape(-1, 3)[3 : 3 + len(out)]
    np.testing.assert_array_equal(out, rows[:, 0] + rows[:, 1] - rows[:, 2])


def test_an_index_that_wraps_in_a_warp() -> None:
    """The lanes before are in memory, those behind are 4 GiB below it."""
    device = ptxemu.Device(memory="16 MiB")
    buffer, out = device.to_device(np.zeros(PAGE, np.uint8)), device.to_device(np.zeros(32, np.uint32))
    first = (1 << 32) // 12 - 4  # of lane 5 the product is 1 << 32, and more
    with pytest.raises(ptxemu.Fault) as fault:
        ptxemu.loads(WRAPPING, device=device)["k"][1, 32](out, buffer.address - 12 * first, first)
    lines = [number for number, line in enumerate(WRAPPING.splitlines(), 1) if "[%rd6]" in line]
    assert fault.value.details.location.line == lines[0]
    assert fault.value.details.thread == (5, 0, 0)


# ---------------------------------------------------------------- stores

ALL_FIELDS = [
    POINT, PIXEL, (12, 4, (8, 0, 4)), (8, 4, (4, 0)), (4, 1, (2, 0, 3, 1)), (16, 8, (0, 8)), (6, 2, (-2, 0, 2)),
    (32, 4, (0, 28, 24, 4, 20, 8, 16, 12)), (12, 4, (0, 4, 8, 8)),
]  # fmt: skip
NOT_ALL = [(8, 2, (2, 6)), (12, 4, (0, 4, 4)), (12, 4, (0, 4)), (24, 4, (0, 4, 8, 12))]


def storing(layout: Layout, between: str = "") -> str:
    """Each thread but those that an array leaves out stores numbers of its own to fields, one after another, and ``between`` is
    behind the first of them."""
    stride, size, offsets = layout
    numbers = " ".join(f"mad.lo.u64 %rd{20 + k}, %rd9, {2 * k + 3}, {k}; " for k in range(len(offsets)))
    stores = [f"st.global.u{8 * size} [%rd6+{offset}], %rd{20 + k};" for k, offset in enumerate(offsets)]
    body = f"""ld.param.u64 %rd2, [data]; ld.param.u64 %rd4, [on]; ld.param.u64 %rd3, [start]; ld.param.u64 %rd8, [numbers];
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd4, %rd4, %rd5; mul.wide.u32 %rd5, %r0, 8; add.u64 %rd8, %rd8, %rd5;
    ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra E;
    mul.wide.u32 %rd6, %r0, {stride}; add.u64 %rd6, %rd6, %rd2; add.u64 %rd6, %rd6, %rd3; ld.global.u64 %rd9, [%rd8]; {numbers}
    {stores[0]}
    {between}
    """
    parameters = ".param .u64 data, .param .u64 start, .param .u64 numbers, .param .u64 on"
    return kernel(GLOBAL_INDEX + body + "\n".join(stores[1:]) + "\nE:", parameters)


def stored(program: str, data: np.ndarray, start: int, numbers: np.ndarray, on: np.ndarray) -> np.ndarray:
    out = data.copy()
    ptxemu.loads(program, filename="test.ptx")["k"][2, THREADS // 2](out, start, numbers, on.astype(np.uint32))
    return out


def as_stored(layout: Layout, data: np.ndarray, start: int, numbers: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Each field of all threads after the one before."""
    stride, size, offsets = layout
    out = data.copy()
    for k, offset in enumerate(offsets):
        for thread in np.flatnonzero(on):
            at = start + stride * thread + offset
            value = (int(numbers[thread]) * (2 * k + 3) + k) % (1 << 64)
            out[at : at + size] = np.frombuffer(value.to_bytes(8, "little")[:size], np.uint8)
    return out


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("layout", "whole"), [(POINT, "<96 x i32>"), (PIXEL, "<96 x i8>")])
def test_the_structures_of_all_lanes_are_stored_once(layout: Layout, whole: str, cpu: str) -> None:
    code = str(compile.emit(compile.front(storing(layout)), "k", compile.Options(cpu=cpu), "llvm"))
    assert code.count(f"store {whole}") == 1


@pytest.mark.parametrize("layout", NOT_ALL, ids=str)
def test_stores_that_leave_something_out_stay_alone(layout: Layout) -> None:
    code = str(compile.emit(compile.front(storing(layout)), "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    assert f"store <{32 * layout[0] // layout[1]} x i{8 * layout[1]}>" not in code


@pytest.mark.parametrize("avx512", [True, False])
@pytest.mark.parametrize("chosen", ["all", "some", "none"])
@pytest.mark.parametrize("layout", ALL_FIELDS + NOT_ALL, ids=str)
def test_what_is_stored(layout: Layout, chosen: str, avx512: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not avx512:
        without_avx512(monkeypatch, tmp_path)
    stride, size, offsets = layout
    random = np.random.default_rng(stride)
    on = {"all": np.ones(THREADS), "some": random.integers(0, 2, THREADS), "none": np.zeros(THREADS)}[chosen] == 1
    data, numbers = bytes_of(random, 2), random.integers(0, 1 << 60, THREADS, dtype=np.uint64)
    for start in (-min(offsets), len(data) - max(offsets) - size - (THREADS - 1) * stride):
        found = stored(storing(layout), data, start, numbers, on)
        np.testing.assert_array_equal(found, as_stored(layout, data, start, numbers, on))


@pytest.mark.parametrize(
    "between",
    [
        "ld.global.u32 %r7, [%rd6]; st.global.u32 [%rd6+8], %r7;",
        "st.global.u32 [%rd6], %rd9;",
        "atom.global.add.u32 %r7, [%rd6], 1; bar.sync 0;",
    ],
)
def test_what_is_between_stores_sees_them(between: str) -> None:
    """Something reads the first field before the others are stored, or changes it."""
    numbers, on = np.arange(THREADS, dtype=np.uint64), np.ones(THREADS, bool)
    found = stored(storing(POINT, between), np.zeros(12 * THREADS, np.uint8), 0, numbers, on).view(np.uint32).reshape(-1, 3)
    first = 3 * np.arange(THREADS)
    first = {"l": first, "s": np.arange(THREADS), "a": first + 1}[between[0]]
    np.testing.assert_array_equal(found.T, [first, 5 * np.arange(THREADS) + 1, 7 * np.arange(THREADS) + 2])


@pytest.mark.parametrize("at_the_end", [True, False])
@pytest.mark.parametrize("beyond", [1, 2, 3])
@pytest.mark.parametrize("layout", [POINT, PIXEL, (12, 4, (8, 0, 4)), (12, 4, (4, 8, 0))], ids=str)
def test_the_store_that_fails_is_told(layout: Layout, beyond: int, at_the_end: bool) -> None:
    stride, size, offsets = layout
    data = bytes_of(np.random.default_rng(1), 2)
    start = len(data) - THREADS * stride + beyond * size if at_the_end else -beyond * size
    places = [start + (THREADS - 1 if at_the_end else 0) * stride + offset for offset in offsets]
    failing = next(number for number, place in enumerate(places) if not 0 <= place <= len(data) - size)
    program = storing(layout)
    lines = [number for number, line in enumerate(program.splitlines(), 1) if "[%rd6" in line]
    with pytest.raises(ptxemu.Fault) as fault:
        stored(program, data, start, np.zeros(THREADS, np.uint64), np.ones(THREADS, bool))
    assert fault.value.details.location.line == lines[failing]
    assert fault.value.details.block == (1 if at_the_end else 0, 0, 0)
