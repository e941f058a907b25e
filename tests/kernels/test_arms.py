"""Short arms of branches that bounds decide: a version for warps all of whose lanes take them, and the other one, have the same
results whoever takes the branch, also where indexes wrap."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

BLOCK, BLOCKS = 45, 3
THREADS = BLOCK * BLOCKS
WORDS = np.random.default_rng(8).integers(0, 1 << 32, THREADS + 8, dtype=np.uint32)
PARAMETERS = ".param .u64 out, .param .u64 words, .param .u32 low, .param .u32 high, .param .u32 start"
TESTS = {
    "below": "setp.ge.s32 %p1, %r3, %r5;",
    "from": "setp.lt.s32 %p1, %r3, %r4;",
    "outside of both": "setp.lt.s32 %p2, %r3, %r4; setp.ge.s32 %p3, %r3, %r5; or.pred %p1, %p2, %p3;",
    "inside of both": "setp.ge.s32 %p2, %r3, %r4; setp.lt.s32 %p3, %r3, %r5; and.pred %p1, %p2, %p3;",
    "unsigned": "setp.hs.u32 %p1, %r3, %r5;",
    "its bits": "setp.lt.s32 %p2, %r3, %r4; not.pred %p1, %p2;",
}
ARM = "mul.wide.u32 %rd3, %r0, 4; add.u64 %rd3, %rd3, %rd2; ld.global.u32 %r6, [%rd3+8]; mul.lo.u32 %r7, %r6, 3;"


def text(test: str, taken: str = "@%p1", arm: str = ARM) -> str:
    """Each thread has an index, from ``start`` on, that decides whether it skips an arm, and stores what it has then."""
    return kernel(
        GLOBAL_INDEX
        + f"""ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u32 %r4, [low]; ld.param.u32 %r5, [high];
        ld.param.u32 %r3, [start]; add.u32 %r3, %r3, %r0; mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; mov.u32 %r7, %r0;
        {test} {taken} bra ON; {arm} ON: st.global.u32 [%rd1], %r7;""",
        PARAMETERS,
    )


def skipped(test: str, index: np.ndarray, low: int, high: int) -> np.ndarray:
    signed = index.astype(np.uint32).view(np.int32).astype(np.int64)
    return {
        "below": signed >= high,
        "from": signed < low,
        "outside of both": (signed < low) | (signed >= high),
        "inside of both": (signed >= low) & (signed < high),
        "unsigned": index.astype(np.uint32) >= np.uint32(high % (1 << 32)),
        "its bits": signed >= low,
    }[test]


@pytest.mark.parametrize("taken", ["@%p1", "@!%p1"])
@pytest.mark.parametrize("test", TESTS)
def test_results(test: str, taken: str) -> None:
    launch = ptxemu.loads(text(TESTS[test], taken))["k"][BLOCKS, BLOCK]
    ends = [-(1 << 31), -3, 0, 31, 32, 45, 77, 90, 134, THREADS, (1 << 31) - 1]
    starts = [0, -7, 13, (1 << 31) - 20, (1 << 31) - 64, (1 << 32) - 33, (1 << 31) - THREADS]
    wrong = []
    for low, high, start in ((low, high, start) for low in ends[::2] for high in ends for start in starts):
        out = np.zeros(THREADS, np.uint32)
        launch(out, WORDS.copy(), *(np.uint32(value % (1 << 32)) for value in (low, high, start)))
        own = np.arange(THREADS, dtype=np.uint32)
        skips = skipped(test, (start + own.astype(np.int64)) % (1 << 32), low, high) != (taken == "@!%p1")
        expected = np.where(skips, own, WORDS[2 : THREADS + 2] * np.uint32(3))
        if not np.array_equal(out, expected):
            wrong.append((low, high, start))
    assert wrong == []


def copies(test: str, arm: str = ARM) -> int:
    """How often the product of an arm is in the code."""
    code = str(compile.emit(compile.front(text(test, arm=arm)), "k", compile.Options(), "llvm"))
    return code.count("splat (i32 3)")


def test_code() -> None:
    assert [copies(TESTS[test]) for test in ("below", "outside of both")] == [2, 2]


def test_arms_that_are_written_once() -> None:
    """Branches on data, ways that no lane takes if all are inside of bounds, and arms that are long or ask about other lanes."""
    assert copies("ld.global.u32 %r3, [%rd2]; add.u32 %r3, %r3, %r0; mul.lo.u32 %r3, %r3, %r3; setp.ge.u32 %p1, %r3, 7;") == 1
    assert copies(TESTS["inside of both"]) == 1
    assert copies(TESTS["below"], ARM + "xor.b32 %r7, %r7, %r0; add.u32 %r7, %r7, %r6;" * 15) == 1
    assert copies(TESTS["below"], ARM + "activemask.b32 %r8; add.u32 %r7, %r7, %r8;") == 1


def test_stores_of_an_arm() -> None:
    """Only lanes that take it store."""
    arm = "st.global.u32 [%rd1], %r3; add.u32 %r7, %r7, 1000;"
    program = text(TESTS["below"], arm=arm).replace("ON: st.global.u32 [%rd1], %r7;", "ON: st.global.u32 [%rd1+4096], %r7;")
    for high in (0, 1, 31, 32, 64, 90, 100, THREADS):
        out = np.full(1024 + THREADS, 7, np.uint32)
        ptxemu.loads(program)["k"][BLOCKS, BLOCK](out, WORDS.copy(), np.uint32(0), np.uint32(high), np.uint32(0))
        own = np.arange(THREADS, dtype=np.uint32)
        np.testing.assert_array_equal(out[:THREADS], np.where(own < high, own, 7))
        np.testing.assert_array_equal(out[1024:], np.where(own < high, own + 1000, own))


BESIDE = """
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u32 %r4, [low]; ld.param.u32 %r5, [high];
  ld.param.u32 %r8, [start]; mul.wide.u32 %rd3, %r8, 4; add.u64 %rd3, %rd2, %rd3; add.u64 %rd5, %rd1, 1024;
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd1, %rd1, %rd4; mov.u32 %r9, 0; mov.u32 %r10, 0;
AGAIN:
  ld.global.u32 %r6, [%rd2]; add.u32 %r11, %r9, %r4; ld.global.u32 %r7, [%rd3]; st.global.u32 [%rd5], %r7;
  mov.u32 %r13, 0; setp.le.u32 %p1, %r0, %r11; @%p1 bra ON; ld.global.u32 %r13, [%rd3+8];
