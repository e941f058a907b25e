"""Loops that lanes run one after another: values, ends and faults stay what they were (which they are: tests/ir/streams.ptx)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import GLOBAL_INDEX, kernel, ragged

THREADS = 96
STARTS, WORDS, ROWS = ragged(5, THREADS, 9)


def text(each: str, begin: str = "mov.u32 %r3, 0;", end: str = "DONE:") -> str:
    """A kernel in which each thread goes through its row: ``each`` has a word in r4, its index in r1; r3 is the result."""
    body = f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [starts];
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4;
  ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4];
  {begin}
  setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE;
LOOP:
  mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd5, %rd2; ld.global.u32 %r4, [%rd5];
  {each}
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra LOOP;
  {end}
  st.global.u32 [%rd1], %r3;"""
    return kernel(GLOBAL_INDEX + body, ".param .u64 out, .param .u64 words, .param .u64 starts")


def launch(program: str, **options: object) -> np.ndarray:
    out = np.zeros(THREADS, np.uint32)
    ptxemu.loads(program, filename="test.ptx")["k"][1, THREADS](out, WORDS.copy(), STARTS, **options)
    return out


def gathers(program: str, observed: Observed = "") -> int:
    """Gathers in the code for a CPU that has them, by halves of a warp."""
    options = compile.Options(cpu="x86-64-v4", observed=observed)
    code = str(compile.emit(compile.front(program), "k", options, "llvm"))
    return code.count("call <16 x i32> @llvm.masked.gather") // 2


SUM = "add.u32 %r3, %r3, %r4;"


def test_sums_of_rows() -> None:
    assert gathers(text(SUM)) == 0
    np.testing.assert_array_equal(launch(text(SUM)), [row.sum() for row in ROWS])


def test_a_word_of_each_lane_beside_its_row_changes_nothing() -> None:
    """Of neighbours, but always the same."""
    program = text(f"ld.global.u32 %r5, [%rd1]; add.u32 %r3, %r3, %r5; {SUM}")
    assert gathers(program) == 0
    np.testing.assert_array_equal(launch(program), [row.sum() for row in ROWS])


def test_a_loop_with_long_arithmetic_stays_in_step() -> None:
    long = "".join(f"mad.lo.u32 %r3, %r3, {3 + 2 * i}, %r4;" for i in range(20))
    assert gathers(text(long)) == 1


def test_a_chain_of_loads_stays_in_step() -> None:
    assert gathers(text(f"and.b32 %r1, %r4, 63; {SUM}")) == 1


def test_values_that_lanes_share_and_values_of_their_own() -> None:
    """A constant of the launch, the lane's number, and a predicate come in; a 64-bit sum and a predicate go out."""
    begin = """mov.u32 %r3, 0; mov.u32 %r5, %ctaid.x; add.u32 %r5, %r5, 7; mov.u64 %rd6, 0;
    and.b32 %r6, %r4, 0; and.b32 %r7, %r0, 1; setp.eq.u32 %p2, %r7, 1; setp.eq.u32 %p3, %r0, 5000;"""
    each = """mad.lo.u32 %r8, %r4, %r5, %r60; cvt.u64.u32 %rd7, %r8; @%p2 add.u64 %rd6, %rd6, %rd7;
    setp.gt.u32 %p3, %r4, 32767;"""
    end = "DONE: cvt.u32.u64 %r3, %rd6; @%p3 add.u32 %r3, %r3, 1000000000;"
    expected = []
    for lane, row in enumerate(ROWS):
        total = int((row.astype(np.int64) * 7 + lane).sum()) if lane % 2 else 0
        expected.append(total + 10**9 * bool(len(row) and row[-1] > 32767))
    np.testing.assert_array_equal(launch(text(each, begin, end)), expected)


