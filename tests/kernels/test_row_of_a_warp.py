"""A row for each warp, as in sparse matrices: lanes go along it side by side, and the first one stores what they have found."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel, ragged

THREADS, CTAS = 96, 5
WARPS = THREADS * CTAS // 32
STARTS, WORDS, ROWS = ragged(5, WARPS, 200)
PARAMETERS = ".param .u64 out, .param .u64 words, .param .u64 starts, .param .u64 table"


def text(store: str = "@%p3 st.global.u32 [%rd1], %r3;", leader: int = 0, warp: str = "shr.u32 %r9, %r0, 5;") -> str:
    """Sums of the words of a table that the words of rows say, by one lane of each warp."""
    shuffles = " ".join(f"shfl.sync.bfly.b32 %r8, %r3, {by}, 31, -1; add.u32 %r3, %r3, %r8;" for by in (16, 8, 4, 2, 1))
    body = f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [starts]; ld.param.u64 %rd7, [table];
  {warp} mov.u32 %r10, %tid.x; and.b32 %r10, %r10, 31;
  mul.wide.u32 %rd4, %r9, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4;
  ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4]; add.u32 %r1, %r1, %r10; mov.u32 %r3, 0;
  setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE;
LOOP:
  mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd5, %rd2; ld.global.u32 %r4, [%rd5];
  mul.wide.u32 %rd6, %r4, 4; add.u64 %rd6, %rd6, %rd7; ld.global.u32 %r5, [%rd6]; add.u32 %r3, %r3, %r5;
  add.u32 %r1, %r1, 32; setp.lt.u32 %p1, %r1, %r2; @%p1 bra LOOP;
DONE:
  {shuffles} setp.eq.u32 %p3, %r10, {leader};
  {store}"""
    return kernel(GLOBAL_INDEX + body, PARAMETERS)


def run(program: str) -> tuple[np.ndarray, np.ndarray]:
    """What the rows have, and what comes of the kernel."""
    table = np.random.default_rng(3).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    out = np.zeros(WARPS, np.uint32)
    ptxemu.loads(program, tier="best")["k"][CTAS, THREADS](out, WORDS.copy(), STARTS, table)
    return np.array([table[row].sum(dtype=np.uint32) for row in ROWS]), out


def code(program: str) -> str:
    return str(compile.emit(compile.front(program), "k", compile.Options(cpu="x86-64-v4"), "llvm"))


def test_lanes_that_read_side_by_side_go_in_step() -> None:
    assert "lane.begin" not in code(text())


@pytest.mark.parametrize("leader", [0, 1, 31])
def test_one_lane_stores(leader: int) -> None:
    expected, found = run(text(leader=leader))
    np.testing.assert_array_equal(found, expected)


def test_all_lanes_store_and_the_last_one_stays() -> None:
    expected, found = run(text("add.u32 %r3, %r3, %r10; st.global.u32 [%rd1], %r3;"))
    np.testing.assert_array_equal(found, expected + np.uint32(31))


@pytest.mark.parametrize("number", ["shr.s32 %r9, %r0, 5;", "shr.u32 %r9, %r0, 5;", "div.u32 %r9, %r0, 32;"])
def test_the_number_of_a_warp(number: str) -> None:
    expected, found = run(text(warp=number))
    np.testing.assert_array_equal(found, expected)


def test_groups_that_begin_elsewhere() -> None:
    """Where the number changes in the middle of a warp, the first lane of the second half stores for the next row."""
    store = "add.u32 %r8, %r9, 100; setp.eq.u32 %p3, %r10, 16; @%p3 st.global.u32 [%rd1], %r8;"
    _, found = run(text(store, warp="add.u32 %r9, %r0, 16; shr.u32 %r9, %r9, 5; min.u32 %r9, %r9, 14;"))
    np.testing.assert_array_equal(found, [0, *range(101, 100 + WARPS)])


def test_a_fault_of_the_one_lane_names_it() -> None:
    program = text("setp.eq.u32 %p2, %r9, 7; @%p2 add.u64 %rd1, %rd1, 1; @%p3 st.global.u32 [%rd1], %r3;")
    with pytest.raises(ptxemu.Fault, match=r"misaligned.*block \(2,0,0\), thread \(32,0,0\)"):
        run(program)
