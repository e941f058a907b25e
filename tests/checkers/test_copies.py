"""The checker ``race`` at asynchronous copies, which may read and write at any time until somebody waits for them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

SHARED = ".shared .align 16 .b8 s[2048];\n.shared .align 8 .b64 bar;\n"
PLACES = "cvt.u32.u64 %r3, %rd2; add.u64 %rd4, %rd1, %rd2; add.u64 %rd5, %rd3, %rd2;"  # each thread's word of s, x and y
COPY = f"{PLACES} cp.async.ca.shared.global [%r3], [%rd4], 4;"
OWN = "ld.shared.u32 %r4, [%r3];"
OTHERS = "xor.b32 %r5, %r3, 128; ld.shared.u32 %r4, [%r5];"  # of a thread of the other warp
COMMIT, ALL = "cp.async.commit_group;", "cp.async.wait_all;"
TWO = f"{COPY} {COMMIT} cp.async.ca.shared.global [%r3+256], [%rd4], 4; {COMMIT}"  # two groups
INIT = "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], {count}; bar.sync 0;"
ARRIVE = "mbarrier.arrive.shared.b64 %rd7, [bar];"
WAIT = "WAIT: mbarrier.test_wait.shared.b64 %p2, [bar], %rd7; @!%p2 bra WAIT;"
BULK = f"""{PLACES} {INIT.format(count=1)} @%p1 mbarrier.arrive.expect_tx.shared.b64 %rd7, [bar], 256;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 256, [bar];"""
PARITY = "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;"
STORE = f"""{PLACES} setp.eq.u32 %p1, %r1, 0; st.shared.u32 [%r3], 5; fence.proxy.async; bar.sync 0;
@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 256; cp.async.bulk.commit_group;"""
READ, DONE = "cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group 0;"
UNDER_WAY = {
    f"{COPY} {OWN}": "4-byte read of shared memory at 0x0, which a copy is writing that nobody has waited for",
    f"{COPY} {COMMIT} {OWN}": "4-byte read of shared memory at 0x0, which a copy is writing that nobody has waited for",
    f"{COPY} bar.sync 0; {OTHERS}": "4-byte read of shared memory at 0x80, which a copy is writing that nobody has waited for",
    f"{COPY} cp.async.wait_group 0; bar.sync 0; {OWN}": "which a copy is writing that nobody has waited for",
    f"{COPY} st.shared.u32 [%r3], 9;": "4-byte write of 0x9 to shared memory at 0x0, which a copy is writing that nobody",
    f"{COPY} st.global.u32 [%rd4], 9;": "4-byte write of 0x9 to `x`[0x0], which a copy is reading that nobody has waited for",
    f"{TWO} cp.async.wait_group 1; bar.sync 0; ld.shared.u32 %r4, [%r3+256];": "shared memory at 0x100, which a copy is writing",
    f"{TWO} cp.async.wait_group 2; bar.sync 0; {OWN}": "shared memory at 0x0, which a copy is writing",
    f"{INIT.format(count=64)} {COPY} cp.async.mbarrier.arrive.shared.b64 [bar]; {ARRIVE} bar.sync 0; {OTHERS}":
        "which a copy is writing that nobody has waited for",
    f"{BULK} bar.sync 0; {OWN}": "4-byte read of shared memory at 0x0, which a copy is writing that nobody has waited for",
    f"{STORE} @%p1 st.shared.u32 [s+4], 1;": "shared memory at 0x4, which a copy is reading that nobody has waited for",
    f"{STORE} {READ} @%p1 ld.global.u32 %r4, [%rd1+8];": "4-byte read of `x`[0x8], which a copy is writing",
}  # fmt: skip
ORDERED = [
    f"{COPY} {ALL} {OWN} bar.sync 0; {OTHERS}",
    f"{COPY} {COMMIT} cp.async.wait_group 0; {OWN} st.global.u32 [%rd4], 9;",
    f"{TWO} cp.async.wait_group 1; bar.sync 0; {OWN} {OTHERS} cp.async.wait_group 0; ld.shared.u32 %r4, [%r3+256];",
    f"{COPY} ld.global.u32 %r4, [%rd4]; st.shared.u32 [%r3+1024], 1; st.global.u32 [%rd5], 1;",
    f"{INIT.format(count=64)} {COPY} cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; {PARITY} {OTHERS}",
    f"{INIT.format(count=64)} {COPY} cp.async.mbarrier.arrive.shared.b64 [bar]; {ARRIVE} {WAIT} {OWN} {OTHERS}",
    f"{BULK} {PARITY} {OWN} {OTHERS}",
    f"{STORE} {READ} @%p1 st.shared.u32 [s+4], 1; {DONE} @%p1 ld.global.u32 %r4, [%rd1];",
    f"{COPY} {ALL} bar.sync 0; {COPY} {ALL} bar.sync 0; {OTHERS}",
    f"cp.async.cg.shared.global [s], [%rd1], 16; {ALL} bar.sync 0; ld.shared.u32 %r4, [s];",  # the same by all lanes
]  # fmt: skip


device = checked_device("race", workers=2)


def messages(device: ptxemu.Device, body: str, grid: int = 3) -> list[str]:
    x, y = device.empty(64, np.uint32, "x"), device.empty(64, np.uint32, "y")
    text = program(body, SHARED).replace(";WAIT", ";\nWAIT")
    return [str(finding) for finding in found(device, text, x, y, grid=grid, block=64)]


@pytest.mark.parametrize("body", UNDER_WAY)
def test_copies_that_nobody_has_waited_for(device: ptxemu.Device, body: str) -> None:
    """They are told of a single block, with the copy as the other access."""
    said = messages(device, body, 1)
    assert said and UNDER_WAY[body] in said[0]
    assert "cp.async" in said[0].splitlines()[3]


LONG = """setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0; shl.b32 %r3, %r1, 2;
@%p1 mbarrier.arrive.expect_tx.shared.b64 %rd7, [bar], 16384;
@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], 16384, [bar];"""
FAR = {
    "ld.shared.u32 %r4, [%r3+12000];": "4-byte read of shared memory at 0x2ee0, which a copy is writing",
    "ld.shared.u32 %r4, [%r3+4092];": "4-byte read of shared memory at 0xffc, which a copy is writing",
    "@%p1 st.global.u32 [%rd1+16380], 3;": "4-byte write of 0x3 to `x`[0x3ffc], which a copy is reading",
    "@%p1 st.shared.u8 [s+16383], 3;": "1-byte write of 0x3 to shared memory at 0x3fff, which a copy is writing",
}


@pytest.mark.parametrize("access", [*FAR, "ld.shared.u32 %r4, [%r3+16384];"])
def test_long_copies(device: ptxemu.Device, access: str) -> None:
    """They are followed to their last byte, and no further."""
    x = device.empty(4097, np.uint32, "x")
    wide = SHARED.replace("2048", "32768")
    said = found(device, program(f"{LONG} {access}", wide), x, x, block=64)
    assert all(FAR.get(access, "nothing") in one.message for one in said) and bool(said) == (access in FAR)
    assert found(device, program(f"{LONG} {PARITY} {access}".replace(";WAIT", ";\nWAIT"), wide), x, x, block=64) == []


def test_others_are_not_told(device: ptxemu.Device) -> None:
    """Who waits for a copy does not yet let others know."""
    said = messages(device, f"{COPY} {ALL} {OTHERS}", 1)
    assert said and all("in no order with" in text for text in said)


@pytest.mark.parametrize("body", ORDERED)
def test_copies_that_are_complete(device: ptxemu.Device, body: str) -> None:
    assert messages(device, body, 1) == []


def test_copies_of_blocks_that_have_ended(device: ptxemu.Device) -> None:
    """The shared memory of a block is that of another one, later, whether or not it has waited for its copies."""
    assert messages(device, f"{PLACES} {OWN} bar.sync 0; {COPY}", 40) == []


def test_report(device: ptxemu.Device) -> None:
    assert messages(device, f"{COPY} {COMMIT} bar.sync 0; {OTHERS}", 1) == [
        "race: 4-byte read of shared memory at 0x80, which a copy is writing that nobody has waited for\n"
        "  test.ptx:19: ld.shared.u32 %r4, [%r5];\n"
        "  in `k`: block (0,0,0), thread (0,0,0); 64 times\n"
        "  test.ptx:15: cp.async.ca.shared.global [%r3], [%rd4], 4;\n"
        "  by block (0,0,0), thread (32,0,0)"
    ]
