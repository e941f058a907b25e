"""Code that one lane runs alone: its values, memory, loops and calls are that lane's."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import GLOBAL_INDEX, Extent, Threads, kernel

PARAMETERS = ".param .u64 words, .param .u64 out, .param .u32 which"
# %r0 the number of the thread, %r1 tid.x, %r2 its word, %rd3 and %rd4 its places in both arrays.
HEAD = f"""{GLOBAL_INDEX}
  mov.u32 %r1, %r60; ld.param.u32 %r9, [which];
  mov.u32 %r50, %tid.y; mov.u32 %r51, %ntid.y; mad.lo.u32 %r52, %r61, %r51, %r50; mad.lo.u32 %r0, %r52, %r62, %r1;
  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd5, %r0, 4; add.u64 %rd3, %rd1, %rd5; add.u64 %rd4, %rd2, %rd5;
  ld.global.u32 %r2, [%rd3];
"""
BLOCKS: list[Extent] = [(32, 1, 1), (96, 1, 1), (70, 1, 1), (16, 4, 1), (32, 3, 1), (8, 5, 1)]


def run(body: str, block: Extent, which: int = 0, grid: int = 3) -> tuple[Threads, np.ndarray, np.ndarray]:
    """The threads, their words, and what the kernel leaves of an array that holds the numbers of the threads."""
    threads = Threads(grid, block)
    words = np.random.default_rng(7).integers(0, 1 << 16, threads.count).astype(np.uint32)
    out = np.arange(threads.count, dtype=np.uint32)
    ptxemu.loads(kernel(HEAD + body, PARAMETERS))["k"][grid, block](words, out, which)
    return threads, words, out


COMPARISONS = {
    "setp.ne.u32 %p1, %r1, 3;": lambda t, which: t.tid[0] == 3,
    "setp.ne.s32 %p1, 3, %r1;": lambda t, which: t.tid[0] == 3,
    "setp.ne.u32 %p1, %r1, 40;": lambda t, which: t.tid[0] == 40,
    "setp.ne.u32 %p1, %r1, %r9;": lambda t, which: t.tid[0] == which,
    "and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 31;": lambda t, which: t.tid[0] % 32 == 31,
    "mov.u32 %r3, %laneid; setp.ne.u32 %p1, %r3, 0;": lambda t, which: t.lane == 0,
    "shl.b32 %r3, %r1, 3; add.u32 %r3, %r3, 5; setp.ne.u32 %p1, %r3, 45;": lambda t, which: t.tid[0] == 5,
    "sub.u32 %r3, %r9, %r1; setp.ne.u32 %p1, %r3, 2;": lambda t, which: t.tid[0] == which - 2,
    "setp.eq.u32 %p2, %r1, %r9; not.pred %p1, %p2;": lambda t, which: t.tid[0] == which,
    "setp.eq.u32 %p2, %r1, 6; setp.lt.u32 %p3, %r0, 80; and.pred %p4, %p3, %p2; not.pred %p1, %p4;":
        lambda t, which: (t.tid[0] == 6) & (np.arange(t.count) < 80),
    "mov.u32 %r3, %tid.y; or.b32 %r4, %r1, %r3; setp.ne.u32 %p1, %r4, 0;": lambda t, which: (t.tid[0] == 0) & (t.tid[1] == 0),
    "mov.u32 %r3, %tid.y; setp.eq.u32 %p2, %r1, 3; setp.eq.u32 %p3, %r3, 1; and.pred %p4, %p2, %p3; not.pred %p1, %p4;":
        lambda t, which: (t.tid[0] == 3) & (t.tid[1] == 1),
    "mov.u32 %r3, %tid.y; or.b32 %r4, %r3, %r9; setp.ne.u32 %p1, %r4, 9;": lambda t, which: t.tid[1] | 9 == 9,
    "cvt.u16.u32 %h1, %r1; mul.lo.u16 %h2, %h1, 8192; setp.ne.u16 %p1, %h2, 8192;": lambda t, which: t.tid[0] % 8 == 1,
}  # fmt: skip


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_the_lane_that_finds_them_equal(comparison: str, block: Extent) -> None:
    threads, words, out = run(
        f"{comparison} @%p1 bra END; mad.lo.u32 %r5, %r2, %r2, %r0; st.global.u32 [%rd4], %r5; END:", block, 9
    )
    numbers = np.arange(threads.count, dtype=np.uint32)
    np.testing.assert_array_equal(out, np.where(COMPARISONS[comparison](threads, 9), words * words + numbers, numbers))


LOOP = """
  setp.ne.u32 %p1, %r1, %r9; @%p1 bra END;
  and.b32 %r4, %r2, 7; mov.u32 %r5, 0;
AGAIN:
  add.u32 %r5, %r5, %r2; sub.s32 %r4, %r4, 1; setp.ge.s32 %p2, %r4, 0; @%p2 bra AGAIN;
  st.global.u32 [%rd4], %r5;
