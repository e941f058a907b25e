"""Kernels whose code goes along rows of blocks: which they are, and that every thread runs once and knows where it is."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.device.code import Facts
from ptxemu.driver import compile
from tests.support.kernel_tools import Threads, kernel

NUMBER = """
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z; mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y;
mad.lo.u32 %r12, %r9, %r11, %r8; mad.lo.u32 %r12, %r12, %r10, %r7;
mul.lo.u32 %r13, %r4, %r5; mul.lo.u32 %r13, %r13, %r6; mad.lo.u32 %r14, %r3, %r5, %r2; mad.lo.u32 %r14, %r14, %r4, %r1;
mad.lo.u32 %r0, %r12, %r13, %r14; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;
"""
"""r0: the number of the thread in launch order; rd1: its word."""
COUNT = "ld.global.u32 %r20, [%rd1]; add.u32 %r20, %r20, %r0; st.global.u32 [%rd1], %r20;"
SHARED = ".shared .align 4 .b8 words[128];\n"


def facts(body: str, variant: str = "row") -> Facts:
    text = kernel(NUMBER + body, declarations=SHARED)
    return compile.kernel(compile.front(text), "k", compile.Options(variant=variant)).facts


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (COUNT, True),
        ("setp.lt.u32 %p1, %r0, 99; @%p1 bra A; st.global.u32 [%rd1], %r0; A:", True),
        (f"bar.sync 0; {COUNT}", False),
        (f"L: {COUNT} setp.lt.u32 %p1, %r20, 9; @%p1 bra L;", False),
        ("red.global.add.u32 [%rd1], 1;", False),
        ("st.shared.u32 [words], %r0;", False),
        ("and.b32 %r20, %r0, 5; mul.wide.u32 %rd3, %r20, 4; sub.u64 %rd1, %rd1, %rd3; st.global.u32 [%rd1], %r0;", False),
    ],
)
def test_which_go_along_rows(body: str, expected: bool) -> None:
    assert facts(body).rows == expected


GRIDS = [
    ((7, 5), (32, 8)),
    ((3, 2, 4), (32, 2, 3)),
    ((70, 9), (32, 2)),
    ((5, 3), (64, 3)),
    ((9,), (96,)),
    ((4, 3), (32, 1)),
    ((3, 3), (20, 5)),
]


@pytest.mark.parametrize(("grid", "block"), GRIDS)
def test_every_thread_runs_once(grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    count = Threads(grid, block).count
    for workers in (1, 3):
        with ptxemu.Device(workers=workers) as device:
            out = np.arange(count, dtype=np.uint32)
            ptxemu.loads(kernel(NUMBER + COUNT), device=device)["k"][grid, block](out)
        np.testing.assert_array_equal(out, 2 * np.arange(count, dtype=np.uint32))


PICTURE = """
mad.lo.u32 %r20, %r8, %r5, %r2; mad.lo.u32 %r21, %r7, %r4, %r1; mul.lo.u32 %r22, %r10, %r4; mad.lo.u32 %r0, %r20, %r22, %r21;
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;
"""
"""The same for rows of a picture, in which warps of 16 or 8 lanes wide blocks lie in several."""


@pytest.mark.parametrize("width", [8, 16])
def test_pictures_of_narrow_blocks(width: int) -> None:
    out = np.arange(9 * 4 * width * 8, dtype=np.uint32)
    assert facts(PICTURE + COUNT, f"x{width}").rows
    ptxemu.loads(kernel(NUMBER + PICTURE + COUNT))["k"][(9, 4), (width, 8)](out)
    np.testing.assert_array_equal(out, 2 * np.arange(len(out), dtype=np.uint32))


def test_a_part_ends_where_it_is_to_end() -> None:
    out = np.ones(35 * 64, np.uint32)
    ptxemu.loads(kernel(NUMBER + "st.global.u32 [%rd1], 0;"))["k"][(7, 5), (32, 2)].part(4, 17)(out)
    np.testing.assert_array_equal(np.flatnonzero(out == 0), np.arange(4 * 64, 17 * 64))


def test_faults_name_block_and_thread() -> None:
    body = "setp.eq.u32 %p1, %r0, 1351; @%p1 mov.u64 %rd1, 64; @%p1 bra A; bra B; A: st.global.u32 [%rd1], %r0; B:"
    with pytest.raises(ptxemu.Fault, match=r"block \(0,3,0\), thread \(7,0,0\)"):
        ptxemu.loads(kernel(NUMBER + body))["k"][(7, 5), (32, 2)](np.zeros(2240, np.uint32))
