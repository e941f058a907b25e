"""Words that shuffles carry between lanes have canonical NaNs, and flushed subnormals, wherever their bits are seen."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernel_tools import GLOBAL_INDEX, kernel, run

PARAMETERS = ".param .u64 words, .param .u64 out"
CANONICAL = 0x7FFFFFFF
STARTS = [0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345, 0x3F800000, 0x00400000, 0x80000001, 0x00800000]


def text(ftz: str) -> str:
    """Bits of a sum that has gone from lane to lane: as it came, added to as an integer, and that of one lane alone."""
    return kernel(f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd4, %rd1, %rd3;
  mul.wide.u32 %rd5, %r0, 16; add.u64 %rd6, %rd2, %rd5; ld.global.f32 %f1, [%rd4];
  sub{ftz}.f32 %f2, %f1, 0f00000000; mov.u32 %r1, 1;
AGAIN:
  mov.b32 %r2, %f2; shfl.sync.down.b32 %r3, %r2, %r1, 31, -1; mov.b32 %f3, %r3; mul{ftz}.f32 %f2, %f3, 0f3F800000;
  shl.b32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra AGAIN;
  mov.b32 %r4, %f2; shfl.sync.idx.b32 %r5, %r4, 3, 31, -1; add.u32 %r6, %r5, 1;
  mov.u32 %r9, 0; and.b32 %r7, %r60, 31; setp.ne.u32 %p2, %r7, 5; @%p2 bra OTHERS;
  mul{ftz}.f32 %f4, %f2, 0f3F800000; mov.b32 %r9, %f4;
OTHERS:
  st.global.v4.u32 [%rd6], {{%r3, %r5, %r6, %r9}};""", PARAMETERS)  # fmt: skip


def seen(words: np.ndarray, flushes: bool) -> np.ndarray:
    """Words as the results of arithmetic that changes nothing but NaNs, and subnormals if it flushes."""
    magnitude = words & 0x7FFFFFFF
    words = np.where(flushes & (magnitude < 0x00800000), words & 0x80000000, words)
    return np.where(magnitude > 0x7F800000, CANONICAL, words).astype(np.uint32)


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_bits(ftz: str) -> None:
    words = np.random.default_rng(4).choice(np.array(STARTS, np.uint32), 64)
    out = np.zeros((64, 4), np.uint32)
    run(text(ftz), 1, 64, words, out)
    results, lane, warp = seen(words, bool(ftz)), np.arange(64) % 32, np.arange(64) // 32 * 32
    for by in (1, 2, 4):
        results = results[np.where(lane + by < 32, np.arange(64) + by, np.arange(64))]
    third = results[warp + 3]
    alone = np.where(lane == 5, results, 0)
    np.testing.assert_array_equal(out, np.stack([results, third, third + 1, alone], axis=1))
