"""Loads of lanes that have had different numbers of trips of the rest of an unrolled loop: they lie in two pieces, or in more."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel

TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
PARAMETERS = ".param .u64 out, .param .u64 words, .param .u64 rests"


def text(type: str, step: int = 32) -> str:
    """A lane adds what it finds at its number, at that plus 32 and so on, as often as it is told, three times more often in trips
    of three: the rest comes first."""
    size = TYPES[type]().itemsize
    add = f"add.u64 %rd20, %rd20, {step * size};"
    load = "ld.global.{0} {1}, [%rd20+{2}]; {3} add.u64 %rd10, %rd10, %rd11;"
    wide = {"u64": "mov.u64 %rd11, %rd12;", "u32": "cvt.u64.u32 %rd11, %r12;"}.get(type, "cvt.u64.u16 %rd11, %h12;")
    into = {"u64": "%rd12", "u32": "%r12"}.get(type, "%h12")
    one = load.format(type, into, 0, wide)
    three = " ".join(load.format(type, into, trip * step * size, wide) for trip in range(3))
    return kernel(f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [rests];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd3, %rd4; mul.wide.u32 %rd5, %r1, 8; add.u64 %rd1, %rd1, %rd5;
  ld.global.u32 %r2, [%rd3]; ld.global.u32 %r3, [%rd3+4096];
  mul.wide.u32 %rd6, %r1, {size}; add.u64 %rd20, %rd2, %rd6; mov.u64 %rd10, 0;
REST:
  setp.eq.u32 %p1, %r2, 0; @%p1 bra AGAIN; {one} {add} sub.u32 %r2, %r2, 1; bra REST;
AGAIN:
  setp.eq.u32 %p2, %r3, 0; @%p2 bra DONE; {three} {add} {add} {add} sub.u32 %r3, %r3, 1; bra AGAIN;
DONE:
  st.global.u64 [%rd1], %rd10;""", PARAMETERS)  # fmt: skip


def rests_of(kind: str, random: np.random.Generator) -> np.ndarray:
    """How many trips each of 64 lanes makes, of the rest and of three."""
    lane, cut, trips = np.arange(64), random.integers(0, 33), random.integers(0, 4, 2)
    few = np.where(lane % 32 < cut, *random.permutation([0, 1, 2, 3])[:2])
    rests = {"two": few, "all": np.full(64, 1), "any": random.integers(0, 4, 64)}[kind]
    return np.stack([rests, np.where(random.random(64) < 0.1, trips[1], trips[0])]).astype(np.uint32)


def outcome(engine: str, type: str, words: np.ndarray, rests: np.ndarray, threads: int) -> tuple[str, np.ndarray]:
    out = np.zeros(64, np.uint64)
    told = np.zeros((2, 1024), np.uint32)
    told[:, :64] = rests
    with ptxemu.Device("16 MiB", engine=engine) as device:
        try:
            ptxemu.loads(text(type), device=device, tier="best")["k"][1, threads](out, words.copy(), told)
        except ptxemu.Fault as fault:
            return str(fault).partition("bytes at")[0].partition("access to")[0], out
    return "", out


@pytest.mark.parametrize("kind", ["two", "all", "any"])
@pytest.mark.parametrize("type", TYPES)
def test_sums(type: str, kind: str) -> None:
    random = np.random.default_rng(len(kind) + TYPES[type]().itemsize)
    words = random.integers(0, np.iinfo(TYPES[type]).max, 1000, TYPES[type])
    for threads in (64, 64, 47):
        rests = rests_of(kind, random)
        _, out = outcome("jit", type, words, rests, threads)
        trips = (rests[0] + 3 * rests[1])[:threads].astype(int)
        wanted = [words[lane : lane + 32 * trip : 32].sum(dtype=np.uint64) for lane, trip in enumerate(trips)]
        np.testing.assert_array_equal(out[:threads], np.array(wanted, np.uint64))


def test_lanes_beyond_the_end_fault() -> None:
    random = np.random.default_rng(2)
    faults = []
    for _ in range(20):
        rests, count = rests_of("two", random), int(random.integers(100, 400))
        words = random.integers(0, 1 << 32, count, np.uint32)
        jit, interpreted = (outcome(engine, "u32", words, rests, 64) for engine in ("jit", "interpreter"))
        assert jit[0] == interpreted[0]
        if not jit[0]:
            np.testing.assert_array_equal(jit[1], interpreted[1])
        faults.append(bool(jit[0]))
    assert True in faults and False in faults


def test_two_pieces_are_loaded_under_masks() -> None:
    code = str(compile.emit(compile.front(text("u32")), "k", compile.Options(cpu="x86-64-v4"), "asm"))
    assert code.count("vmovdqu32") > code.count("vpgather")
