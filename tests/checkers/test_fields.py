"""Accesses to fields of structures that lie side by side (ptxemu/lower/memory/fields.py), under checkers: values, and what is
wrong at any of the fields, in blocks before which others have been there."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.checkers.planted import found, messages, program

BLOCKS, THREADS = 3, 96
LOADS = [f"ld.global.u32 %r{10 + number}, [%rd4+{4 * number}]" for number in range(3)]
STORES = [f"st.global.u8 [%rd4+{number}], %r{10 + number}" for number in range(3)]
ADDRESS = "mad.lo.u32 %r3, %r2, 32, %r1"
READING = program(
    f"{ADDRESS}; mul.wide.u32 %rd4, %r3, 12; add.u64 %rd4, %rd1, %rd4; {'; '.join(LOADS)};"
    "add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r12;"
    "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd3, %rd4; st.global.u32 [%rd4], %r10;"
)
"""The sum of the three words that each thread has."""
WRITING = program(
    f"{ADDRESS}; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd3, %rd4; ld.global.u32 %r10, [%rd4]; shr.u32 %r11, %r10, 8;"
    f"shr.u32 %r12, %r10, 16; mul.wide.u32 %rd4, %r3, 3; add.u64 %rd4, %rd1, %rd4; {'; '.join(STORES)};"
)
"""The three low bytes of a word, side by side."""
CHECKS = ["memory", "init", "memory,init", "sync", "race"]


@pytest.mark.parametrize("check", CHECKS)
def test_words_are_read(check: str) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 32, 3 * THREADS, dtype=np.uint32)
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        sums = device.to_device(np.zeros(THREADS, np.uint32))
        assert messages(found(device, READING, device.to_device(words), sums, grid=BLOCKS)) == []
        np.testing.assert_array_equal(sums.copy_to_host(), words.reshape(-1, 3).sum(1, dtype=np.uint32))


@pytest.mark.parametrize("check", CHECKS)
def test_bytes_are_written(check: str) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 32, THREADS, dtype=np.uint32)
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        pixels = device.empty(3 * THREADS, "u8")
        assert messages(found(device, WRITING, pixels, device.to_device(words), grid=BLOCKS)) == []
        np.testing.assert_array_equal(pixels.copy_to_host().reshape(-1, 3), words.view(np.uint8).reshape(-1, 4)[:, :3])


@pytest.mark.parametrize("observed", ["strays", "blanks", "strays, members"])
def test_code_for_it(observed: str) -> None:
    for text, whole in ((READING, "load <96 x i32>"), (WRITING, "store <96 x i8>")):
        code = str(compile.emit(compile.front(text), "k", compile.Options(cpu="x86-64-v4", observed=observed), "llvm"))
        assert code.count(whole) == 1


@pytest.mark.parametrize("missing", range(1, 4))
def test_words_behind_the_array(missing: int) -> None:
    with ptxemu.Device(memory="64 MiB", check="memory") as device:
        words = device.to_device(np.zeros(3 * THREADS - missing, np.uint32), "x")
        seen = found(device, READING, words, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)
    size = 12 * THREADS - 4 * missing
    distances = ["just", *(f"{4 * number} bytes" for number in range(1, missing))]
    assert [one.message for one in seen] == [f"4-byte read {distance} after `x` ({size:,} bytes)" for distance in distances]
    assert [one.lines[-1].text for one in seen] == [f"{load};" for load in LOADS[3 - missing :]]
    assert {(one.block, one.thread) for one in seen} == {((2, 0, 0), (31, 0, 0))}


@pytest.mark.parametrize("missing", range(1, 4))
def test_bytes_behind_the_array(missing: int) -> None:
    with ptxemu.Device(memory="64 MiB", check="memory") as device:
        pixels = device.to_device(np.zeros(3 * THREADS - missing, np.uint8), "x")
        seen = found(device, WRITING, pixels, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)
    assert [one.lines[-1].text for one in seen] == [f"{store};" for store in STORES[3 - missing :]]
    assert {(one.block, one.thread) for one in seen} == {((2, 0, 0), (31, 0, 0))}


@pytest.mark.parametrize("first", range(3))
def test_words_that_nobody_has_written(first: int) -> None:
    written = 3 * (THREADS - 20) + first
    with ptxemu.Device(memory="64 MiB", check="init") as device:
        words = device.empty(3 * THREADS, "u32", "x")
        words[:written].copy_from_host(np.zeros(written, np.uint32))
        words[written + 3 - first :].copy_from_host(np.zeros(3 * THREADS - written - 3 + first, np.uint32))
        seen = found(device, READING, words, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)
    assert [one.lines[-1].text for one in seen] == [f"{load};" for load in LOADS[first:]]
    assert {(one.block, one.thread) for one in seen} == {((2, 0, 0), (12, 0, 0))}


@pytest.mark.parametrize("left_out", range(3))
def test_bytes_of_which_one_is_not_written_are_not_all_there(left_out: int) -> None:
    """A second kernel reads what the first one has stored, but for one byte of each."""
    text = WRITING.replace(STORES[left_out], STORES[(left_out + 1) % 3])
    with ptxemu.Device(memory="64 MiB", check="init") as device:
        pixels = device.empty(3 * THREADS, "u8", "x")
        assert messages(found(device, text, pixels, device.to_device(np.zeros(THREADS, np.uint32)), grid=BLOCKS)) == []
        sums = device.to_device(np.zeros(THREADS // 4, np.uint32))
        seen = found(device, READING.replace("32, %r1", "8, %r1"), pixels, sums, block=8, grid=BLOCKS)
    assert len(seen) == len(LOADS)
