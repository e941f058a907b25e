"""The checker ``memory``: accesses outside of what they may touch, exact to the byte, and misaligned ones."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.device.buffer import Buffer
from tests.checkers.planted import checked_device, found, messages, program

DECLARED = """.global .align 4 .u32 before; .global .align 16 .b8 table[17]; .global .align 16 .u32 behind;
.const .align 4 .u32 fixed[3]; .shared .align 4 .b8 s[100]; .extern .func (.param .b64 r) malloc (.param .b64 n);
.extern .func free (.param .b64 p);
"""


device = checked_device("memory")


@pytest.fixture(scope="module")
def arrays(device: ptxemu.Device) -> tuple[Buffer, Buffer]:
    """x of 30 floats, and y of 33 bytes."""
    return device.to_device(np.arange(30, dtype="f4"), "x"), device.empty(33, "u1", "y")


ADDRESS = "add.u64 %rd4, %rd1, %rd2;"  # of an element of x
VARYING = "xor.b32 %r3, %r1, 9; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;"
LOCAL = "mov.u64 %rd5, frame;"
CALL = "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %rd5, [r]; };"
FREE = "{ .param .b64 p; st.param.b64 [p], %rd5; call free, (p); };"
PLANTED = {
    f"{ADDRESS} ld.global.f32 %f1, [%rd4]": "4-byte read just after `x` (120 bytes) | ld.global.f32 %f1, [%rd4]; | 0.30 2x",
    f"{ADDRESS} st.global.f32 [%rd4+8], 0f00000000":
        "4-byte write just after `x` (120 bytes) | st.global.f32 [%rd4+8], 0f00000000; | 0.28 4x",
    f"{ADDRESS} ld.f32 %f1, [%rd4-4]": "4-byte read just before `x` (120 bytes) | ld.f32 %f1, [%rd4-4]; | 0.0 2x",
    f"{VARYING} ld.global.f32 %f1, [%rd4]": "4-byte read 4 bytes after `x` (120 bytes) | ld.global.f32 %f1, [%rd4]; | 0.22 2x",
    f"{VARYING} st.global.f32 [%rd4+20], 0f00000000":
        "4-byte write just after `x` (120 bytes) | st.global.f32 [%rd4+20], 0f00000000; | 0.16 7x",
    "ld.global.u32 %r3, [%rd1+160]": "4-byte read 40 bytes after `x` (120 bytes) | ld.global.u32 %r3, [%rd1+160]; | 0.0 32x",
    "st.global.u16 [%rd3+32], 7": "2-byte write that ends 1 byte after `y` (33 bytes) | st.global.u16 [%rd3+32], 7; | 0.0 32x",
    "ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd1+112]":
        "16-byte read that ends 8 bytes after `x` (120 bytes) | ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd1+112]; | 0.0 32x",
    "atom.global.add.u32 %r3, [%rd1+124], 1":
        "4-byte update 4 bytes after `x` (120 bytes) | atom.global.add.u32 %r3, [%rd1+124], 1; | 0.0 32x",
    "mov.u64 %rd4, 8; ld.global.u32 %r3, [%rd4]": "4-byte read at 0x8: a null pointer | ld.global.u32 %r3, [%rd4]; | 0.0 32x",
    "ld.global.u32 %r3, [%rd3+2]": None,
    "ld.global.u8 %r3, [table+17]": "1-byte read just after `table` (17 bytes) | ld.global.u8 %r3, [table+17]; | 0.0 32x",
    "mov.u64 %rd4, table; st.global.u32 [%rd4+16], 0":
        "4-byte write that ends 3 bytes after `table` (17 bytes) | st.global.u32 [%rd4+16], 0; | 0.0 32x",
    "cvt.u32.u64 %r3, %rd2; ld.shared.u32 %r4, [%r3]":
        "4-byte read just after the shared memory of the block (100 bytes) | ld.shared.u32 %r4, [%r3]; | 0.25 7x",
    "cvt.u32.u64 %r3, %rd2; atom.shared.add.u32 %r4, [%r3+4], 1":
        "4-byte update just after the shared memory of the block (100 bytes) | atom.shared.add.u32 %r4, [%r3+4], 1; | 0.24 8x",
    "ld.const.u32 %r3, [fixed+12]":
        "4-byte read just after the constants of the module (12 bytes) | ld.const.u32 %r3, [fixed+12]; | 0.0 32x",
    f".local .b8 frame[5]; {LOCAL} add.u64 %rd5, %rd5, %rd2; st.local.u8 [%rd5], 1":
        "1-byte write just after the local memory of the thread (16 bytes) | st.local.u8 [%rd5], 1; | 0.4 28x",
    f"{CALL} st.u32 [%rd5+24], 1": "4-byte write just after `malloc` (24 bytes) | st.u32 [%rd5+24], 1; | 0.0 32x",
    f"{CALL} {FREE} ld.u8 %r3, [%rd5+3]":
        "1-byte read 3 bytes into `malloc` (24 bytes), which has been freed | ld.u8 %r3, [%rd5+3]; | 0.0 32x",
}  # fmt: skip
CLEAN = {
    f"{ADDRESS} setp.lt.u32 %p1, %r1, 30; @%p1 ld.global.f32 %f1, [%rd4]; @%p1 st.global.f32 [%rd4], %f1",
    f"{VARYING} setp.lt.u32 %p1, %r3, 30; @%p1 ld.global.f32 %f1, [%rd4]; @%p1 st.f32 [%rd4], %f1",
    "st.global.u8 [%rd3+32], 7",
    "ld.global.v4.u32 {%r3,%r4,%r5,%r6}, [%rd1+96]; atom.global.add.u32 %r3, [%rd1+116], 1",
    "ld.global.u8 %r3, [table+16]; ld.global.u32 %r3, [before]; ld.global.u32 %r3, [behind]",
    "and.b32 %r3, %r1, 15; mul.lo.u32 %r3, %r3, 4; ld.shared.u32 %r4, [%r3+36]; cvta.shared.u64 %rd5, 0; ld.u32 %r4, [%rd5+96]",
    f"{CALL} st.u32 [%rd5+20], 1; {FREE}",
}


@pytest.mark.parametrize("body", PLANTED)
def test_planted(device: ptxemu.Device, arrays: tuple[Buffer, Buffer], body: str) -> None:
    seen = messages(found(device, program(body, DECLARED), *arrays))
    expected = PLANTED[body]
    if expected is None:
        assert len(seen) == 1 and "which is not a multiple of 4" in seen[0]
    else:
        assert [text[: len(expected)] for text in seen] == [expected]


@pytest.mark.parametrize("body", sorted(CLEAN))
def test_clean(device: ptxemu.Device, arrays: tuple[Buffer, Buffer], body: str) -> None:
    assert messages(found(device, program(body, DECLARED), *arrays)) == []


def test_bad_lanes_alone_do_nothing(device: ptxemu.Device) -> None:
    """A load gives zero, a store leaves memory alone; the other lanes go on."""
    x, y = device.to_device(np.arange(1, 31, dtype="u4"), "x"), device.to_device(np.full(31, 9, "u4"), "y")
    body = f"{ADDRESS} ld.global.u32 %r3, [%rd4]; sub.u64 %rd5, %rd4, %rd1; add.u64 %rd5, %rd3, %rd5; st.global.u32 [%rd5], %r3"
    seen = messages(found(device, program(body), x, y))
    assert [text.partition(" |")[0] for text in seen] == [
        "4-byte read just after `x` (120 bytes)", "4-byte write just after `y` (124 bytes)"
    ]  # fmt: skip
    np.testing.assert_array_equal(y.copy_to_host(), [*range(1, 31), 0])


def test_freed_memory(device: ptxemu.Device) -> None:
    x, y = device.empty(10, name="x"), device.empty(10, name="gone")
    address = y.address
    y.free()
    (seen,) = messages(found(device, program("st.global.u32 [%rd3+8], 1"), x, address))
    assert seen.startswith("4-byte write 8 bytes into `gone` (40 bytes), which has been freed |")


def test_every_launch_is_checked_and_counted(device: ptxemu.Device, arrays: tuple[Buffer, Buffer]) -> None:
    checks = device.checks
    assert checks is not None
    checks.clear()
    kernel = ptxemu.loads(program("st.global.u8 [%rd3+33], 1"), device=device, opt=0)["k"]
    for _ in range(3):
        kernel[2, 32](*arrays)
    (finding,) = checks.findings
    assert finding.count == 3 * 64 and finding.kernel == "k" and finding.thread == (0, 0, 0)
    assert checks.summary.endswith(": 1 finding")


def test_looped_and_threaded_code(arrays: tuple[Buffer, Buffer]) -> None:
    """Barriers in code for all warps of a block, and code of the first tier."""
    body = f"bar.sync 0; {ADDRESS} ld.global.u32 %r3, [%rd4]; bar.sync 0; st.global.u8 [%rd3+33], 1"
    for tier in ("fast", "best"):
        with ptxemu.Device(memory="8 MiB", check="memory") as device:
            x, y = device.empty(30, name="x"), device.empty(33, "u1", "y")
            module = ptxemu.loads(program(body), device=device, tier=tier)
            module["k"][2, 64](x, y)
            assert device.checks is not None
            assert [one.count for one in device.checks.findings] == [2 * 34, 128]


@pytest.mark.parametrize(
    ("names", "message"), [("memroy", "memory"), (["sinc"], "sync"), (["??"], "they are memory"), ([3], "no checker 3")]
)
def test_names(names: object, message: str) -> None:
    with pytest.raises(ptxemu.InputError, match=message):
        ptxemu.Device(memory="1 MiB", check=names)  # type: ignore[arg-type]
    with pytest.raises(ptxemu.InputError, match="host_memory"):
        ptxemu.Device(memory="1 MiB", check="memory", host_memory=True)
    with pytest.raises(ptxemu.InputError, match="jit"):
        ptxemu.Device(memory="1 MiB", check="all", engine="interpreter")
