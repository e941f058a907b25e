"""Loops over rows that a compiler has unrolled: the loop for the rest of a row and the unrolled one are one stretch of code,
which lanes run one after another."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel, ragged

THREADS = 96
STARTS, WORDS, ROWS = ragged(7, THREADS, 14)
LENGTHS = np.diff(STARTS)
HASH = "mad.lo.u32 %r3, %r3, 31, {};"


def text(after: str = "", between: str = "", begin: str = "mov.u32 %r3, 0;") -> str:
    """A hash of each row, in the shape that nvcc gives loops: up to three trips, then four words in a trip. r9 is the number of
    trips of the first loop."""
    four = "".join(f"ld.global.u32 %r4, [%rd5+{4 * i}]; {HASH.format('%r4')}\n" for i in range(4))
    body = f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [starts];
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4;
  ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4];
  {begin}
  setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE;
  mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd5, %rd2;
  sub.u32 %r8, %r2, %r1; and.b32 %r9, %r8, 3; mov.u32 %r10, %r9;
  setp.eq.u32 %p1, %r9, 0; @%p1 bra WHOLE;
REST:
  ld.global.u32 %r4, [%rd5]; {HASH.format("%r4")}
  add.u64 %rd5, %rd5, 4; add.u32 %r1, %r1, 1; sub.u32 %r10, %r10, 1; setp.ne.u32 %p1, %r10, 0; @%p1 bra REST;
WHOLE:
  {between}
  setp.lt.u32 %p1, %r8, 4; @%p1 bra DONE;
FOUR:
  {four}
  add.u64 %rd5, %rd5, 16; add.u32 %r1, %r1, 4; setp.lt.u32 %p1, %r1, %r2; @%p1 bra FOUR;
DONE:
  {after}
  st.global.u32 [%rd1], %r3;"""
    return kernel(GLOBAL_INDEX + body, ".param .u64 out, .param .u64 words, .param .u64 starts")


def hashed(row: np.ndarray, value: int = 0) -> int:
    for word in map(int, row):
        value = (value * 31 + word) % 2**32
    return value


def launch(program: str, words: np.ndarray = WORDS) -> np.ndarray:
    out = np.zeros(THREADS, np.uint32)
    ptxemu.loads(program, filename="test.ptx")["k"][1, THREADS](out, words.copy(), STARTS)
    return out


def stretches(program: str) -> int:
    """How often code looks for the next lane."""
    options = compile.Options(cpu="x86-64-v4")
    return str(compile.emit(compile.front(program), "k", options, "llvm")).count("call range(i32 0, 33) i32 @llvm.cttz.i32(")


def test_two_loops_are_one_stretch() -> None:
    assert stretches(text()) == 1
    np.testing.assert_array_equal(launch(text()), [hashed(row) for row in ROWS])


def test_a_value_from_between_that_is_read_behind_keeps_them_apart() -> None:
    program = text(after="add.u32 %r3, %r3, %r9;", begin="mov.u32 %r3, 0; mov.u32 %r9, 0;")
    np.testing.assert_array_equal(launch(program), [(hashed(row) + len(row) % 4) % 2**32 for row in ROWS])


def test_what_lanes_do_together_keeps_them_apart() -> None:
    """A load between the loops, of one word for all lanes."""
    program = text(between="ld.global.u32 %r11, [%rd2]; add.u32 %r3, %r3, %r11;")
    assert stretches(program) == 2
    first = int(WORDS[0])
    expected = [hashed(row[len(row) % 4 :], (hashed(row[: len(row) % 4]) + first) % 2**32) if len(row) else 0 for row in ROWS]
    np.testing.assert_array_equal(launch(program), expected)


def test_arithmetic_between_is_part_of_it() -> None:
    program = text(between="xor.b32 %r3, %r3, %r8;")
    assert stretches(program) == 1
    expected = [hashed(row[len(row) % 4 :], hashed(row[: len(row) % 4]) ^ len(row)) if len(row) else 0 for row in ROWS]
    np.testing.assert_array_equal(launch(program), expected)


@pytest.mark.parametrize("length", [2, 9])
def test_faults_name_the_thread_and_the_loop(length: int) -> None:
    """In the loop for the rest, and where four words are read off one address."""
    lane = int(np.flatnonzero(length == LENGTHS)[0])
    bad = f"setp.eq.u32 %p2, %r0, {lane}; @%p2 add.u64 %rd5, %rd5, 1;"
    program = text(between=bad) if length > 3 else text().replace("REST:", f"{bad}\nREST:")
    lines = program.splitlines()
    line = 1 + next(i for i, found in enumerate(lines) if found.startswith("FOUR:" if length > 3 else "REST:")) + 1
    with pytest.raises(ptxemu.Fault, match=rf"misaligned.*test.ptx:{line}: .*thread \({lane},0,0\)"):
        launch(program)


def test_a_page_that_is_not_there() -> None:
    """The handler of the signal finds line and thread, off any of four addresses."""
    lane = int(np.flatnonzero(LENGTHS == 8)[0])
    program = text(begin=f"mov.u32 %r3, 0; setp.eq.u32 %p2, %r0, {lane}; @%p2 add.u64 %rd2, %rd2, 0x10000000;")
    line = 2 + next(i for i, found in enumerate(program.splitlines()) if found.startswith("FOUR:"))
    with pytest.raises(ptxemu.Fault, match=rf"test.ptx:{line}: .*global"):
        launch(program)


@pytest.mark.parametrize("path", ["generic", "global"])
def test_the_space_of_a_fault_after_accesses_of_both(path: str) -> None:
    """Accesses of two spaces on two ways that meet, and one behind that hits a page that is not there."""
    load = {"generic": "ld.u32", "global": "ld.global.u32"}
    other = load["global" if path == "generic" else "generic"]
    body = f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [starts];
  {load[path]} %r1, [%rd2]; setp.eq.u32 %p1, %r1, {int(WORDS[0]) ^ 1}; @%p1 bra OTHER;
  {load[path]} %r2, [%rd3]; bra ON;
OTHER:
  {other} %r2, [%rd3];
ON:
  add.u64 %rd2, %rd2, 0x10000000;
  {load[path]} %r3, [%rd2]; {other} %r4, [%rd3]; add.u32 %r3, %r3, %r4;
  st.global.u32 [%rd1], %r3;"""
    program = kernel(GLOBAL_INDEX + body, ".param .u64 out, .param .u64 words, .param .u64 starts")
    with pytest.raises(ptxemu.Fault) as caught:
        launch(program)
    assert ("global" in str(caught.value)) == (path == "global")