END:
"""


@pytest.mark.parametrize("block", BLOCKS)
def test_its_loop_has_its_trips(block: Extent) -> None:
    threads, words, out = run(LOOP, block, 4)
    wanted = words * (words % 8 + 1)
    np.testing.assert_array_equal(out, np.where(threads.tid[0] == 4, wanted, np.arange(threads.count)))


LEAVING = """
  mov.u32 %r4, 0;
AGAIN:
  setp.eq.u32 %p1, %r1, %r4; @%p1 bra FOUND;
  add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 20; @%p2 bra AGAIN;
  bra END;
FOUND:
  mad.lo.u32 %r5, %r4, 1000, %r2; st.global.u32 [%rd4], %r5;
END:
"""
IN_TURN = """
  mov.u32 %r4, 0; mov.u32 %r6, 0;
AGAIN:
  setp.ne.u32 %p1, %r1, %r4; @%p1 bra NEXT;
  mul.lo.u32 %r6, %r2, 3; setp.gt.u32 %p3, %r2, 30000; @%p3 bra LARGE;
NEXT:
  add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 20; @%p2 bra AGAIN;
  add.u32 %r6, %r6, 1; st.global.u32 [%rd4], %r6; bra END;
LARGE:
  add.u32 %r6, %r6, %r4; st.global.u32 [%rd4], %r6;
END:
"""


@pytest.mark.parametrize("block", BLOCKS)
def test_lanes_that_leave_a_loop_one_after_another_go_on_together(block: Extent) -> None:
    threads, words, out = run(LEAVING, block)
    numbers = np.arange(threads.count)
    np.testing.assert_array_equal(out, np.where(threads.tid[0] < 20, threads.tid[0] * 1000 + words, numbers))
    threads, words, out = run(IN_TURN, block)
    first, own = threads.tid[0] < 20, words.astype(np.int64) * 3
    np.testing.assert_array_equal(out, np.where(first & (words > 30000), own + threads.tid[0], np.where(first, own + 1, 1)))


MEMORY = """
  .local .b32 own[16];
  mov.u64 %rd6, own; and.b32 %r3, %r2, 15; mul.wide.u32 %rd7, %r3, 4; add.u64 %rd7, %rd6, %rd7;
  st.local.u32 [%rd7], %r2; and.b32 %r4, %r1, 31; setp.ne.u32 %p1, %r4, 2; @%p1 bra END;
  atom.global.add.u32 %r5, [%rd4], 5; ld.local.u32 %r6, [%rd7]; add.u32 %r7, %r5, %r6;
  add.u32 %r8, %r3, 1; and.b32 %r8, %r8, 15; mul.wide.u32 %rd8, %r8, 4; add.u64 %rd8, %rd6, %rd8; st.local.u32 [%rd8], %r7;
END:
  setp.ne.u32 %p2, %r4, 2; @%p2 bra OVER; ld.local.u32 %r10, [%rd8]; st.global.u32 [%rd4], %r10;
OVER:
"""


@pytest.mark.parametrize("block", [(32, 1, 1), (96, 1, 1), (70, 1, 1)])
def test_its_memory_and_what_atomics_give_it(block: Extent) -> None:
    threads, words, out = run(MEMORY, block)
    numbers = np.arange(threads.count)
    np.testing.assert_array_equal(out, np.where(threads.tid[0] % 32 == 2, numbers + words, numbers))


SUM = """
  .shared .b32 sums[32];
  mov.u32 %r3, %r2; mov.u32 %r4, 16; mov.u32 %r10, sums;
AGAIN:
  shfl.sync.bfly.b32 %r5, %r3, %r4, 31, -1; add.u32 %r3, %r3, %r5; shr.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra AGAIN;
  and.b32 %r6, %r1, 31; shr.u32 %r7, %r1, 5; setp.ne.u32 %p2, %r6, 0; @%p2 bra SUMMED;
  shl.b32 %r8, %r7, 2; add.u32 %r8, %r10, %r8; st.shared.u32 [%r8], %r3;
SUMMED:
  bar.sync 0; setp.ne.u32 %p3, %r1, 0; @%p3 bra END;
  mov.u32 %r11, 0; mov.u32 %r12, 0; shr.u32 %r13, %r62, 5;
ADD:
  shl.b32 %r14, %r12, 2; add.u32 %r14, %r10, %r14; ld.shared.u32 %r15, [%r14]; add.u32 %r11, %r11, %r15;
  add.u32 %r12, %r12, 1; setp.lt.u32 %p4, %r12, %r13; @%p4 bra ADD;
  st.global.u32 [%rd4], %r11;
END:
"""


@pytest.mark.parametrize("block", [(64, 1, 1), (256, 1, 1)])
def test_sums_of_blocks(block: Extent) -> None:
    threads, words, out = run(SUM, block)
    sums = words.reshape(3, -1).sum(axis=1, dtype=np.uint32).repeat(block[0])
    np.testing.assert_array_equal(out, np.where(threads.tid[0] == 0, sums, np.arange(threads.count)))
