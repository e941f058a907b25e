"""The checker ``race`` at fences between the generic and the async proxy."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program
from tests.matrix import wgmma_kernels

SHARED = ".shared .align 128 .b8 s[2048];\n.shared .align 8 .b64 bar;\n"
INIT = "setp.eq.u32 %p1, %r1, 0; cvt.u32.u64 %r3, %rd2; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;"
WRITE = f"{INIT} st.shared.u32 [%r3], %r1;"  # each thread its word
FENCE, MEET = "fence.proxy.async.shared::cta;", "bar.sync 0;"
SEND = """@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 256; @%p1 cp.async.bulk.commit_group;
@%p1 cp.async.bulk.wait_group 0;"""
ADD = SEND.replace("cp.async.bulk.global.shared::cta.bulk_group", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32")
GET = """@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd7, [bar], 256;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 256, [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;"""
FILL = "add.u64 %rd4, %rd1, %rd2; st.global.u32 [%rd4], %r1;"  # x
SENT = "256-byte read of shared memory at 0x0 by the async proxy, with no fence between proxies behind a write"
GOT = "256-byte write of shared memory at 0x0 by the async proxy, with no fence between proxies behind a write"
MISSING = {
    f"{WRITE} {MEET} {SEND}": SENT,
    f"{WRITE} {MEET} {ADD}": SENT,
    f"{WRITE} membar.gl; {MEET} {SEND}": SENT,
    f"{FENCE} {WRITE} {MEET} {SEND}": SENT,
    f"{WRITE} {MEET} {SEND} {FENCE}": SENT,
    f"{WRITE} @%p1 {FENCE} {MEET} {SEND}": SENT,  # of the other warp
    f"{INIT} @%p1 st.shared.u32 [s], 1; {SEND}": SENT,  # by the same thread
    f"{INIT} atom.shared.add.u32 %r4, [s], 1; {MEET} {SEND}": SENT.replace("a write", "an atomic update"),
    f"{WRITE} {MEET} {GET}": GOT,
    f"{WRITE} {MEET} @%p1 {FENCE} {SEND} {MEET} st.shared.u32 [%r3], 1; {MEET} {SEND}": SENT,
    f"{INIT} {FILL} {MEET} {GET}": "256-byte read of `x`[0x0] by the async proxy, with no fence between proxies behind a write",
}
FENCED = [
    f"{WRITE} {FENCE} {MEET} {SEND}",
    f"{WRITE} {MEET} {FENCE} {SEND}",
    f"{WRITE} {MEET} @%p1 {FENCE} {SEND}",
    f"{WRITE} fence.proxy.async; {MEET} {ADD}",
    f"{WRITE} {FENCE} {MEET} {GET}",
    f"{INIT} {GET} {SEND}",  # what a copy has written
    f"{INIT} {GET} ld.shared.u32 %r4, [%r3];",  # what is complete needs no fence
    f"{INIT} {GET} ld.shared.u32 %r4, [%r3]; {MEET} {SEND}",
    f"{INIT} {FILL} fence.proxy.async.global; {MEET} {GET}",
    f"{INIT} st.shared.u32 [%r3+1024], %r1; {MEET} {SEND}",  # elsewhere
]

device = checked_device("race", workers=2)


def messages(device: ptxemu.Device, body: str, grid: int = 1) -> list[str]:
    x = device.to_device(np.zeros(64, np.uint32), "x")
    text = program(body, SHARED).replace(".target sm_80", ".target sm_90").replace(";WAIT", ";\nWAIT")
    return [one.message for one in found(device, text, x, 0, grid=grid, block=64)]


@pytest.mark.parametrize("body", MISSING)
def test_fences_that_are_missing(device: ptxemu.Device, body: str) -> None:
    assert messages(device, body) == [MISSING[body]]


@pytest.mark.parametrize("body", FENCED)
def test_fences_that_are_there(device: ptxemu.Device, body: str) -> None:
    assert messages(device, body) == []


def test_what_earlier_blocks_have_written(device: ptxemu.Device) -> None:
    """In the same shared memory."""
    assert messages(device, f"setp.eq.u32 %p4, %r2, 1; {INIT} @%p4 bra GET; st.shared.u32 [%r3], %r1; bra OUT;"
                    f" GET: {GET.replace('WAIT', 'OVER')} OUT: mov.u32 %r4, 0", 2) == []  # fmt: skip


def test_a_fence_between_proxies_is_no_other(device: ptxemu.Device) -> None:
    """It does not release what came before it."""
    body = f"""setp.eq.u32 %p1, %r1, 0; cvt.u32.u64 %r3, %rd2; @%p1 st.volatile.shared.u32 [bar], 0; {MEET}
    setp.eq.u32 %p2, %r1, 32; @%p2 bra TAKE; @!%p1 bra DONE; st.shared.u32 [s], 5; FENCE
    st.volatile.shared.u32 [bar], 1; bra DONE; TAKE: ld.volatile.shared.u32 %r4, [bar]; setp.eq.u32 %p3, %r4, 0; @%p3 bra TAKE;
    ld.shared.u32 %r5, [s]; DONE: mov.u32 %r6, 0"""
    assert messages(device, body.replace("FENCE", "fence.acq_rel.cta;")) == []
    (one,) = messages(device, body.replace("FENCE", "fence.proxy.async;"))
    assert "in no order with" in one


@pytest.mark.parametrize("fence", ["fence.proxy.async;", ""])
def test_matrices_that_wgmma_reads(device: ptxemu.Device, fence: str) -> None:
    assert device.checks is not None
    product = wgmma_kernels.Product("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 0, 4096 >> 4, constants=(1, 1, 0, 0))
    text = wgmma_kernels.kernel([product]).replace("fence.proxy.async;", fence)
    memory = np.zeros(wgmma_kernels.SHARED, np.uint8)
    arrays = [memory, np.zeros((4, 128), np.uint32), np.zeros(128, np.uint32), np.zeros((4, 128), np.uint32)]
    device.checks.clear()
    ptxemu.loads(text, device=device, opt=0)["k"][1, 128](*arrays, np.zeros((4, 128), np.uint32))
    seen = [one.message for one in device.checks.findings]
    assert bool(seen) == (not fence) and all("16-byte read of shared memory at" in one for one in seen)
    assert all("by the async proxy, with no fence between proxies behind a write" in one for one in seen)
