"""Loops that all lanes leave together, in which each walks along a row: run lane by lane where gathers are no instructions, with
the same results. Loops whose lanes should lie side by side are not, though they do not start together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512

PARAMETERS = ".param .u64 out, .param .u64 words, .param .u64 factors, .param .u32 length"
BEGIN = """ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [factors]; ld.param.u32 %r1, [length];
mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; mul.lo.u32 %r2, %r0, %r1; mul.wide.u32 %rd4, %r2, 4;
add.u64 %rd2, %rd2, %rd4; mov.u32 %r3, 0; mov.u32 %r4, 0;"""
TRIP = """ld.global.u32 %r5, [%rd2]; ld.global.u32 %r6, [%rd3]; mad.lo.u32 %r4, %r5, %r6, %r4;
add.u64 %rd2, %rd2, 4; add.u64 %rd3, %rd3, 4; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1;"""
ROWS = f"{GLOBAL_INDEX} {BEGIN} L: {TRIP} @%p1 bra L; st.global.u32 [%rd1], %r4;"
INDEXED = "add.u32 %r7, %r2, %r3; mul.wide.u32 %rd5, %r7, 4; add.u64 %rd5, %rd6, %rd5; ld.global.u32 %r5, [%rd5];"
FROM_INDEX = ROWS.replace("mov.u32 %r3, 0;", "ld.param.u64 %rd6, [words]; mov.u32 %r3, 0;").replace(
    "ld.global.u32 %r5, [%rd2];", INDEXED
)
AND_COUNT = ROWS.replace("st.global.u32 [%rd1], %r4;", "add.u32 %r4, %r4, %r3; st.global.u32 [%rd1], %r4;")
"""What all lanes count is read behind the loop."""


IN_FOURS = (
    ROWS.replace("%rd2, 4;", "%rd2, 16;")
    .replace("%rd3, 4;", "%rd3, 16;")
    .replace("%r3, 1;", "%r3, 4;")
    .replace(
        "mad.lo.u32 %r4, %r5, %r6, %r4;",
        "mad.lo.u32 %r4, %r5, %r6, %r4;"
        + "".join(
            f"ld.global.u32 %r5, [%rd2+{at}]; ld.global.u32 %r6, [%rd3+{at}]; mad.lo.u32 %r4, %r5, %r6, %r4;" for at in (4, 8, 12)
        ),
    )
)
"""Four words of a row in a trip, which are loaded together (tests/memory/test_neighbours.py)."""


def lane_by_lane(body: str, cpu: str) -> bool:
    """Whether code has no gathers."""
    code = str(compile.emit(compile.front(kernel(body, PARAMETERS)), "k", compile.Options(cpu=cpu), "llvm"))
    kernels = code[code.index("define void @kernel") :]
    return "gather" not in kernels


def test_code() -> None:
    assert lane_by_lane(ROWS, "x86-64-v3") and lane_by_lane(FROM_INDEX, "x86-64-v3")
    assert not lane_by_lane(ROWS, "x86-64-v4")
    assert not lane_by_lane(ROWS.replace("%rd2, %rd2, 4;", "%rd2, %rd2, 4096;"), "x86-64-v3")
    assert not lane_by_lane(IN_FOURS, "x86-64-v3")


@pytest.mark.parametrize("body", [ROWS, FROM_INDEX, AND_COUNT, IN_FOURS])
@pytest.mark.parametrize(("threads", "length"), [(1, 1), (32, 5), (45, 64), (96, 33)])
def test_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, threads: int, length: int) -> None:
    without_avx512(monkeypatch, tmp_path)
    if body is IN_FOURS:
        length *= 4
    random = np.random.default_rng(threads)
    words = random.integers(0, 1 << 32, (2 * threads, length), dtype=np.uint32)
    factors = random.integers(0, 1 << 32, length, dtype=np.uint32)
    out = np.zeros(2 * threads, np.uint32)
    ptxemu.loads(kernel(body, PARAMETERS))["k"][2, threads](out, words, factors, np.uint32(length))
    counted = np.uint32(length if body is AND_COUNT else 0)
    np.testing.assert_array_equal(out, (words * factors).sum(1, dtype=np.uint32) + counted)


REST_FIRST = f"""{GLOBAL_INDEX} ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u32 %r1, [length];
mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; mov.u32 %r3, %r0; mov.u32 %r4, 0;
setp.ge.u32 %p1, %r3, %r1; @%p1 bra DONE;
not.b32 %r5, %r0; add.u32 %r5, %r5, %r1; shr.u32 %r6, %r5, 5; add.u32 %r6, %r6, 1; and.b32 %r7, %r6, 1;
setp.eq.u32 %p1, %r7, 0; @%p1 bra MAIN;
REST: mul.wide.u32 %rd5, %r3, 4; add.u64 %rd5, %rd5, %rd2; ld.global.u32 %r8, [%rd5]; add.u32 %r4, %r4, %r8; add.u32 %r3, %r3, 32;
sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra REST;
MAIN: setp.lt.u32 %p1, %r5, 32; @%p1 bra DONE; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd6, %rd6, %rd2;
L: ld.global.u32 %r8, [%rd6]; ld.global.u32 %r9, [%rd6+128]; add.u32 %r4, %r4, %r8; add.u32 %r4, %r4, %r9;
add.u64 %rd6, %rd6, 256; add.u32 %r3, %r3, 64; setp.lt.u32 %p1, %r3, %r1; @%p1 bra L;
DONE: st.global.u32 [%rd1], %r4;"""
"""A loop of a warp over an array, as compilers unroll it: first the trips that are left over, whose number may differ by lane."""


@pytest.mark.parametrize("length", [1, 31, 32, 33, 64, 95, 96, 97, 320, 333, 1000])
def test_trips_that_are_left_over_come_first(length: int) -> None:
    words = np.random.default_rng(length).integers(0, 1 << 32, length, dtype=np.uint32)
    out = np.zeros(32, np.uint32)
    ptxemu.loads(kernel(REST_FIRST, PARAMETERS))["k"][1, 32](out, words, words, np.uint32(length))
    np.testing.assert_array_equal(out, [words[lane::32].sum(dtype=np.uint32) for lane in range(32)])


def test_code_of_trips_side_by_side() -> None:
    code = str(compile.emit(compile.front(kernel(REST_FIRST, PARAMETERS)), "k", compile.Options(), "llvm"))
    assert code.count("load <32 x i32>") >= 3 and "lane.begin" not in code