def test_lanes_leave_in_the_middle() -> None:
    """At the first word above 50,000, whose index is the result."""
    each = "setp.gt.u32 %p2, %r4, 50000; mov.u32 %r3, %r1; @%p2 bra DONE; mov.u32 %r3, 77;"
    expected = [start + np.argmax(row > 50000) if (row > 50000).any() else 77 for start, row in zip(STARTS, ROWS)]
    expected = [value if len(row) else 0 for value, row in zip(expected, ROWS)]
    np.testing.assert_array_equal(launch(text(each)), expected)


def test_branches_inside() -> None:
    each = "setp.gt.u32 %p2, %r4, 40000; @%p2 bra ODD; add.u32 %r3, %r3, %r4; bra ON; ODD: xor.b32 %r3, %r3, %r4; ON:"
    expected = []
    for row in ROWS:
        value = 0
        for word in map(int, row):
            value = value ^ word if word > 40000 else value + word
        expected.append(value)
    np.testing.assert_array_equal(launch(text(each)), expected)


def test_an_index_that_only_some_trips_move_on() -> None:
    """As that of the elements which a partition has put in front."""
    begin = "mov.u32 %r3, 0; add.u32 %r10, %r1, 1;"
    each = """
  setp.gt.u32 %p2, %r4, 40000; @%p2 bra OVER; add.u32 %r10, %r10, 1; min.u32 %r10, %r10, %r2;
OVER:
  mul.wide.u32 %rd6, %r10, 4; add.u64 %rd6, %rd6, %rd2; ld.global.u32 %r5, [%rd6+-4]; mad.lo.u32 %r3, %r3, 3, %r5;"""
    expected = []
    for row in ROWS:
        value = np.uint32(0)
        for at in np.cumsum(row <= 40000):
            value = value * np.uint32(3) + row[min(at, len(row) - 1)]
        expected.append(value)
    np.testing.assert_array_equal(launch(text(each, begin)), expected)


def test_stores() -> None:
    """Each word is replaced; what is loaded afterwards is the new one."""
    each = f"add.u32 %r4, %r4, 1; st.global.u32 [%rd5], %r4; ld.global.u32 %r4, [%rd5]; {SUM}"
    assert gathers(text(each)) == 0
    np.testing.assert_array_equal(launch(text(each)), [row.sum() + len(row) for row in ROWS])


def test_not_a_number() -> None:
    """The sum of an infinity and its negative is the canonical NaN once its bits are seen."""
    begin = "mov.f32 %f1, 0f7F800000; mov.u32 %r3, 0;"
    end = "DONE: mov.b32 %r3, %f1;"
    found = launch(text("mov.f32 %f2, 0fFF800000; add.f32 %f1, %f1, %f2;", begin, end))
    np.testing.assert_array_equal(found, [0x7FFFFFFF if len(row) else 0x7F800000 for row in ROWS])


def test_rows_of_a_looped_kernel_with_a_barrier() -> None:
    np.testing.assert_array_equal(launch(text(SUM, end="DONE: bar.sync 0; bar.sync 0;")), [row.sum() for row in ROWS])


def test_faults_name_the_thread() -> None:
    misaligned = "mov.u32 %r3, 0; setp.eq.u32 %p2, %r0, 70; @%p2 add.u64 %rd2, %rd2, 1;"
    assert len(ROWS[70])
    with pytest.raises(ptxemu.Fault, match=r"misaligned.*test.ptx:17: .*thread \(70,0,0\)"):
        launch(text(SUM, misaligned))


def test_timeout() -> None:
    endless = text(SUM).replace("@%p1 bra LOOP", "@%p2 bra LOOP").replace("mov.u32 %r3, 0;", "setp.eq.u32 %p2, %r0, %r0;")
    with pytest.raises(ptxemu.LaunchTimeout):
        launch(endless.replace("add.u32 %r1, %r1, 1;", "and.b32 %r1, %r1, 31;"), timeout=0.2)


def test_code_that_is_observed_stays_in_step() -> None:
    assert gathers(text(SUM), observed="all") == 1
