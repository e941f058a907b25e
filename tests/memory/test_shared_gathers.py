"""Lanes that load and store shared memory at places far apart, where lanes, half a warp or all of it are off."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu

LANES, WORDS, STRIDE = 32, 1024, 17
MASKS = (0xFFFFFFFF, 0x0000FFFF, 0xFFFF0000, 0x00000001, 0x80000000, 0x00018000, 0x5A5A0000, 0)
TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 places, .param .u64 out, .param .u32 mask)
{{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>; .reg .b{bits} %v<3>;
  .shared .align 16 .b8 s[{room}];
  ld.param.u64 %d0, [places]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [mask];
  mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r6, %r1;
FILL:
  mad.lo.u32 %r3, %r6, {bytes}, %r2; cvt.u{bits}.u32 %v0, %r6; st.shared.b{bits} [%r3], %v0;
  add.u32 %r6, %r6, {lanes}; setp.lt.u32 %p, %r6, {words}; @%p bra FILL;
  bar.sync 0;
  mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2;
  {place}
  mad.lo.u32 %r3, %r4, {bytes}, %r2;
  mov.b{bits} %v0, 7; mov.b{bits} %v1, 7;
  shr.u32 %r5, %r0, %r1; and.b32 %r5, %r5, 1; setp.eq.u32 %p, %r5, 0;
  @%p bra OFF;
  ld.shared.b{bits} %v0, [%r3]; ld.shared.b{bits} %v1, [%r3+{bytes}];
  add.u{bits} %v2, %v0, 1000; st.shared.b{bits} [%r3+{bytes}], %v2;
OFF:
  bar.sync 0;
  mul.wide.u32 %d2, %r1, {bytes}; add.u64 %d4, %d1, %d2;
  st.global.b{bits} [%d4], %v0; st.global.b{bits} [%d4+{row}], %v1;
  ld.shared.b{bits} %v2, [%r3+{bytes}]; st.global.b{bits} [%d4+{rows}], %v2;
  ret;
}}
"""
PLACES = {"loaded": "ld.global.u32 %r4, [%d3];", "of the lane": f"mul.lo.u32 %r4, %r1, {STRIDE};"}


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("way", PLACES)
def test_only_lanes_that_are_on_take_part(engine, bits, way):
    size, lanes = bits // 8, np.arange(LANES)
    places = lanes * STRIDE if way == "of the lane" else np.random.default_rng(1).permutation(WORDS // 2 - 1)[:LANES] * 2
    text = TEXT.format(
        bits=bits,
        bytes=size,
        words=WORDS,
        lanes=LANES,
        room=WORDS * size,
        row=LANES * size,
        rows=2 * LANES * size,
        place=PLACES[way],
    )
    with ptxemu.Device(engine=engine) as device:
        kernel = ptxemu.loads(text, device=device)["k"]
        for mask in MASKS:
            out = np.zeros((3, LANES), f"u{size}")
            kernel[1, LANES](places.astype("u4"), out, mask)
            on = mask >> lanes & 1 == 1
            wanted = [np.where(on, places, 7), np.where(on, places + 1, 7), places + np.where(on, 1000, 1)]
            assert np.array_equal(out, wanted), hex(mask)
