"""Masks and predicates that are kept as bits."""

from __future__ import annotations

import numpy as np

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel


def test_masks_do_not_come_bit_by_bit():
    """What a warp takes along past a barrier: a predicate, and lanes that have not exited."""
    body = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 4; setp.gt.u32 %p2, %r1, 90;
  @%p2 bra OVER; bar.sync 0; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; mov.u32 %r3, 9; @%p1 bra ON; bra DONE;
ON:
  ld.global.u32 %r3, [%rd1];
DONE:
  st.global.u32 [%rd1], %r3;
OVER:"""
    text, lanes, out = kernel(body), np.arange(96), np.full(96, 7, "u4")
    code = compile.emit(compile.front(text), "k", compile.Options(cpu="x86-64-v3"), "asm")
    assert "vpinsrb" not in str(code)
    ptxemu.loads(text)["k"][1, 96](out)
    assert np.array_equal(out, np.where((lanes & 5 == 4) | (lanes > 90), 7, 9))
