"""Accesses of single lanes to memory that is sure to be there: code asks once how far an allocation reaches, and all that lies
elsewhere is still found, or is the fault that it was."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import GLOBAL_INDEX, kernel, ragged

THREADS = 96
STARTS, COLUMNS, ROWS = ragged(3, THREADS, 9)
WORDS = np.random.default_rng(4).integers(0, 1 << 16, 256).astype(np.uint32)
COLUMNS %= 256
LAST = int(np.flatnonzero(np.diff(STARTS))[-1])


def text(index: str = "", prepare: str = "", load: str = "ld.global.u32 %r4, [%rd6];") -> str:
    """A sum of words at indexes in a row of each thread. ``index`` changes the index in r5, ``prepare`` the address of words in
    rd2 or of indexes in rd5."""
    body = f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [starts]; ld.param.u64 %rd7, [columns];
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4;
  ld.global.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3+4]; mov.u32 %r3, 0;
  {prepare}
  mul.wide.u32 %rd5, %r1, 4; add.u64 %rd5, %rd5, %rd7;
  setp.ge.u32 %p1, %r1, %r2; @%p1 bra DONE;
LOOP:
  ld.global.u32 %r5, [%rd5];
  {index}
  mul.wide.s32 %rd6, %r5, 4; add.s64 %rd6, %rd6, %rd2;
  {load}
  add.u32 %r3, %r3, %r4;
  add.u64 %rd5, %rd5, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, %r2; @%p1 bra LOOP;
DONE:
  st.global.u32 [%rd1], %r3;"""
    return kernel(GLOBAL_INDEX + body, ".param .u64 out, .param .u64 words, .param .u64 starts, .param .u64 columns")


def line_of(program: str, what: str) -> int:
    return 1 + next(number for number, line in enumerate(program.splitlines()) if what in line)


def run(program: str, words: object = None, columns: object = None, device: ptxemu.Device | None = None) -> np.ndarray:
    device = device or ptxemu.Device()
    out = device.to_device(np.zeros(THREADS, np.uint32))
    given = [device.to_device(WORDS) if words is None else words, STARTS, COLUMNS.copy() if columns is None else columns]
    ptxemu.loads(program, filename="test.ptx", device=device)["k"][1, THREADS](out, *given)
    return np.array(out.copy_to_host())


SUMS = [int(WORDS[row % 256].sum()) for row in ROWS]


ONE_TOO_FAR = f"setp.eq.u32 %p2, %r0, {LAST}; @%p2 mov.u32 %r5, 256;"
"""One thread reads the word just behind the last one, as often as its row is long."""


def asked(program: str, observed: Observed = "") -> int:
    options = compile.Options(cpu="x86-64-v4", observed=observed)
    return str(compile.emit(compile.front(program), "k", options, "llvm")).count("call i64 @pe_reach")


def test_the_runtime_is_asked_for_each_array() -> None:
    assert asked(text()) == 2
    np.testing.assert_array_equal(run(text()), SUMS)


@pytest.mark.parametrize("observed", ["members", "strays", "blanks", "stamps", "strays, stamps"])
def test_code_that_tells_of_strays_asks_too(observed: Observed) -> None:
    assert asked(text(), observed) == 2


def test_code_that_tells_of_all_accesses_does_not_ask() -> None:
    assert asked(text(), "all") == 0


@pytest.mark.parametrize("check", ["memory", "init", "sync", "race", "memory,init", "all"])
def test_nothing_is_found_in_rows_that_are_right(check: str) -> None:
    device = ptxemu.Device(check=check)
    np.testing.assert_array_equal(run(text(), device=device), SUMS)
    assert not device.checks.findings


def test_a_checker_finds_the_word_behind_an_array() -> None:
    device = ptxemu.Device(check="memory")
    program = text(ONE_TOO_FAR)
    words = device.to_device(WORDS, "words")
    np.testing.assert_array_equal(run(program, words, device=device), np.where(np.arange(THREADS) == LAST, 0, SUMS))
    (finding,) = device.checks.findings
    assert finding.message == "4-byte read just after `words` (1,024 bytes)"
    assert (finding.thread, finding.count) == ((LAST, 0, 0), len(ROWS[LAST]))
    assert finding.lines[0].location.line == line_of(program, "ld.global.u32 %r4")


def test_a_checker_finds_a_store_behind_an_array() -> None:
    device = ptxemu.Device(check="memory")
    words = device.to_device(np.zeros(256, np.uint32), "words")
    run(text(ONE_TOO_FAR, load="mov.u32 %r4, 1; st.global.u32 [%rd6], %r5;"), words, device=device)
    (finding,) = device.checks.findings
    assert finding.message == "4-byte write just after `words` (1,024 bytes)"
    assert (finding.thread, finding.count) == ((LAST, 0, 0), len(ROWS[LAST]))


