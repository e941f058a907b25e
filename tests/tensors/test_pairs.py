"""Addresses in shared memory that name their CTA, in kernels for pairs of CTAs: clearing bit 24 leads to the CTA of even rank."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.tensors.test_copies import numbers

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out{params}) .explicitcluster .reqnctapercluster {cluster}
{{
  .reg .b64 %d<12>; .reg .b32 %r<24>; .reg .b16 %h<4>; .reg .pred %p<4>; .reg .f32 %f<4>;
  .shared .align 1024 .b8 box[1024]; .shared .align 8 .b64 bar; .shared .align 4 .b32 total;
  ld.param.u64 %d1, [out]; cvta.to.global.u64 %d1, %d1; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x;
  setp.eq.u32 %p1, %r1, 0;
"""
LEADER = "  and.b32 %r4, %r5, 0xFEFFFFFF;\n"
BARRIER = "  barrier.cluster.arrive; barrier.cluster.wait;\n"
INIT = f"  @%p1 mbarrier.init.shared.b64 [bar], {{count}};\n{BARRIER}"
PAIR = "  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n"
"""What makes a kernel one for pairs."""
SAME = "  mov.u32 %r5, bar;\n"
CONVERTED = "  cvta.shared.u64 %d2, bar; cvta.to.shared.u64 %d2, %d2; cvt.u32.u64 %r5, %d2;\n"
MAPPED = "  mov.u32 %r5, bar; mapa.shared::cluster.u32 %r5, %r5, %r2;\n"


def run(body: str, blocks: int = 4, cluster: int = 4, params: str = "", arguments: tuple[object, ...] = (), words: int = 32,
        device: ptxemu.Device | None = None) -> np.ndarray:  # fmt: skip
    device = device or ptxemu.Device(memory="64 MiB", workers=2)
    out = device.to_device(np.full((blocks, words), 99, "u4"))
    text = HEAD.format(params=params, cluster=cluster) + body + PAIR + "  ret;\n}\n"
    ptxemu.loads(text, device=device)["k"][blocks, 32](out, *arguments, timeout=30)
    return np.asarray(out.copy_to_host())


@pytest.mark.parametrize("address", [SAME, CONVERTED, MAPPED], ids=["own", "converted", "mapped"])
def test_both_ctas_of_a_pair_arrive_at_the_even_one(address: str) -> None:
    """As CUTLASS's umma_arrive_2x1SM_sm0: the count of two is complete in CTAs of even rank alone."""
    told = """
  mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
  selp.u32 %r6, 1, 0, %p2; mad.lo.u32 %r7, %r3, 128, 0; cvt.u64.u32 %d3, %r7; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %r6;
"""
    body = INIT.format(count=2) + address + LEADER + "  @%p1 mbarrier.arrive.shared::cluster.b64 _, [%r4];\n" + BARRIER + told
    assert list(run(body, blocks=8)[:, 0]) == [1, 0, 1, 0] * 2


COPY = """
  mov.u64 %d2, map; cvta.param.u64 %d2, %d2; mov.u32 %r8, box; mov.u32 %r9, 0; mov.b16 %h1, 15;
  and.b32 %r10, %r2, 1; setp.eq.u32 %p2, %r10, 0; and.pred %p2, %p2, %p1;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
{barrier}  {issues} cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes{multicast}
    [%r8], [%d2, {{%r9, %r9}}], [%r4]{ctas};
W:
  @%p2 mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
  @!%p2 setp.eq.u32 %p3, %r9, 0;
  @!%p3 bra W;
{barrier}  shl.b32 %r11, %r1, 2; add.u32 %r8, %r8, %r11; ld.shared.u32 %r12, [%r8];
  mad.lo.u32 %r13, %r3, 128, %r11; cvt.u64.u32 %d3, %r13; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %r12;
"""


@pytest.mark.parametrize(
    ("multicast", "issues", "ctas"),
    [("", "@%p1", ""), (".multicast::cluster", "setp.eq.and.u32 %p1, %r2, 3, %p1; @%p1", ", %h1")],
    ids=["each", "multicast"],
)
def test_bytes_of_both_ctas_of_a_pair_are_counted_in_the_even_one(multicast: str, issues: str, ctas: str) -> None:
    """As CUTLASS's SM100_TMA_2SM_LOAD and its multicast: both CTAs name the object of the even one."""
    device = ptxemu.Device(memory="64 MiB", workers=2)
    array = numbers((12, 32))
    made = device.tensor_map(device.to_device(array), (4, 8))
    parts = {"barrier": BARRIER, "multicast": multicast, "issues": issues, "ctas": ctas}
    body = INIT.format(count=1) + SAME + LEADER + COPY.format(**parts)
    got = run(body, params=", .param .align 128 .b8 map[128]", arguments=(made,), device=device)
    assert (got == array[:4, :8].ravel()).all()


ACCESSES = """
  mov.u32 %r4, box; shl.b32 %r5, %r1, 2; add.u32 %r6, %r4, %r5;
  mad.lo.u32 %r7, %r3, 1000, %r1; st.shared.u32 [%r6], %r7; st.shared.u32 [total], 5; bar.warp.sync -1;
  xor.b32 %r8, %r1, 21; shl.b32 %r8, %r8, 2; add.u32 %r8, %r4, %r8; ld.shared.u32 %r9, [%r8];
  cvt.u64.u32 %d2, %r8; ld.shared.u32 %r10, [%d2+0];
  mov.u32 %r11, total; atom.shared.add.u32 %r12, [%r11], 3; bar.warp.sync -1;
  ld.shared.u32 %r13, [%r11]; add.u32 %r14, %r4, 1024; ld.shared.u32 %r15, [%r14+-1024];
  cvta.shared.u64 %d3, %d2; ld.u32 %r16, [%d3]; cvta.to.shared.u64 %d4, %d3; ld.shared.u32 %r17, [%d4];
  cvt.u32.u64 %r18, %d4; getctarank.shared::cluster.u32 %r18, %r18; sub.u32 %r18, %r18, %r2;
  mapa.shared::cluster.u32 %r19, %r8, %r2; ld.shared::cluster.u32 %r20, [%r19]; ld.shared::cluster.u32 %r21, [%r6];
  sub.u32 %r22, %r4, 64; ld.shared.u32 %r22, [%r22+68];
  add.u32 %r9, %r9, %r10; add.u32 %r9, %r9, %r13; add.u32 %r9, %r9, %r15; add.u32 %r9, %r9, %r16; add.u32 %r9, %r9, %r17;
  add.u32 %r9, %r9, %r18; add.u32 %r9, %r9, %r20; add.u32 %r9, %r9, %r21; add.u32 %r9, %r9, %r22;
  mad.lo.u32 %r13, %r3, 128, %r5; cvt.u64.u32 %d5, %r13; add.u64 %d5, %d1, %d5; st.global.u32 [%d5], %r9;
"""


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_other_accesses_are_what_they_are_elsewhere(cluster: int) -> None:
    got = run(ACCESSES, 4, cluster)
    for block in range(4):
        box, thread = 1000 * block + np.arange(32), np.arange(32)
        total = 5 * box[thread ^ 21] + (5 + 3 * 32) + box[0] + box[thread] + box[1]
        assert list(got[block]) == list(total)


@pytest.mark.parametrize("address", ["add.u32 %r4, %r4, 2048", "add.u32 %r4, %r4, 0x1000000", "mov.u32 %r4, -16"])
def test_addresses_beyond_the_memory_of_a_cta(address: str) -> None:
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        run(f"  mov.u32 %r4, box; {address}; ld.shared.u32 %r5, [%r4];\n")
