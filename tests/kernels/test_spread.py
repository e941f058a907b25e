"""Blocks whose rows of threads would lie across warps: each row has lanes of its own, if nothing tells who is in a warp."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.device.code import Facts
from ptxemu.driver import compile
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import kernel

INDEX = """
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
  mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1; mul.lo.u32 %r8, %r4, %r5; mul.lo.u32 %r8, %r8, %r6;
  mov.u32 %r9, %ctaid.x; mad.lo.u32 %r0, %r9, %r8, %r7; ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;
"""
SHARED = ".shared .align 4 .b8 words[4096];"
KINDS = {
    (48, 4, 1): "spread row", (24, 8, 1): "spread row", (17, 3, 1): "spread row", (20, 20, 1): "spread row",
    (33, 2, 1): "spread row", (17, 3, 3): "spread row", (100, 5, 1): "spread row", (10, 10, 1): "spread x16",
    (9, 2, 5): "spread x16", (12, 12, 1): "spread x16", (5, 5, 1): "spread x8", (7, 4, 3): "spread x8",
    (3, 7, 1): "spread x4", (3, 8, 2): "spread x4", (9, 3, 3): "any", (3, 3, 3): "any", (17, 60, 1): "any",
    (24, 1, 1): "warp", (100, 1, 1): "row", (16, 5, 1): "x16",
}  # fmt: skip
BLOCKS = [block for block in KINDS if "spread" in KINDS[block]]


def test_kinds() -> None:
    assert {block: variant_of(block) for block in KINDS} == KINDS


def facts(body: str, block: tuple[int, int, int], observed: Observed = "") -> Facts:
    module = compile.front(kernel(INDEX + body, declarations=SHARED))
    return compile.kernel(module, "k", compile.Options(observed=observed), block).facts


def launch(body: str, block: tuple[int, int, int], grid: int = 3, engine: str = "jit") -> np.ndarray:
    out = np.zeros((grid, block[2], block[1], block[0]), np.uint32)
    with ptxemu.Device("16 MiB", engine=engine) as device:
        ptxemu.loads(kernel(INDEX + body, declarations=SHARED), device=device, tier="best")["k"][grid, block](out)
    return out


COORDINATES = (
    "shl.b32 %r10, %r2, 10; shl.b32 %r11, %r3, 20; or.b32 %r10, %r10, %r11; or.b32 %r10, %r10, %r1; st.global.u32 [%rd1], %r10;"
)


@pytest.mark.parametrize("block", KINDS)
def test_threads_are_where_they_were(block: tuple[int, int, int]) -> None:
    assert facts(COORDINATES, block).spread == (block in BLOCKS)
    z, y, x = np.indices(block[::-1])
    np.testing.assert_array_equal(launch(COORDINATES, block), np.broadcast_to(z << 20 | y << 10 | x, (3, *block[::-1])))


EXCHANGE = """
  mov.u32 %r10, words; shl.b32 %r11, %r7, 2; add.u32 %r11, %r11, %r10; st.shared.u32 [%r11], %r0;
  mov.u32 %r12, 0; mov.u32 %r13, 0;
AGAIN:
  bar.sync 0; add.u32 %r14, %r7, 1; setp.eq.u32 %p1, %r14, %r8; selp.u32 %r14, 0, %r14, %p1; shl.b32 %r14, %r14, 2;
  add.u32 %r14, %r14, %r10; ld.shared.u32 %r15, [%r14]; mad.lo.u32 %r13, %r13, 3, %r15; bar.sync 0; st.shared.u32 [%r11], %r13;
  add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 5; @%p2 bra AGAIN;
  st.global.u32 [%rd1], %r13;"""


@pytest.mark.parametrize("block", BLOCKS)
def test_barriers_and_shared_memory(block: tuple[int, int, int]) -> None:
    assert facts(EXCHANGE, block).spread
    threads = int(np.prod(block))
    words = np.arange(3 * threads, dtype=np.uint32).reshape(3, threads)
    sums = np.zeros_like(words)
    for _ in range(5):
        sums = sums * np.uint32(3) + np.roll(words, -1, axis=1)
        words = sums.copy()
    np.testing.assert_array_equal(launch(EXCHANGE, block).reshape(3, threads), sums)


@pytest.mark.parametrize("block", BLOCKS)
def test_some_threads_leave_and_others_add(block: tuple[int, int, int]) -> None:
    """The last thread of each row ends at once; each other one adds to the place of its neighbour, or of the first thread."""
    body = """
  sub.u32 %r10, %r4, 1; setp.eq.u32 %p1, %r1, %r10; @%p1 exit; red.global.add.u32 [%rd1+4], 1; and.b32 %r11, %r1, 3;
  setp.ne.u32 %p2, %r11, 0; @%p2 bra OVER; sub.u64 %rd3, %rd1, %rd2; atom.global.add.u32 %r12, [%rd3], 100;
OVER: ret;"""
    assert facts(body, block).spread
    found = launch(body, block)
    adds = 3 * block[1] * block[2] * len(range(0, block[0] - 1, 4)) * 100
    expected = np.zeros_like(found)
    expected[..., 1:] = 1
    expected[0, 0, 0, 0] += adds
    np.testing.assert_array_equal(found, expected)


TELLING = {
    "the number of a lane": "mov.u32 %r10, %laneid;",
    "that of a warp": "mov.u32 %r10, %warpid;",
    "lanes before": "mov.u32 %r10, %lanemask_lt;",
    "a shuffle": "shfl.sync.down.b32 %r10, %r0, 1, 31, -1;",
    "a vote": "setp.gt.u32 %p1, %r1, 3; vote.sync.ballot.b32 %r10, %p1, -1;",
    "who is there": "activemask.b32 %r10;",
    "a sum of a warp": "redux.sync.add.u32 %r10, %r0, -1;",
    "a barrier of a warp": "bar.warp.sync -1; mov.u32 %r10, %r0;",
    "a volatile word": "mov.u32 %r11, words; shl.b32 %r12, %r7, 2; add.u32 %r11, %r11, %r12; st.volatile.shared.u32 [%r11], %r0; "
    "ld.volatile.shared.u32 %r10, [%r11+-4];",
}


@pytest.mark.parametrize("way", TELLING)
def test_kernels_that_are_told_of_warps_have_them_as_they_are(way: str) -> None:
    body = f"setp.eq.u32 %p3, %r7, 0; mov.u32 %r10, 0; @%p3 bra OVER; OVER: {TELLING[way]} st.global.u32 [%rd1], %r10;"
    if way == "a volatile word":
        body = body.replace("@%p3 bra OVER;", "@%p3 bra END;") + " END:"
    block = (24, 4, 1)
    assert not facts(body, block).spread
    np.testing.assert_array_equal(launch(body, block), launch(body, block, engine="interpreter"))


@pytest.mark.parametrize("observed", ["strays", "all"])
def test_those_who_are_told_of_accesses_see_warps_as_they_are(observed: Observed) -> None:
    assert not facts(COORDINATES, (24, 8, 1), observed).spread


@pytest.mark.parametrize("block", [(24, 8, 1), (10, 10, 1)])
def test_faults_name_the_thread(block: tuple[int, int, int]) -> None:
    body = """
  setp.ne.u32 %p1, %r2, 3; @%p1 bra OVER; setp.ne.u32 %p1, %r1, 7; @%p1 bra OVER; add.u64 %rd1, %rd1, 2;
OVER: st.global.u32 [%rd1], %r0;"""
    with pytest.raises(ptxemu.Fault, match=r"thread \(7,3,0\)"):
        launch(body, block, 1)
