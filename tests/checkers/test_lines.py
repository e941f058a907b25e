"""Lanes that hold lines of the cache (ptxemu/lower/memory/lines.py), under checkers: values, and what is wrong in a line, in
blocks before which others have been in the array."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.checkers.planted import found, messages, program

BLOCKS, THREADS, WORDS = 3, 96, 48
LOADS = [f"ld.global.u32 %r{10 + number}, [%rd4+{4 * number}]" for number in range(4)]
READING = program(
    f"mad.lo.u32 %r3, %r2, 32, %r1; mov.u32 %r4, %nctaid.x; mul.lo.u32 %r4, %r4, {4 * WORDS // BLOCKS};"
    f"mul.wide.u32 %rd4, %r3, %r4; add.u64 %rd4, %rd1, %rd4; mov.u32 %r5, {WORDS // 4};"
    f"mov.u32 %r6, 0; L: {'; '.join(LOADS)}; add.u32 %r6, %r6, %r10; add.u32 %r6, %r6, %r11; add.u32 %r6, %r6, %r12;"
    "add.u32 %r6, %r6, %r13; add.u64 %rd4, %rd4, 16; sub.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L;"
    "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd3, %rd4; st.global.u32 [%rd4], %r6;"
)
"""The sum of the row of each thread, whose length code does not know."""


@pytest.mark.parametrize("observed", ["members", "strays", "blanks", "strays, members", "stamps", "blanks, stamps"])
def test_code_for_it(observed: str) -> None:
    code = str(compile.emit(compile.front(READING), "k", compile.Options(cpu="x86-64-v4", observed=observed), "llvm"))
    assert code.count("load <64 x i8>") == 32


@pytest.mark.parametrize("check", ["memory", "init", "memory,init", "sync", "race"])
def test_rows_are_read(check: str) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 32, (THREADS, WORDS), dtype=np.uint32)
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        sums = device.to_device(np.zeros(THREADS, np.uint32))
        assert messages(found(device, READING, device.to_device(words), sums, grid=BLOCKS)) == []
        np.testing.assert_array_equal(sums.copy_to_host(), words.sum(1, dtype=np.uint32))


@pytest.mark.parametrize("missing", range(1, 4))
def test_words_behind_the_array(missing: int) -> None:
    with ptxemu.Device(memory="64 MiB", check="memory") as device:
        words = device.to_device(np.zeros(THREADS * WORDS - missing, np.uint32), "x")
        seen = found(device, READING, words, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)
    assert [one.lines[-1].text for one in seen] == [f"{load};" for load in LOADS[4 - missing :]]
    assert {(one.block, one.thread) for one in seen} == {((2, 0, 0), (31, 0, 0))}


@pytest.mark.parametrize("blank", [1, 2, 5, 40])
def test_words_that_nobody_has_written(blank: int) -> None:
    with ptxemu.Device(memory="64 MiB", check="init") as device:
        words = device.empty(THREADS * WORDS, "u32")
        words[: THREADS * WORDS - blank].copy_from_host(np.zeros(THREADS * WORDS - blank, np.uint32))
        seen = found(device, READING, words, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)
    assert sum(one.count for one in seen) == blank


@pytest.mark.parametrize("word", [0, 3, 21, WORDS - 1])
def test_words_that_another_thread_writes(word: int) -> None:
    """Of a row that a thread of the first block reads, one of the last block."""
    last = f"setp.ne.u32 %p2, %r3, 70; @%p2 exit; st.global.u32 [%rd1+{4 * (5 * WORDS + word)}], %r6"
    text = READING.replace("ret;", "\n".join(f"{line.strip()};" for line in last.split(";")) + "\nret;")
    with ptxemu.Device(memory="64 MiB", check="race") as device:
        words = device.to_device(np.zeros(THREADS * WORDS, np.uint32), "x")
        seen = found(device, text, words, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)
    (race,) = seen
    assert race.other is not None
    assert any(side.lines[-1].text.endswith(f"{LOADS[word % 4]};") for side in (race, race.other))
