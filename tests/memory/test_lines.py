"""Lanes that walk along rows of their own, and hold lines of the cache: values wherever they walk, what is written between two
walks, and faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

THREADS = 128
ROUNDS = 3
HELD = "load <64 x i8>"
LANES = 32
PAGE = 4096


def text(step: int = 16, between: str = "", picks: Sequence[int] = ()) -> str:
    """Each thread that an array chooses goes on by ``step`` bytes in each of some trips, and hashes what it finds in them, or the
    words that are picked. Then it changes the second word behind, and goes on so in three rounds."""
    offsets = [4 * pick for pick in picks or range(step // 4)]
    words = [f"ld.global.u32 %r10, [%rd6+{offset}]; mad.lo.u32 %r9, %r9, 31, %r10;\n" for offset in offsets]
    body = f"""ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [places]; ld.param.u64 %rd4, [on];
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5; add.u64 %rd1, %rd1, %rd5;
    ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra E;
    ld.param.u32 %r5, [trips]; ld.global.s32 %r6, [%rd3]; cvt.s64.s32 %rd6, %r6; add.u64 %rd6, %rd6, %rd2;
    mov.u32 %r8, {ROUNDS}; mov.u32 %r9, 0;
    O: mov.u32 %r7, %r5; setp.eq.u32 %p1, %r7, 0; @%p1 bra N;
    L: {between}
    {" ".join(words)}
    add.s64 %rd6, %rd6, {step}; sub.u32 %r7, %r7, 1; setp.ne.u32 %p2, %r7, 0; @%p2 bra L;
    N: st.global.u32 [%rd6+4], %r9; sub.u32 %r8, %r8, 1; setp.ne.u32 %p3, %r8, 0; @%p3 bra O;
    st.global.u32 [%rd1], %r9; E:"""
    parameters = ["out", "words", "places", "on"]
    return kernel(GLOBAL_INDEX + body, ", ".join([f".param .u64 {name}" for name in parameters] + [".param .u32 trips"]))


def launch(program: str, words: np.ndarray, places: np.ndarray, on: np.ndarray, trips: int) -> np.ndarray:
    out = np.zeros(THREADS, np.uint32)
    function = ptxemu.loads(program, filename="test.ptx")["k"]
    function[2, THREADS // 2](out, words, places.astype(np.int32), on.astype(np.uint32), trips)
    return out


def hashed(value: int, words: Iterable[int]) -> int:
    for word in words:
        value = (value * 31 + int(word)) & 0xFFFFFFFF
    return value


def expected(
    words: np.ndarray, places: np.ndarray, on: np.ndarray, trips: int, step: int = 16, picks: Sequence[int] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """What the threads find, and all words after that."""
    words, found = words.copy(), np.zeros(THREADS, np.uint32)
    for thread in np.flatnonzero(on):
        at, value = int(places[thread]) // 4, 0
        for _ in range(ROUNDS):
            for _ in range(trips):
                value = hashed(value, (words[at + pick] for pick in picks or range(step // 4)))
                at += step // 4
            words[at + 1] = value
        found[thread] = value
    return found, words


def emitted(program: str) -> str:
    return str(compile.emit(compile.front(program), "k", compile.Options(cpu="x86-64-v4"), "llvm"))


@pytest.mark.parametrize(("step", "held"), [(16, 1), (32, 1), (64, 1), (48, 0), (80, 0)])
def test_the_lines_of_all_lanes_are_copied(step: int, held: int) -> None:
    assert (emitted(text(step)).count(HELD) >= LANES) == bool(held)


@pytest.mark.parametrize("between", ["st.global.u32 [%rd1], %r9;", "membar.gl;", "atom.global.add.u32 %r11, [%rd1], 1;"])
def test_no_lines_are_held_where_memory_may_change(between: str) -> None:
    assert HELD not in emitted(text(16, between))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("chosen", ["all", "some"])
@pytest.mark.parametrize("trips", [0, 1, 4, 7, 16])
@pytest.mark.parametrize("first", [0, 16, 36])
@pytest.mark.parametrize("apart", [4096, 4096 + 64, 4000])
@pytest.mark.parametrize("step", [16, 32, 64])
def test_values(step: int, apart: int, first: int, trips: int, chosen: str) -> None:
    random = np.random.default_rng(step + apart + first)
    words = random.integers(0, 1 << 32, (THREADS + 1) * apart // 4, dtype=np.uint32)
    on = np.ones(THREADS, bool) if chosen == "all" else random.integers(0, 8, THREADS) > 0
    places = first + apart * random.permutation(THREADS)
    found, after = expected(words, places, on, trips, step)
    np.testing.assert_array_equal(launch(text(step), words, places, on, trips), found)
    np.testing.assert_array_equal(words, after)


@pytest.mark.parametrize("apart", [64, 4096])
def test_rows_whose_length_is_known(apart: int) -> None:
    program = text().replace("ld.global.s32 %r6, [%rd3]; cvt.s64.s32 %rd6, %r6;", f"mul.wide.s32 %rd6, %r0, {apart};")
    words = np.random.default_rng(4).integers(0, 1 << 32, THREADS * 1024 + 32, dtype=np.uint32)
    places, on = apart * np.arange(THREADS), np.ones(THREADS, bool)
    assert emitted(program).count(HELD) >= LANES
    found, _ = expected(words, places, on, 5 if apart > 64 else 1)
    np.testing.assert_array_equal(launch(program, words, places, on, 5 if apart > 64 else 1), found)


@pytest.mark.parametrize("trips", [1, 2, 3, 4])
def test_what_is_written_behind_the_loop_is_seen(trips: int) -> None:
    """Of the line that lanes have held, at the register that says where they are."""
    loop = "L: setp.eq.u32 %p2, %r7, 0; @%p2 bra N;"
    program = text().replace("setp.eq.u32 %p1, %r7, 0; @%p1 bra N;", "").replace("L: ", loop, 1)
    program = program.replace("setp.ne.u32 %p2, %r7, 0; @%p2 bra L;", "bra.uni L;")
    more = "".join(f"ld.global.u32 %r{20 + i}, [%rd6+{4 * i}];" for i in range(4))
    more += "".join(f"mad.lo.u32 %r9, %r9, 31, %r{20 + i};" for i in range(4))
    program = program.replace("[%rd6+4], %r9; sub", f"[%rd6+4], %r9; {more} sub")
    words = np.random.default_rng(5).integers(0, 1 << 32, THREADS * 64, dtype=np.uint32)
    after, found = words.copy(), np.zeros(THREADS, np.uint32)
    for thread in range(THREADS):
        at, value = 64 * thread, 0
        for _ in range(ROUNDS):
            value = hashed(value, after[at : at + 4 * trips])
            at += 4 * trips
            after[at + 1] = value
            value = hashed(value, after[at : at + 4])
        found[thread] = value
    assert emitted(program).count(HELD) >= LANES
    np.testing.assert_array_equal(launch(program, words, 256 * np.arange(THREADS), np.ones(THREADS, bool), trips), found)


def test_parts_that_are_in_two_lines() -> None:
    picks, apart = (0, 1, 2, 3, 6, 7, 8, 13, 14, 15, 16), 4096
    words = np.random.default_rng(2).integers(0, 1 << 32, THREADS * apart // 4, dtype=np.uint32)
    places, on = apart * np.arange(THREADS), np.ones(THREADS, bool)
    found, _ = expected(words, places, on, 9, 64, picks)
    assert emitted(text(64, picks=picks)).count(HELD) >= LANES
    np.testing.assert_array_equal(launch(text(64, picks=picks), words, places, on, 9), found)


@pytest.mark.parametrize("bits", [5, 8])
def test_lanes_that_are_off_in_some_trips(bits: int) -> None:
    skip = f"mov.u32 %r20, %laneid; xor.b32 %r20, %r20, %r7; and.b32 %r20, %r20, {bits}; setp.eq.u32 %p4, %r20, 0; @%p4 bra M;"
    program = text(between=skip).replace("add.s64 %rd6", "M: add.s64 %rd6")
    words = np.random.default_rng(3).integers(0, 1 << 32, THREADS * 1024, dtype=np.uint32)
    after, found = words.copy(), np.zeros(THREADS, np.uint32)
    for thread in range(THREADS):
        at, value = 1024 * thread, 0
        for _ in range(ROUNDS):
            for left in range(11, 0, -1):
                value = hashed(value, after[at : at + 4] if (thread % 32 ^ left) & bits else ())
                at += 4
            after[at + 1] = value
        found[thread] = value
    assert emitted(program).count(HELD) >= LANES
    np.testing.assert_array_equal(launch(program, words, 4096 * np.arange(THREADS), np.ones(THREADS, bool), 11), found)


def test_the_end_of_memory() -> None:
    """The last line of the last row is there, and nothing behind it."""
    apart = 256
    words = np.random.default_rng(1).integers(0, 1 << 32, THREADS * apart // 4, dtype=np.uint32)
    places, on = apart * np.arange(THREADS), np.ones(THREADS, bool)
    found, after = expected(words, places, on, 5)
    np.testing.assert_array_equal(launch(text(), words, places, on, 5), found)
    np.testing.assert_array_equal(words, after)


@pytest.mark.parametrize(("place", "load"), [(1 << 30, 0), (-64, 0), (2, 0), (PAGE - 8, 2)])
def test_the_load_that_fails_is_told(place: int, load: int) -> None:
    program = text()
    places = np.zeros(THREADS)
    places[77] = place
    with pytest.raises(ptxemu.Fault) as fault:
        launch(program, np.zeros(PAGE // 4, np.uint32), places, np.ones(THREADS), 1)
    line = next(number for number, found in enumerate(program.splitlines(), 1) if f"[%rd6+{4 * load}]" in found)
    assert f"test.ptx:{line}:" in str(fault.value)
    assert "block (1,0,0)" in str(fault.value)
