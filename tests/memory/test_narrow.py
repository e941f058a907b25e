"""Bytes and halves that lie in one word of each lane, wherever lanes are: values, masks, pages, what lies between, and faults."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512

THREADS = 128
PAGE = 4096
PARAMETERS = ".param .u64 out, .param .u64 bytes, .param .u64 places, .param .u64 on"
BETWEEN = "st.global.u32 [%rd1], %r5;"


def text(offsets: tuple[int, ...], kind: str = "u8", nc: str = "", between: str = "") -> str:
    """Each of the threads that an array chooses reads elements at these offsets from a place of its own, with ``between`` behind
    each of them, and stores them one after another."""
    loads = [f"ld.global{nc}.{kind} %r{10 + number}, [%rd6+{offset}]; {between}" for number, offset in enumerate(offsets)]
    stores = [f"st.global.u32 [%rd1+{4 * THREADS * number}], %r{10 + number};" for number in range(len(offsets))]
    body = """ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [bytes]; ld.param.u64 %rd3, [places]; ld.param.u64 %rd4, [on];
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5; add.u64 %rd1, %rd1, %rd5;
    ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra E;
    ld.global.s32 %r6, [%rd3]; cvt.s64.s32 %rd6, %r6; add.u64 %rd6, %rd6, %rd2;"""
    return kernel("\n".join([GLOBAL_INDEX, body, *loads, *stores, "E:"]), PARAMETERS)


def launch(program: str, data: np.ndarray, places: np.ndarray, on: np.ndarray, count: int, check: str = "") -> np.ndarray:
    with ptxemu.Device(memory="64 MiB", check=check or None) as device:
        out = device.to_device(np.zeros((count, THREADS), np.uint32))
        arrays = [device.to_device(array) for array in (data, places.astype(np.int32), on.astype(np.uint32))]
        ptxemu.loads(program, filename="test.ptx", device=device, tier="best")["k"][2, THREADS // 2](out, *arrays)
        assert device.checks is None or not device.checks.findings
        return np.asarray(out.copy_to_host())


KINDS = {"u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16}


@pytest.mark.parametrize(
    ("check", "avx512"), [("", True), ("memory", True), ("race", True), ("init", True), ("", False), ("init", False)]
)
@pytest.mark.parametrize("chosen", ["all", "some", "none"])
@pytest.mark.parametrize(
    ("kind", "offsets"),
    [
        ("u8", (0, 1, 2, 3)), ("u8", (0, 1, 2)), ("s8", (2, 0)), ("u8", (-3, -1, 0, 4)), ("u8", (0, 1, 2, 3, 4, 5, 6)),
        ("u16", (0, 2)), ("s16", (2, 0, 6, 4)), ("u16", (-2, 0)),
    ],
)  # fmt: skip
def test_values(
    kind: str, offsets: tuple[int, ...], chosen: str, check: str, avx512: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not avx512:
        without_avx512(monkeypatch, tmp_path)
    random, size = np.random.default_rng(len(offsets)), KINDS[kind]().itemsize
    data = random.integers(0, 256, 3 * PAGE, dtype=np.uint8)
    places = random.integers(-min(offsets) // size, (len(data) - max(offsets)) // size, THREADS) * size
    places[:4] = PAGE - size, PAGE - 2 * size, PAGE, len(data) - max(offsets) - size
    on = {"all": np.ones(THREADS), "some": random.integers(0, 2, THREADS), "none": np.zeros(THREADS)}[chosen] == 1
    wanted = [data.view(KINDS[kind])[(np.where(on, places, -min(offsets)) + offset) // size] for offset in offsets]
    places[~on] = 1 << 30  # where nothing is
    found = launch(text(offsets, kind), data, places, on, len(offsets), check)
    np.testing.assert_array_equal(found.view(np.int32), np.where(on, wanted, 0).astype(np.int32))


def gathers_words(program: str, cpu: str) -> bool:
    code = str(compile.emit(compile.front(program), "k", compile.Options(cpu=cpu), "llvm"))
    return bool(re.search(r"call (<32 x i32> @llvm.masked.gather|(fastcc )?void @lanes.gather.32)", code))


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    ("program", "together"),
    [
        (text((0, 1, 2, 3)), True),
        (text((0, 2, 4, 6), "u16"), True),
        (text((0, 4, 8)), False),
        (text((0, 1, 2, 3), between=BETWEEN), False),  # which may write what is read
        (text((0, 1, 2, 3), nc=".nc", between=BETWEEN), True),
        (text((0, 1, 2, 3), nc=".nc", between="bar.sync 0;"), False),
    ],
)
def test_what_is_gathered_together(program: str, together: bool, cpu: str) -> None:
    assert gathers_words(program, cpu) == together


def test_stores_between_are_seen_by_loads_that_follow() -> None:
    program = text((0, 1), between="st.global.u8 [%rd6+1], 200;")
    found = launch(program, np.zeros(4 * THREADS, np.uint8), 4 * np.arange(THREADS)[::-1], np.ones(THREADS), 2)
    np.testing.assert_array_equal(found, [[0] * THREADS, [200] * THREADS])


@pytest.mark.parametrize(
    ("kind", "offsets", "place", "message"),
    [
        ("u8", (0, 1, 2, 3), 1 << 28, "illegal address"),
        ("u16", (0, 2), 1, "misaligned"),
        ("u8", (0, 1), -(1 << 29), "illegal address"),
    ],
)
def test_a_fault_names_the_lane(kind: str, offsets: tuple[int, ...], place: int, message: str) -> None:
    places = 4 * np.arange(THREADS)[::-1]
    places[77] = place
    with pytest.raises(ptxemu.Fault, match=rf"{message}.*block \(1,0,0\)"):
        launch(text(offsets, kind), np.zeros(4 * THREADS + 8, np.uint8), places, np.ones(THREADS), len(offsets))


def test_stores_of_all_bytes_of_a_word_pass_loads_of_what_nobody_writes() -> None:
    body = "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [bytes]; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd1, %rd1, %rd3;"
    body += "mul.lo.u32 %r1, %r0, 37; and.b32 %r1, %r1, 127; cvt.u64.u32 %rd4, %r1; add.u64 %rd2, %rd2, %rd4;"
    moved = " ".join(f"ld.global.nc.u8 %r2, [%rd2+{byte}]; st.global.u8 [%rd1+{byte}], %r2;" for byte in range(4))
    program = kernel(GLOBAL_INDEX + body + moved, ".param .u64 out, .param .u64 bytes")
    data, out = np.random.default_rng(1).integers(0, 256, 131, dtype=np.uint8), np.zeros((THREADS, 4), np.uint8)
    ptxemu.loads(program, tier="best")["k"][2, THREADS // 2](out, data)
    np.testing.assert_array_equal(out, data[(np.arange(THREADS) * 37 % 128)[:, None] + np.arange(4)])
    code = str(compile.emit(compile.front(program), "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    assert "store <128 x i8>" in code