ON:
  xor.b32 %r6, %r6, %r13; mad.lo.u32 %r10, %r10, 3, %r6; add.u32 %r9, %r9, 4; setp.lt.u32 %p2, %r9, %r5; @%p2 bra AGAIN;
  st.global.u32 [%rd1], %r10;"""


def test_what_is_compared_is_made_beside_accesses_that_have_one_test() -> None:
    """The bound is made in a version of the code for all lanes, and in another one."""
    threads, trips, low, start = 256, 300, 2, 5
    out = np.zeros(threads + 1, np.uint32)
    ptxemu.loads(kernel(GLOBAL_INDEX + BESIDE, PARAMETERS), tier="best")["k"][4, 64](out, WORDS.copy(), low, trips, start)
    own, expected = np.arange(threads), np.zeros(threads, np.uint32)
    for trip in range(0, trips, 4):
        expected = expected * np.uint32(3) + (WORDS[0] ^ np.where(own <= low + trip, np.uint32(0), WORDS[start + 2]))
    np.testing.assert_array_equal(out[:threads], expected)


def test_faults_of_an_arm() -> None:
    far = "add.u64 %rd3, %rd2, 0x10000000; ld.global.u32 %r7, [%rd3];"
    launch = ptxemu.loads(text(TESTS["below"], arm=far), filename="test.ptx")["k"][BLOCKS, BLOCK]
    launch(np.zeros(THREADS, np.uint32), WORDS.copy(), np.uint32(0), np.uint32(0), np.uint32(0))
    for high in (33, 100):
        with pytest.raises(ptxemu.Fault, match=r"test\.ptx"):
            launch(np.zeros(THREADS, np.uint32), WORDS.copy(), np.uint32(0), np.uint32(high), np.uint32(0))
