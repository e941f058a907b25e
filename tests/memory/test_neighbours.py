"""Words that lie side by side for each lane, wherever the lanes are: values, masks, pages, what lies between, and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512

THREADS = 128
FOUR = (0, 4, 8, 12)
PAGE = 4096


def text(offsets: tuple[int, ...], between: str = "") -> str:
    """Each of the threads that an array chooses reads words at these offsets from a place of its own, one after another, and
    ``between`` is behind the first of them."""
    loads = [f"ld.global.u32 %r{10 + number}, [%rd6+{offset}];" for number, offset in enumerate(offsets)]
    stores = [f"st.global.u32 [%rd1+{4 * THREADS * number}], %r{10 + number};" for number in range(len(offsets))]
    body = f"""ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [places]; ld.param.u64 %rd4, [on];
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5; add.u64 %rd1, %rd1, %rd5;
    ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra E;
    ld.global.s32 %r6, [%rd3]; cvt.s64.s32 %rd6, %r6; add.u64 %rd6, %rd6, %rd2;
    {loads[0]}
    {between}
    """
    return kernel(
        GLOBAL_INDEX + body + "\n".join(loads[1:]) + " ".join(stores) + "E:",
        ".param .u64 out, .param .u64 words, .param .u64 places, .param .u64 on",
    )


def launch(program: str, words: np.ndarray, places: np.ndarray, on: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros((count, THREADS), np.uint32)
    ptxemu.loads(program, filename="test.ptx")["k"][2, THREADS // 2](out, words, places.astype(np.int32), on.astype(np.uint32))
    return out


def expected(offsets: tuple[int, ...], words: np.ndarray, places: np.ndarray, on: np.ndarray) -> np.ndarray:
    found = [words[(np.where(on, places, -min(offsets)) + offset) // 4] for offset in offsets]
    return np.where(on, found, 0).astype(np.uint32)


@pytest.mark.parametrize(("cpu", "registers"), [("x86-64-v2", 4), ("x86-64-v3", 8), ("x86-64-v4", 16)])
def test_each_lane_loads_all_its_words_at_once(cpu: str, registers: int) -> None:
    code = str(compile.emit(compile.front(text(FOUR)), "k", compile.Options(cpu=cpu), "llvm"))
    assert code.count("load <4 x i32>") == 32
    assert f"<{registers} x i32> <i32 0, i32 1, i32 {registers}" in code


@pytest.mark.parametrize("offsets", [(0, 4), (0, 8, 16, 24), (0, 4, 12, 16)])
def test_loads_that_are_too_few_or_apart_stay_alone(offsets: tuple[int, ...]) -> None:
    code = str(compile.emit(compile.front(text(offsets)), "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    assert "load <4 x i32>" not in code


@pytest.mark.parametrize("avx512", [True, False])
@pytest.mark.parametrize("chosen", ["all", "some", "none"])
@pytest.mark.parametrize(
    "offsets", [FOUR, (-8, -4, 0, 4), (12, 0, 8, 4), (0, 4, 8), (0, 4, 8, 12, 16, 20, 24), (0, 4, 8, 40, 44, 48, 52, 4, 8)]
)
def test_values(offsets: tuple[int, ...], chosen: str, avx512: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not avx512:
        without_avx512(monkeypatch, tmp_path)
    random = np.random.default_rng(len(offsets))
    words = random.integers(0, 1 << 32, 3 * PAGE // 4, dtype=np.uint32)
    places = random.integers(-min(offsets) // 4, len(words) - max(offsets) // 4, THREADS) * 4
    on = {"all": np.ones(THREADS), "some": random.integers(0, 2, THREADS), "none": np.zeros(THREADS)}[chosen] == 1
    places[~on] = 1 << 30  # where nothing is
    found = launch(text(offsets), words, places, on, len(offsets))
    np.testing.assert_array_equal(found, expected(offsets, words, places, on))


@pytest.mark.parametrize("chosen", ["all", "some"])
@pytest.mark.parametrize(("apart", "count"), [(12, 0), (32, 0), (36, 1), (64, 1), (4096, 1), (-48, 1)])
def test_words_of_structures(apart: int, count: int, chosen: str) -> None:
    """The places of lanes are a constant apart: far ones are found like any others, near ones otherwise."""
    program = text(FOUR).replace("ld.global.s32 %r6, [%rd3]; cvt.s64.s32 %rd6, %r6;", f"mul.wide.s32 %rd6, %r0, {apart};")
    program = program.replace(
        "add.u64 %rd6, %rd6, %rd2;", f"add.u64 %rd6, %rd6, %rd2; add.u64 %rd6, %rd6, {max(0, -apart) * THREADS};"
    )
    code = str(compile.emit(compile.front(program), "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    assert (code.count("load <4 x i32>") == 32) == bool(count)
    words = np.random.default_rng(apart % 99).integers(0, 1 << 32, (abs(apart) * (THREADS + 1) + 16) // 4, dtype=np.uint32)
    places = apart * np.arange(THREADS) + max(0, -apart) * THREADS
    on = np.ones(THREADS, bool) if chosen == "all" else np.arange(THREADS) % 37 > 3
    found = launch(program, words, np.zeros(THREADS), on, 4)
    np.testing.assert_array_equal(found, expected(FOUR, words, places, on))


def test_words_that_begin_in_one_page_and_end_in_another() -> None:
    words = np.arange(3 * PAGE // 4, dtype=np.uint32)
    places, on = PAGE - 4 * (1 + np.arange(THREADS) % 3), np.ones(THREADS, bool)
    np.testing.assert_array_equal(launch(text(FOUR), words, places, on, 4), expected(FOUR, words, places, on))


def test_the_last_words_of_memory() -> None:
    """Three are there, and no fourth."""
    words = np.arange(PAGE // 4, dtype=np.uint32)
    places, on = np.full(THREADS, PAGE - 12), np.ones(THREADS, bool)
    np.testing.assert_array_equal(launch(text((0, 4, 8)), words, places, on, 3), expected((0, 4, 8), words, places, on))


@pytest.mark.parametrize("between", ["st.global.u32 [%rd6+8], %r0;", "atom.global.exch.b32 %r5, [%rd6+8], %r0;"])
def test_what_is_written_between_is_seen(between: str) -> None:
    words, on = np.full(4 * THREADS, 7, np.uint32), np.ones(THREADS, bool)
    found = launch(text(FOUR, between), words, 16 * np.arange(THREADS), on, 4)
    np.testing.assert_array_equal(found, np.array([np.full(THREADS, 7)] * 2 + [np.arange(THREADS)] + [np.full(THREADS, 7)]))


@pytest.mark.parametrize(("place", "line"), [(1 << 30, 0), (-4, 0), (PAGE - 4, 1), (PAGE - 12, 3), (2, 0)])
def test_the_load_that_fails_is_told(place: int, line: int) -> None:
    program = text(FOUR)
    loads = [number for number, found in enumerate(program.splitlines(), 1) if "ld.global.u32 %r1" in found and "%rd6" in found]
    places = np.zeros(THREADS)
    places[77] = place
    with pytest.raises(ptxemu.Fault) as fault:
        launch(program, np.zeros(PAGE // 4, np.uint32), places, np.ones(THREADS), 4)
    assert f"test.ptx:{loads[line]}:" in str(fault.value)
    assert "block (1,0,0)" in str(fault.value)
