"""A kernel that is launched with blocks of every kind of shape, for each of which it has code of its own, by the driver."""

from __future__ import annotations

import numpy as np

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import variant_of
from tests.support.block_shapes import BLOCKS
from tests.support.driver_api import context, function, launch, load, to_device, to_host

PLACES = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry places(.param .u64 out) {
  .reg .u32 %r<8>; .reg .u64 %rd<3>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
  mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;
  mad.lo.u32 %r7, %r3, 100, %r2; mad.lo.u32 %r7, %r7, 100, %r1;
  ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r6, 4; add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r7;
  ret;
}
"""

# The number of the thread behind 2^31 as an int, times 4.
LARGE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry large(.param .u64 out) {
  .reg .pred %p; .reg .u32 %r<5>; .reg .u64 %rd<3>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ne.u32 %p, %r4, 0x80000001;
  @%p exit;
  ld.param.u64 %rd1, [out]; mul.wide.s32 %rd2, %r4, 4; st.global.s64 [%rd1], %rd2;
  ret;
}
"""


def test_these_are_all_kinds() -> None:
    assert len(set(map(variant_of, BLOCKS))) == lib.PE_VARIANTS


def test_each_shape_runs_its_own_code() -> None:
    with context():
        kernel = function(load(PLACES), "places")
        for x, y, z in [*BLOCKS, *BLOCKS[::-1]]:
            out = to_device(np.zeros((z, y, x), np.uint32))
            launch(kernel, (1, 1, 1), (x, y, z), out)
            expected = sum(scale * axis for scale, axis in zip((10_000, 100, 1), np.indices((z, y, x))))
            np.testing.assert_array_equal(to_host(out, (z, y, x), np.uint32), expected)


def test_numbers_of_threads_in_large_grids() -> None:
    with context():
        out = to_device(np.zeros(1, np.int64))
        launch(function(load(LARGE), "large"), (lib.PE_FEW_BLOCKS + 1, 1, 1), (1024, 1, 1), out)
        assert to_host(out, 1, np.int64) == 4 * (1 - 2**31)
