"""tensormap.replace changes the bits that it changed on an H200."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.tensor_maps_set import changes

TEXT = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 maps, .param .u64 values)
{{
  .reg .b64 %d<5>; .reg .b32 %r<5>;
  .shared .align 128 .b8 held[4096];
  ld.param.u64 %d1, [maps]; ld.param.u64 %d2, [values]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 8; add.u64 %d2, %d2, %d3; ld.global.u64 %d4, [%d2]; cvt.u32.u64 %r2, %d4;
  mul.wide.u32 %d3, %r1, 128; add.u64 %d1, %d1, %d3; mov.u32 %r3, held; shl.b32 %r4, %r1, 7; add.u32 %r3, %r3, %r4;
  {change}
  ret;
}}
"""
IN_GLOBAL = "tensormap.replace.tile.{field}.global.b1024.{type} [%d1]{ordinal}, {value};"
IN_SHARED = """mov.u32 %r4, 0;
COPY: ld.global.u32 %r1, [%d1]; st.shared.u32 [%r3], %r1; add.u32 %r3, %r3, 4; add.u64 %d1, %d1, 4; add.u32 %r4, %r4, 4;
  .reg .pred %p; setp.lt.u32 %p, %r4, 128; @%p bra COPY;
  sub.u32 %r3, %r3, 128; sub.u64 %d1, %d1, 128;
  tensormap.replace.tile.{field}.shared::cta.b1024.{type} [%r3]{ordinal}, {value};
  mov.u32 %r4, 0;
BACK: ld.shared.u32 %r1, [%r3]; st.global.u32 [%d1], %r1; add.u32 %r3, %r3, 4; add.u64 %d1, %d1, 4; add.u32 %r4, %r4, 4;
  setp.lt.u32 %p, %r4, 128; @%p bra BACK;"""
WIDE = ("global_address", "global_stride")
IMMEDIATE = ("elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
CHANGES = changes()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("body", [IN_GLOBAL, IN_SHARED], ids=["global", "shared"])
@pytest.mark.parametrize("key", CHANGES, ids=[f"{field}-{ordinal}" for field, ordinal in CHANGES])
def test_fields_are_those_of_an_h200(key, body):
    field, ordinal = key
    device = ptxemu.Device(memory="16 MiB", workers=1)
    groups: dict[int | None, list] = {}
    for change in CHANGES[key]:
        groups.setdefault(change.value if field in IMMEDIATE else None, []).append(change)
    for immediate, group in groups.items():
        operand = str(immediate) if immediate is not None else "%d4" if field in WIDE else "%r2"
        change = body.format(field=field, type="b64" if field in WIDE else "b32", value=operand,
                             ordinal="" if ordinal is None else f", {ordinal}")  # fmt: skip
        kernel = ptxemu.loads(TEXT.format(change=change), device=device)["k"]
        for start in range(0, len(group), 32):
            some = group[start : start + 32]
            maps = device.to_device(np.frombuffer(b"".join(one.before for one in some), "u1").copy())
            values = device.to_device(np.array([one.value for one in some], "u8"))
            kernel[1, len(some)](maps, values)
            assert np.asarray(maps.copy_to_host()).tobytes() == b"".join(one.after for one in some)
