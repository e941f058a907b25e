"""Functions behind pointers that wait for other warps, and for other lanes of their own."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel, run

PROTOTYPE = "P: .callprototype (.param .b32 _) _ (.param .b64 _);"
WAITING = """
.func (.param .b32 r) ready (.param .b64 p)
{
  .reg .b32 %a; .reg .b64 %d;
  ld.param.b64 %d, [p]; ld.volatile.global.u32 %a, [%d]; st.param.b32 [r], %a; ret;
}
.func (.param .b32 r) wait (.param .b64 p)
{
  .reg .b32 %a; .reg .b64 %d; .reg .pred %p;
  ld.param.b64 %d, [p];
AGAIN:
  ld.volatile.global.u32 %a, [%d]; setp.eq.u32 %p, %a, 0; @%p bra AGAIN;
  st.param.b32 [r], %a; ret;
}
.global .u64 table[2] = {ready, wait};
"""


@pytest.mark.parametrize("function", [0, 1])
def test_waiting_in_a_function_lets_other_warps_run(function: int) -> None:
    """A loop that polls through a pointer, and a function behind one that polls."""
    body = f"""
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; ld.global.u64 %rd2, [table+{8 * function}];
  setp.ge.u32 %p1, %r1, 32; @%p1 bra SET;
WAIT:
  {PROTOTYPE}
  call (%r5), %rd2, (%rd1), P; setp.eq.u32 %p2, %r5, 0; @%p2 bra WAIT;
  bra END;
SET:
  mov.u32 %r6, 1; st.volatile.global.u32 [%rd1], %r6;
END:
  red.global.add.u32 [%rd1+4], 1; ret;
"""
    out = np.zeros(2, np.uint32)
    run(kernel(body, declarations=WAITING), 1, 64, out, timeout=20)
    assert out.tolist() == [1, 64]


LOCK = """
.func (.param .b32 r) take (.param .b64 p)
{
  .reg .b32 %a; .reg .b64 %d; .reg .pred %p;
  ld.param.b64 %d, [p];
AGAIN:
  atom.global.cas.b32 %a, [%d], 0, 1; setp.ne.u32 %p, %a, 0; @%p bra AGAIN;
  st.param.b32 [r], 5; ret;
}
.func (.param .b32 r) give (.param .b64 p)
{
  .reg .b32 %a; .reg .b64 %d;
  ld.param.b64 %d, [p]; membar.gl; atom.global.exch.b32 %a, [%d], 0; st.param.b32 [r], 6; ret;
}
.global .u64 table[2] = {take, give};
"""


def test_lock_behind_pointers_taken_by_lanes_of_one_warp() -> None:
    """The lane that holds the lock must get on to give it back while the others spin."""
    body = f"""
  ld.param.u64 %rd1, [out]; ld.global.u64 %rd2, [table]; ld.global.u64 %rd3, [table+8];
  {PROTOTYPE}
  call (%r1), %rd2, (%rd1), P;
  ld.volatile.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, %r1; st.volatile.global.u32 [%rd1+4], %r2;
  call (%r3), %rd3, (%rd1), P;
  ret;
"""
    out = np.zeros(2, np.uint32)
    run(kernel(body, declarations=LOCK), 3, 64, out, timeout=20)
    assert out.tolist() == [0, 5 * 192]
    wrong = body.replace(
        "ld.global.u64 %rd3, [table+8];", "mov.u32 %r9, %tid.x; setp.eq.u32 %p1, %r9, 7; selp.u64 %rd2, 3, %rd2, %p1;"
    )
    with pytest.raises(ptxemu.Fault, match="invalid call target") as caught:
        run(kernel(wrong, declarations=LOCK), 1, 32, out, timeout=20)
    assert caught.value.record["thread"] == (7, 0, 0)
