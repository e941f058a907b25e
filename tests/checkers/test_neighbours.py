"""Loads of words side by side of each lane (ptxemu/lower/memory/neighbours.py), under checkers: values, and what is wrong at any
of the words, in blocks before which others have been there."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.checkers.planted import found, messages, program

LOADS = [f"ld.global.u32 %r{10 + number}, [%rd4+{4 * number}]" for number in range(4)]
BODY = f"""mad.lo.u32 %r3, %r2, 32, %r1; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd4, %rd3, %rd2; ld.global.u32 %r4, [%rd4]
mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd1, %rd4; {"; ".join(LOADS)}
add.u32 %r10, %r10, %r11; add.u32 %r12, %r12, %r13; add.u32 %r10, %r10, %r12; add.u64 %rd4, %rd3, %rd2
st.global.u32 [%rd4], %r10"""
TEXT = program(BODY.replace("\n", ";"))
WORDS, BLOCKS = 400, 3


def places_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, WORDS - 3, 32 * BLOCKS).astype(np.uint32)


@pytest.mark.parametrize("check", ["memory", "init", "memory,init", "sync"])
def test_words_are_loaded_together(check: str) -> None:
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        words = np.arange(WORDS, dtype=np.uint32) ** 2
        places = places_of(1)
        sums = device.to_device(places)
        assert messages(found(device, TEXT, device.to_device(words), sums, grid=BLOCKS)) == []
        np.testing.assert_array_equal(sums.copy_to_host(), sum(words[places + number] for number in range(4)))


@pytest.mark.parametrize("observed", ["strays", "blanks", "strays, members"])
def test_code_for_it(observed: str) -> None:
    code = str(compile.emit(compile.front(TEXT), "k", compile.Options(cpu="x86-64-v4", observed=observed), "llvm"))
    assert code.count("load <4 x i32>") == 32


@pytest.mark.parametrize("count", range(1, 5))
@pytest.mark.parametrize("block", range(BLOCKS))
def test_words_behind_the_array(block: int, count: int) -> None:
    with ptxemu.Device(memory="64 MiB", check="memory") as device:
        places = places_of(2)
        places[32 * block + 7] = WORDS - 4 + count
        seen = found(device, TEXT, device.to_device(np.zeros(WORDS, np.uint32), "x"), device.to_device(places), grid=BLOCKS)
    distances = ["just", *(f"{4 * number} bytes" for number in range(1, count))]
    assert [one.message for one in seen] == [f"4-byte read {distance} after `x` (1,600 bytes)" for distance in distances]
    assert [one.lines[-1].text for one in seen] == [f"{load};" for load in LOADS[4 - count :]]
    assert {(one.block, one.thread) for one in seen} == {((block, 0, 0), (7, 0, 0))}


@pytest.mark.parametrize("count", range(1, 5))
def test_words_that_nobody_has_written(count: int) -> None:
    with ptxemu.Device(memory="64 MiB", check="init") as device:
        words = device.empty(WORDS, "u32", "x")
        words[: WORDS // 2].copy_from_host(np.zeros(WORDS // 2, np.uint32))
        places = places_of(3) % (WORDS // 2 - 3)
        places[70] = WORDS // 2 - 4 + count
        seen = found(device, TEXT, words, device.to_device(places), grid=BLOCKS)
    assert [one.lines[-1].text for one in seen] == [f"{load};" for load in LOADS[4 - count :]]
    assert {(one.block, one.thread) for one in seen} == {((2, 0, 0), (6, 0, 0))}
