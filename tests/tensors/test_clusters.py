"""Copies of tensors to several CTAs of a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.tensors.test_copies import numbers

TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 out, .param .u32 ctas) .explicitcluster .reqnctapercluster 4
{{
  .reg .b64 %d<8>; .reg .b32 %r<12>; .reg .b16 %h<4>; .reg .pred %p<3>;
  .shared .align 1024 .b8 box[256]; .shared .align 8 .b64 bar;
  mov.u64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out]; ld.param.u16 %h1, [ctas];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.ne.u32 %p1, %r1, 0; mov.u32 %r3, 0; mov.u32 %r8, box;
  shl.b32 %r4, %r1, 2; add.u32 %r8, %r8, %r4; st.shared.u32 [%r8], 0;
  @!%p1 mbarrier.init.shared.b64 [bar], 1;
  @!%p1 mbarrier.arrive.expect_tx.shared.b64 %d3, [bar], {expected};
  barrier.cluster.arrive; barrier.cluster.wait;
  setp.ne.u32 %p2, %r2, 1; or.pred %p2, %p2, %p1;
  @!%p2 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{group}
    [box], [%d1, {{%r3, %r3}}], [bar], %h1;
  cvt.u32.u16 %r5, %h1; shr.u32 %r5, %r5, %r2; and.b32 %r5, %r5, 1; setp.eq.u32 %p2, %r5, 0;
  @%p2 bra DONE;
  @%p1 bra DONE;
  {wait}
DONE:
  barrier.cluster.arrive; barrier.cluster.wait;
  shl.b32 %r6, %r2, 7; add.u32 %r6, %r6, %r4; cvt.u64.u32 %d4, %r6; add.u64 %d4, %d2, %d4;
  ld.shared.u32 %r7, [%r8]; st.global.u32 [%d4], %r7;
  ret;
}}
"""
WAIT = "W: mbarrier.try_wait.shared.b64 %p2, [bar], %d3; @!%p2 bra W;"


def cast(array: np.ndarray, ctas: int, **parts: object) -> np.ndarray:
    device = ptxemu.Device(memory="64 MiB", workers=2)
    made = device.tensor_map(device.to_device(array), (4, 8))
    out = device.to_device(np.zeros((4, 32), "u4"))
    ptxemu.loads(TEXT.format(**parts), device=device)["k"][4, 32](made, out, ctas, timeout=30)
    return np.asarray(out.copy_to_host())


@pytest.mark.parametrize("ctas", [0b1, 0b10, 0b1011, 0b1111, 0])
def test_every_cta_of_the_set_gets_the_box(ctas):
    array = numbers((12, 32))
    got = cast(array, ctas, expected=128, group="", wait=WAIT)
    for rank in range(4):
        assert (got[rank] == (array[:4, :8].ravel() if ctas >> rank & 1 else 0)).all()


def test_a_pair_of_ctas_has_one_mbarrier():
    """The object is in CTA 1: those of odd rank get the bytes of both CTAs of their pair."""
    array = numbers((12, 32))
    wait = "and.b32 %r9, %r2, 1; setp.eq.u32 %p2, %r9, 0; @%p2 bra DONE;\n" + WAIT
    got = cast(array, 0b1111, expected=256, group=".cta_group::2", wait=wait)
    assert (got == array[:4, :8].ravel()).all()


def test_bytes_that_never_come():
    with pytest.raises(ptxemu.Fault, match=r"deadlock|bytes"):
        cast(numbers((12, 32)), 0b1, expected=256, group="", wait=WAIT)
