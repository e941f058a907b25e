"""What a launch that failed may have lacked is said with the failure, and nothing where that would not explain it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu import Fault, LaunchTimeout

HEAD = ".version 7.8\n.target sm_70\n.address_size 64\n"
SHARED = (
    HEAD
    + ".SHARED\n"
    + (".visible .entry _ZN4math3sumEPj(.param .u64 p) { .reg .b32 %r; st.shared.u32 [x+4096], 1; ld.shared.u32 %r, [x]; ret; }")
)
DYNAMIC = SHARED.replace(".SHARED", ".extern .shared .align 16 .b8 x[];")
STATIC = SHARED.replace(".SHARED", ".shared .align 16 .b8 x[16];")
WORKSPACE = (
    HEAD
    + """
.visible .entry sync(.param .u64 p) {
  .reg .b32 %r; .reg .pred %q; BODY; setp.ne.u32 %q, %r, 0; @%q ret; trap; }
"""
)
SPIN = (
    HEAD
    + """
.visible .entry spin(.param .u64 p) {
  .reg .b32 %r<3>; .reg .b64 %rd; .reg .pred %q; ld.param.u64 %rd, [p]; mov.u32 %r2, %ctaid.x;
again: ld.volatile.global.u32 %r1, [%rd]; setp.ne.u32 %q, %r1, 7; @%q bra again;
  ret; }
"""
)


def failure(text: str, error: type[Exception], grid: int = 4, **options: object) -> str:
    (kernel,) = ptxemu.loads(text).values()
    with pytest.raises(error) as raised:
        kernel[grid, 32](np.zeros(4, np.uint32), **options)
    return str(raised.value)


def test_dynamic_shared_memory_that_was_not_given():
    text = failure(DYNAMIC, Fault)
    assert "illegal address in kernel `math::sum` at" in text
    assert text.endswith(
        "; the kernel has dynamic shared memory, and the launch gives it none (--shared BYTES; shared= in Python and cases)"
    )
    assert "--shared" not in failure(DYNAMIC, Fault, shared=64)
    assert "--shared" not in failure(STATIC, Fault)


def test_details_are_kept():
    (kernel,) = ptxemu.loads(DYNAMIC).values()
    with pytest.raises(Fault) as raised:
        kernel[1, 32](0)
    assert (raised.value.details.space, raised.value.details.kernel) == ("shared", "_ZN4math3sumEPj")


def test_grids_that_synchronize_need_a_cooperative_launch():
    hint = "; blocks that wait for each other need a cooperative launch (--cooperative; cooperative= in Python and cases)"
    text = failure(WORKSPACE.replace("BODY", "mov.u32 %r, %envreg1"), Fault)
    assert "trap in kernel `sync`" in text and text.endswith(hint)
    assert "--cooperative" not in failure(WORKSPACE.replace("BODY", "mov.u32 %r, 0"), Fault)
    first, *places = failure(SPIN, LaunchTimeout, timeout=0.2).splitlines()
    assert first.endswith(hint) and len(places) == 4
    assert "--cooperative" not in failure(SPIN, LaunchTimeout, timeout=0.2, cooperative=True)
    assert "--cooperative" not in failure(SPIN, LaunchTimeout, grid=1, timeout=0.2)
