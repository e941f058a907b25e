"""Code asks for what the next CTA will read, or a later trip of a loop with strides, and what is not there does no harm."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

AT = "ld.param.u64 %rd1, [out]; mul.wide.s32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;"
ONCE = "ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+8]; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;"
LOOP = "L: ld.global.u32 %r1, [%rd1]; add.u64 %rd1, %rd1, 128; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;"
FAR = LOOP.replace("128", "512")

STRIDES = """
mov.u32 %r4, %ntid.x; mul.wide.u32 %rd5, %r4, 128; mov.u32 %r5, 0;
L: ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; add.u64 %rd1, %rd1, %rd5; add.u32 %r5, %r5, %r2;
setp.lt.u32 %p1, %r5, %r1; @%p1 bra L;"""
MANY = STRIDES.replace(
    "L:", "mov.u64 %rd6, %rd1; mov.u64 %rd7, %rd1; L: ld.global.u32 %r6, [%rd6]; ld.global.u32 %r7, [%rd7];"
).replace("setp", "add.u64 %rd6, %rd6, %rd5; sub.u64 %rd7, %rd7, %rd5; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; setp")
"""Three arrays, so that enough is under way."""
TOGETHER = STRIDES.replace("L:", "L: bar.sync 0;")
ABREAST = STRIDES.replace("%ntid.x", "%nctaid.x")


CPU = "x86-64-v4"
"""Others ask for the lines of masked loads, too."""


@pytest.mark.parametrize(
    ("body", "count"),
    [(f"{ONCE} bar.sync 0;", 2), (ONCE, 0), (LOOP, 0), (FAR, 2), (STRIDES, 2), (MANY, 0), (TOGETHER, 2), (ABREAST, 0)],
)
def test_code(body: str, count: int) -> None:
    """Two lines for two loads off one base, none where warps go along rows anyway, or several blocks abreast through pieces."""
    text = str(compile.emit(compile.front(kernel(GLOBAL_INDEX + AT + body)), "k", compile.Options(cpu=CPU), "llvm"))
    assert text.count("call void @llvm.prefetch") == count


def test_rows_of_narrow_blocks() -> None:
    """Up to two lines of each of both rows of a warp."""
    body = """mov.u32 %r5, %tid.y; ld.param.u32 %r6, [pitch]; mad.lo.s32 %r0, %r5, %r6, %r60;
    ld.param.u64 %rd1, [out]; mul.wide.s32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;
    ld.global.u32 %r1, [%rd1]; bar.sync 0; st.global.u32 [%rd1], %r1;"""
    text = kernel(GLOBAL_INDEX + body, ".param .u64 out, .param .u32 pitch")
    code = str(compile.emit(compile.front(text), "k", compile.Options(variant="x16", cpu=CPU), "llvm"))
    assert code.count("call void @llvm.prefetch") == 4


def test_the_end_of_memory() -> None:
    body = "ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;"
    words = np.zeros(200_000, np.uint32)
    with ptxemu.Device(memory="1 MiB") as device:
        buffer = device.to_device(words)
        ptxemu.loads(kernel(GLOBAL_INDEX + AT + body), device=device)["k"][len(words) // 32, 32](buffer)
        np.testing.assert_array_equal(buffer.copy_to_host(), words + 1)


@pytest.mark.parametrize("threads", [32, 64])
def test_a_loop_with_strides_and_barriers(threads: int) -> None:
    """Trips of all warps: sums of a column, whose rows end where memory may end."""
    body = """ld.param.u32 %r4, [rows]; mov.u32 %r6, %nctaid.x; mul.lo.u32 %r6, %r6, %r62; mul.wide.u32 %rd5, %r6, 4;
    mov.u32 %r5, 0; mov.u64 %rd6, %rd1;
    L: ld.global.u32 %r1, [%rd1]; add.u32 %r5, %r5, %r1; add.u64 %rd1, %rd1, %rd5; bar.sync 0;
    sub.u32 %r4, %r4, 1; setp.ne.u32 %p1, %r4, 0; @%p1 bra L;
    st.global.u32 [%rd6], %r5;"""
    text = kernel(GLOBAL_INDEX + AT + body, ".param .u64 out, .param .u32 rows")
    words = np.random.default_rng(1).integers(0, 1 << 20, (37, 3 * threads), dtype=np.uint32)
    with ptxemu.Device(memory="1 MiB") as device:
        found = device.to_device(words)
        ptxemu.loads(text, device=device)["k"][3, threads](found, 37)
        np.testing.assert_array_equal(found.copy_to_host()[0], words.sum(0, dtype=np.uint32))
