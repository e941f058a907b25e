"""Code of single lanes asks for what the indexes ahead lead to; what is not there, or no index, does no harm."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

PAGE_WORDS = 1024


def text(each: str = "ld.global.u32 %r4, [%rd5];", space: str = "global") -> str:
    """Each thread adds the words that its row of indexes, off rd5, leads to in a table, off rd6."""
    body = f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [indexes]; ld.param.u64 %rd3, [starts]; ld.param.u64 %rd6, [table];
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4;
  ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4]; mov.u32 %r3, 0;
  setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE;
  mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd5, %rd2;
LOOP:
  {each}
  mul.wide.u32 %rd7, %r4, 4; add.u64 %rd7, %rd7, %rd6; ld.{space}.u32 %r5, [%rd7]; add.u32 %r3, %r3, %r5;
  add.u64 %rd5, %rd5, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra LOOP;
DONE:
  st.global.u32 [%rd1], %r3;"""
    parameters = ".param .u64 out, .param .u64 indexes, .param .u64 starts, .param .u64 table"
    return kernel(GLOBAL_INDEX + body, parameters)


def asked(program: str, observed: Observed = "") -> int:
    options = compile.Options(cpu="x86-64-v4", observed=observed)
    code = str(compile.emit(compile.front(program), "k", options, "llvm"))
    return code.count("call void @llvm.prefetch.p0(ptr")


def test_code() -> None:
    """One more than for what the next block reads."""
    without = text("mov.u32 %r4, 5;")
    assert asked(text()) == asked(without) + 1


def test_not_where_accesses_are_told() -> None:
    assert asked(text(), "all") == asked(text("mov.u32 %r4, 5;"), "all")


@pytest.mark.parametrize("volatile", ["ld.volatile.global.u32", "ld.relaxed.gpu.global.u32"])
def test_what_others_may_write_is_read_as_often_as_written(volatile: str) -> None:
    assert asked(text(f"{volatile} %r4, [%rd5];")) == asked(text("mov.u32 %r4, 5;"))


OWN_INDEXES = "ld.param.u64 %rd2, [indexes]; add.u64 %rd2, %rd2, %rd4; ld.global.u64 %rd2, [%rd2];"
"""Each thread has an array of its own."""


def test_where_indexes_end_is_asked_before() -> None:
    """Only arrays of which this is not known are read up to the end of a page."""
    own = text().replace("setp.ge.u32", f"{OWN_INDEXES} setp.ge.u32")
    options = compile.Options(cpu="x86-64-v4")
    of_page = [str(compile.emit(compile.front(one), "k", options, "llvm")).count(", 4095") for one in (text(), own)]
    assert of_page == [0, 1]


CACHED = 5000  # words of a table
NOT_CACHED = 1 << 22  # in no processor's second cache


@pytest.mark.parametrize("words", [CACHED, NOT_CACHED])
@pytest.mark.parametrize("count", [PAGE_WORDS, 3 * PAGE_WORDS, 3 * PAGE_WORDS - 70, 65])
def test_rows_up_to_the_end_of_memory(count: int, words: int) -> None:
    """An allocation of whole pages ends where no memory follows; an index beyond a row may be any number."""
    random = np.random.default_rng(count)
    threads = 64
    starts = np.sort(np.concatenate([[0, count], random.integers(0, count, threads - 1)])).astype(np.uint32)
    table = random.integers(0, 1 << 20, words, dtype=np.uint32)
    indexes = random.integers(0, len(table), count).astype(np.uint32)
    out = np.zeros(threads, np.uint32)
    ptxemu.loads(text())["k"][1, threads](out, indexes, starts, table)
    expected = [int(table[indexes[start:end]].sum()) for start, end in pairwise(starts)]
    np.testing.assert_array_equal(out, expected)


def test_indexes_that_no_row_has() -> None:
    """Rows of one word, between words that lead nowhere."""
    indexes = np.full(PAGE_WORDS, 0xFFFFFFFF, np.uint32)
    indexes[::16] = np.arange(64)
    table, out = np.arange(NOT_CACHED, dtype=np.uint32) * 3, np.zeros(64, np.uint32)
    program = text().replace("ld.global.u32 %r2, [%rd3+4];", "shl.b32 %r1, %r0, 4; add.u32 %r2, %r1, 1;")
    ptxemu.loads(program)["k"][1, 64](out, indexes, np.zeros(64, np.uint32), table)
    np.testing.assert_array_equal(out, table[:64])


def test_a_wild_index_is_a_fault_of_its_own_warp() -> None:
    """Not of the rows before it, which ask for what it leads to."""
    starts = np.arange(0, 65 * 8, 8, dtype=np.uint32)
    indexes = np.zeros(64 * 8, np.uint32)
    indexes[8 * 40 + 3] = 0xFFFFFFF0
    with pytest.raises(ptxemu.Fault, match=r"<string>:\d+: block \(0,0,0\), warp 1, access to global"):
        ptxemu.loads(text())["k"][1, 64](np.zeros(64, np.uint32), indexes, starts, np.zeros(NOT_CACHED, np.uint32))
