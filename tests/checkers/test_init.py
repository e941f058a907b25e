"""The checker ``init``: reads of memory that nobody has written, to the byte."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, messages, program

DECLARED = """.shared .align 16 .b8 s[128]; .extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p); .global .align 4 .u32 zeros[4];
"""
ADDRESS = "add.u64 %rd4, %rd1, %rd2;"  # of an element of x
OTHER = "xor.b32 %r3, %r1, 9; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;"
OWN = "cvt.u32.u64 %r3, %rd2;"  # 4 * %tid.x
LOCAL = ".local .align 8 .b8 frame[16]; mov.u64 %rd5, frame;"
CALL = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %rd5, [r]; };"
FREE = "{ .param .b64 p; st.param.b64 [p], %rd5; call free, (p); };"
PLANTED = {
    f"{ADDRESS} ld.global.u32 %r3, [%rd4]": "4-byte read 0 bytes into `x` (128 bytes), which | ld 0.0 32x",
    f"{OTHER} ld.u32 %r3, [%rd4]": "4-byte read 36 bytes into `x` (128 bytes), which | ld 0.0 32x",
    f"setp.ne.u32 %p1, %r1, 7; {OTHER} @%p1 st.global.u32 [%rd4], 1; {ADDRESS} ld.global.u32 %r3, [%rd4]":
        "4-byte read 56 bytes into `x` (128 bytes), which | ld 0.14 1x",
    "st.global.u8 [%rd1+5], 1; ld.global.u32 %r3, [%rd1+4]":
        "4-byte read 4 bytes into `x` (128 bytes), 3 bytes of which | ld 0.0 1x",
    f"{ADDRESS} atom.global.add.u32 %r3, [%rd4], 1; ld.global.u32 %r3, [%rd4]":
        "4-byte update 0 bytes into `x` (128 bytes), which | atom 0.0 32x",
    f"{OWN} ld.shared.u32 %r4, [%r3]": "4-byte read of shared memory at 0x0, which | ld 0.0 32x",
    f"{OWN} setp.lt.u32 %p1, %r1, 31; @%p1 st.shared.u32 [%r3], 1; ld.shared.u32 %r4, [%r3]":
        "4-byte read of shared memory at 0x7c, which | ld 0.31 1x",
    f"{LOCAL} st.local.u32 [%rd5], 1; ld.local.u64 %rd6, [%rd5]": "8-byte read of local memory, 4 bytes of which | ld 0.0 32x",
    f"{CALL} st.u32 [%rd5], 1; ld.u32 %r3, [%rd5+4]": "4-byte read 4 bytes into `malloc` (24 bytes), which | ld 0.0 32x",
    f"{CALL} st.u32 [%rd5], 1; {FREE} {CALL} ld.u32 %r3, [%rd5]":
        "4-byte read 0 bytes into `malloc` (24 bytes), which | ld 0.0 32x",
    f"{OWN} st.shared.u32 [%r3], 1; cp.async.ca.shared.global [%r3], [%rd1], 4; ld.shared.u32 %r4, [%r3]":
        "4-byte read 0 bytes into `x` (128 bytes), which | cp 0.0 1x",
}  # fmt: skip
CLEAN = [
    f"{ADDRESS} st.global.u32 [%rd4], 1; {OTHER} ld.global.u32 %r3, [%rd4]; atom.global.add.u32 %r3, [%rd1], 1",
    f"{OWN} st.shared.u32 [%r3], 1; bar.sync 0; xor.b32 %r3, %r3, 36; ld.shared.u32 %r4, [%r3];"
    " ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [s+112]",
    f"{LOCAL} st.local.u64 [%rd5+8], 1; ld.local.u32 %r3, [%rd5+12]",
    f"{CALL} st.u64 [%rd5+8], 1; ld.u32 %r3, [%rd5+12]; {FREE}",
    "st.global.v2.u32 [%rd1], {%r1, %r2}; ld.global.v4.u32 {%r4,%r5,%r6,%r7}, [%rd1]",  # vectors: not all of it is blank
    "ld.global.u32 %r3, [zeros+12]",
]  # fmt: skip


device = checked_device("init")


@pytest.mark.parametrize("body", PLANTED)
def test_planted(device: ptxemu.Device, body: str) -> None:
    seen = messages(found(device, program(body, DECLARED), device.empty(32, "u32", "x"), 0))
    message, opcode, place = PLANTED[body].partition(" | ")[0], *PLANTED[body].partition(" | ")[2].split(" ", 1)
    (text,) = seen
    assert text.startswith(f"{message} nobody has written | {opcode}") and text.endswith(f"| {place}")


@pytest.mark.parametrize("body", CLEAN)
def test_clean(device: ptxemu.Device, body: str) -> None:
    assert messages(found(device, program(body, DECLARED), device.empty(32, "u32", "x"), 0)) == []


@pytest.mark.parametrize("check", ["init", "memory,init", "all"])
@pytest.mark.parametrize("bytes_apart", [4, 8, 12, 20, 24, 132, 136])
def test_columns_of_shared_memory(check: str, bytes_apart: int) -> None:
    """Each lane that reads what another one of its warp has left out is counted, and no other."""
    width = 4 if bytes_apart % 8 else 8
    value = {4: "%r1", 8: "%rd1"}[width]
    into = {4: "%r4", 8: "%rd4"}[width]
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        for left_out in (0, 1, 6, 16, 31):
            body = (
                f"mul.lo.u32 %r3, %r1, {bytes_apart}; and.b32 %r5, %r1, {left_out}; setp.eq.u32 %p1, %r5, 0;"
                f"@%p1 st.shared.u{8 * width} [%r3], {value}; bar.warp.sync 0xffffffff;"
                f"mul.lo.u32 %r6, %r1, {bytes_apart}; sub.u32 %r6, {31 * bytes_apart}, %r6;"
                f"ld.shared.u{8 * width} {into}, [%r6]; bar.warp.sync 0xffffffff;"
            )
            seen = found(device, program(body * 2, ".shared .align 8 .b8 s[4352];"), 0, 0)
            expected = sum(bool((31 - lane) & left_out) for lane in range(32))
            assert [one.count for one in seen if one.check == "init"] == [expected] * 2 * bool(expected)
            assert len(seen) == 2 * bool(expected)


READS = program(f"{ADDRESS} ld.global.u32 %r3, [%rd4]")


def test_what_the_host_writes_is_written(device: ptxemu.Device) -> None:
    assert device.checks is not None
    copied, viewed, part, marked, zeroed = (device.empty(32, "u32") for _ in range(5))
    copied.copy_from_host(np.zeros(32, "u4"))
    viewed.array[:] = 3
    part[:31].copy_from_host(np.zeros(31, "u4"))
    device.checks.initialized(marked.address, marked.nbytes)
    zeroed.copy_to_host()
    for buffer in (copied, viewed, marked, device.to_device(np.zeros(32, "u4")), np.zeros(32, "u4")):
        assert found(device, READS, buffer, 0) == []
    assert [one.thread[0] for one in found(device, READS, part, 0)] == [31]
    assert [one.count for one in found(device, READS, zeroed, 0)] == [32]


def test_shared_memory_is_blank_in_each_block_and_large_arrays_fill(device: ptxemu.Device) -> None:
    """The first block writes it, the others read what it has left; and a launch writes what the next one reads."""
    body = f"{OWN} setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r3], 1; bar.sync 0; ld.shared.u32 %r4, [%r3]"
    (finding,) = found(device, program(body, DECLARED), 0, 0, grid=9)
    assert finding.block == (1, 0, 0) and finding.count == 8 * 32
    index = "mad.lo.u32 %r3, %r2, 256, %r1; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;"
    x = device.empty(100 * 256, "u32", "x")
    assert found(device, program(f"{index} st.global.u32 [%rd4], %r3"), x, 0, grid=99, block=256) == []
    (finding,) = found(device, program(f"{index} ld.global.u32 %r3, [%rd4]"), x, 0, grid=100, block=256)
    assert finding.block == (99, 0, 0) and finding.count == 256


WINDOWS = """mov.u64 %rd4, x; cvta.param.u64 %rd4, %rd4; ld.u64 %rd5, [%rd4];
mov.b32 %r3, %envreg1; mov.b32 %r4, %envreg2; mov.b64 %rd6, {%r4, %r3};
ld.global.u32 %r5, [%rd6]; ld.global.u32 %r5, [%rd6+128]"""


def test_windows_that_were_blank_once() -> None:
    """What was a block's shared memory has the parameters of a later launch, and what its grid waits with."""
    with ptxemu.Device(memory="16 MiB", check="init", workers=1) as device:
        for size in (16, 256):
            found(device, program("bar.sync 0", f".shared .align 8 .b8 s[{size}];\n"), 0, 0)
        module = ptxemu.loads(program(WINDOWS), device=device)
        module["k"][1, 32](0, 0, cooperative=True)
        assert device.checks is not None
        assert [str(finding) for finding in device.checks.findings] == []


@pytest.mark.parametrize("tier", ["fast", "best"])
def test_with_other_checkers_and_tiers(tier: str) -> None:
    with ptxemu.Device(memory="16 MiB", check="memory,init") as device:
        x = device.empty(64, "u32", "x")
        body = f"bar.sync 0; {ADDRESS} st.global.u32 [%rd4], 1; bar.sync 0; ld.global.u32 %r3, [%rd4+128];"
        body += " ld.global.u32 %r3, [%rd4+132]"
        module = ptxemu.loads(program(body), device=device, tier=tier)
        module["k"][1, 32](x, 0)
        assert device.checks is not None
        assert [(one.check, one.count) for one in device.checks.findings] == [("init", 32), ("memory", 1), ("init", 31)]