def test_a_checker_finds_a_word_that_nobody_has_written() -> None:
    """The last word of an array that is blank but for all others."""
    device = ptxemu.Device(check="init")
    words = device.empty(257, np.uint32, "words")
    device.checks.initialized(words.address, WORDS.nbytes)
    run(text(ONE_TOO_FAR), words, device=device)
    (finding,) = device.checks.findings
    assert finding.message == "4-byte read 1,024 bytes into `words` (1,028 bytes), which nobody has written"
    assert (finding.thread, finding.count) == ((LAST, 0, 0), len(ROWS[LAST]))


def test_a_checker_knows_what_was_freed() -> None:
    """Another launch, after the array has gone."""
    device = ptxemu.Device(check="memory")
    words = device.to_device(WORDS, "words")
    np.testing.assert_array_equal(run(text(), words, device=device), SUMS)
    address = words.address
    words.free()
    run(text(), address, device=device)
    assert "`words` (1,024 bytes), which has been freed" in device.checks.findings[0].message


@pytest.mark.parametrize("index", [256, 1 << 17, -100, -(1 << 17)])
def test_an_index_that_is_beyond_the_array(index: int) -> None:
    """Near it and far from it, on either side."""
    program = text(f"setp.eq.u32 %p2, %r0, {LAST}; @%p2 mov.u32 %r5, {index << 12};")
    with pytest.raises(ptxemu.Fault, match=rf"test.ptx:{line_of(program, 'ld.global.u32 %r4')}: .*global") as caught:
        run(program)
    assert "illegal" in str(caught.value)


def test_a_misaligned_word_names_the_thread() -> None:
    program = text(load="setp.eq.u32 %p2, %r0, 70; @%p2 add.u64 %rd6, %rd6, 2;\n ld.global.u32 %r4, [%rd6];")
    assert len(ROWS[70])
    with pytest.raises(ptxemu.Fault, match=rf"misaligned.*test.ptx:{line_of(program, 'ld.global.u32 %r4')}: .*thread \(70,0,0\)"):
        run(program)


def test_a_row_that_runs_out_of_its_array() -> None:
    """The indexes of the last row lie behind their allocation: that load is at fault, not that of the words."""
    program = text(prepare=f"setp.eq.u32 %p2, %r0, {LAST}; @%p2 add.u32 %r1, %r1, 0x1000000; @%p2 add.u32 %r2, %r2, 0x1000000;")
    with pytest.raises(ptxemu.Fault, match=rf"test.ptx:{line_of(program, 'ld.global.u32 %r5')}: .*global"):
        run(program)


def test_words_before_the_pointer() -> None:
    """A pointer into an array, with indexes of both signs."""
    program = text("sub.s32 %r5, %r5, 128;", "add.u64 %rd2, %rd2, 512;")
    np.testing.assert_array_equal(run(program), SUMS)


def test_a_pointer_that_is_a_multiple_of_no_alignment_but_its_own() -> None:
    device = ptxemu.Device()
    words = device.to_device(np.concatenate([[9], WORDS]).astype(np.uint32))
    np.testing.assert_array_equal(run(text(prepare="add.u64 %rd2, %rd2, 4;"), words, device=device), SUMS)


def test_words_of_another_array() -> None:
    """Every second thread goes on to words that lie in another allocation."""
    device = ptxemu.Device()
    first, second = device.to_device(WORDS), device.to_device(WORDS[::-1].copy())
    apart = (second.address - first.address) // 4
    program = text(f"and.b32 %r6, %r0, 1; setp.eq.u32 %p2, %r6, 1; @%p2 add.s32 %r5, %r5, {apart};")
    expected = [int((WORDS[::-1] if lane % 2 else WORDS)[row % 256].sum()) for lane, row in enumerate(ROWS)]
    np.testing.assert_array_equal(run(program, first, device=device), expected)


def test_two_launches_with_arrays_of_different_size() -> None:
    """What has been said of an address in one launch does not hold in the next one."""
    device = ptxemu.Device()
    large = device.to_device(np.zeros(1 << 20, np.uint32))
    program = text("mov.u32 %r5, 0xFFFFF;")
    assert not run(program, large, device=device).any()
    large.free()
    program_line = line_of(program, "ld.global.u32 %r4")
    with pytest.raises(ptxemu.Fault, match=rf"test.ptx:{program_line}: "):
        run(program, device.to_device(WORDS), device=device)


def test_memory_of_the_host() -> None:
    device = ptxemu.Device(host_memory=True)
    words, columns = WORDS.copy(), COLUMNS.copy()
    found = run(text(), words.ctypes.data, columns.ctypes.data, device)
    np.testing.assert_array_equal(found, SUMS)


def test_stores_to_words_of_a_row() -> None:
    device = ptxemu.Device()
    words = device.to_device(np.zeros(256, np.uint32))
    run(text(load="mov.u32 %r4, 1; st.global.u32 [%rd6], %r5;"), words, device=device)
    expected = np.zeros(256, np.uint32)
    expected[COLUMNS] = COLUMNS
    np.testing.assert_array_equal(words.copy_to_host(), expected)


@pytest.mark.parametrize("barriers", [1, 2])
def test_a_pointer_that_nothing_else_needs_behind_a_barrier(barriers: int) -> None:
    program = text(prepare="bar.sync 0;" * barriers)
    np.testing.assert_array_equal(run(program), SUMS)
