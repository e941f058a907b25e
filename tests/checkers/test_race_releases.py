"""The checker ``race``: what threads have released, and who follows it: updates, flags, and words of a launch or block before."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

SHARED = ".shared .align 8 .b8 s[512];\n.shared .align 8 .b64 bar;\n"

device = checked_device("race", workers=2)


RELEASED = {
    "shared": ("cvt.u32.u64 %r3, %rd2; xor.b32 %r4, %r3, 4;", "red.shared.add.u32 [%r3], 1;", "ld.shared.u32 %r5, [%r4];"),
    "global": ("add.u64 %rd4, %rd1, %rd2; xor.b64 %rd5, %rd4, 4;", "red.global.add.u32 [%rd4], 1;", "ld.global.u32 %r5, [%rd5];"),
}
"""The words of a thread and of another one of its warp; an update of the first; a read of the second."""


@pytest.mark.parametrize("space", RELEASED)
def test_releases_of_launches_before_are_forgotten(device: ptxemu.Device, space: str) -> None:
    """What another launch has released there is no release of what this one writes."""
    words, update, read = RELEASED[space]
    x, racy = device.to_device(np.zeros(64, np.uint32), "x"), program(f"{words} {update} {read}", SHARED)
    alone = [str(one) for one in found(device, racy, x, 0)]
    assert alone and found(device, program(f"{words} bar.sync 0; {update}", SHARED), x, 0) == []
    assert [str(one) for one in found(device, racy, x, 0)] == alone


def test_releases_of_blocks_before_are_forgotten() -> None:
    """Block 0 releases words of its shared memory, block 1 does not."""
    words, update, read = RELEASED["shared"]
    text = program(f"{words} setp.ne.u32 %p1, %r2, 0; @%p1 bra REST; bar.sync 0; {update} exit; REST: {update} {read}", SHARED)
    with ptxemu.Device(memory="64 MiB", check="race", workers=1) as one_worker:
        seen = found(one_worker, text, 0, 0, grid=2)
    assert [(one.block[0], one.count) for one in seen] == [(1, 32)]


ROLES = {"shared": ("shr.u32 %r3, %r1, 5;", "s", 1, 96), "global": ("mov.u32 %r3, %r2;", "%rd1", 3, 32)}
"""The role of a warp, which is one of a block, or alone in its own; a base; grid and block."""
HANDED = """{role} and.b32 %r4, %r1, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra DONE; setp.eq.u32 %p2, %r3, 1; @%p2 bra BETWEEN;
setp.eq.u32 %p3, %r3, 2; @%p3 bra THIRD; st.{space}.u32 [{at}], 7; membar.gl; atom.{space}.add.u32 %r5, [{at}+4], 1;
st.volatile.u32 [%rd3+8], %r5; st.volatile.u32 [%rd3], 1; bra DONE;
BETWEEN: ld.volatile.u32 %r5, [%rd3]; setp.eq.u32 %p4, %r5, 0; @%p4 bra BETWEEN; st.volatile.u32 [%rd3+4], 1; bra DONE;
THIRD: ld.volatile.u32 %r5, [%rd3+4]; setp.eq.u32 %p5, %r5, 0; @%p5 bra THIRD;
membar.gl; {updates} membar.gl; ld.{space}.u32 %r7, [{at}]; DONE: mov.u32 %r8, 0"""
"""The first writes, and updates a word; the third comes later, which nobody has released to it, updates words and reads."""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("check", ["race", "memory,sync,race,leak,init"])
@pytest.mark.parametrize(("offsets", "races"), [((4,), 0), ((20,), 1), ((20, 4), 0), ((20, 20, 24, 20), 1), ((24, 20, 4, 20), 0)])
@pytest.mark.parametrize("space", ROLES)
def test_updates_follow_who_has_been_there(space: str, offsets: tuple[int, ...], races: int, check: str, workers: int) -> None:
    """And not what they release themselves."""
    role, at, grid, block = ROLES[space]
    updates = "".join(f"atom.{space}.add.u32 %r6, [{at}+{offset}], 1; add.u32 %r8, %r8, %r6;" for offset in offsets)
    body = HANDED.format(role=role, space=space, at=at, updates=f"mov.u32 %r8, 0; {updates}")
    text = program(body, SHARED).replace(";BETWEEN", ";\nBETWEEN").replace(";THIRD", ";\nTHIRD")
    with ptxemu.Device(memory="64 MiB", check=check, workers=workers) as device:
        x, y = (device.to_device(np.zeros(8, np.uint32), name) for name in "xy")
        seen = [one for one in found(device, text, x, y, grid=grid, block=block) if one.check == "race"]
    assert [one.message.partition(" of")[0] for one in seen] == ["4-byte read"] * races


WIDE = """{role} and.b32 %r4, %r1, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra DONE; setp.ne.u32 %p2, %r3, 0; @%p2 bra SECOND;
st.global.u32 [%rd3], 7; {fence} {write}; bra DONE;
SECOND: {read}; setp.eq.u32 %p3, %r5, 0; @%p3 bra SECOND; membar.gl; ld.global.u32 %r9, [%rd3]; DONE: mov.u32 %r10, 0"""
LAST = "ld.volatile.{space}.u32 %r5, [{at}+12]"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("fence", "races"), [("membar.gl;", 0), ("", 1)])
@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("st.volatile.{space}.v4.u32 [{at}], {{1, 1, 1, 1}}", LAST),
        ("st.volatile.{space}.u64 [{at}+8], -1", LAST),
        ("atom.{space}.exch.b64 %rd5, [{at}+8], -1", LAST),
        ("st.volatile.{space}.u64 [{at}+8], -1", "atom.{space}.or.b32 %r5, [{at}+12], 0"),
        ("st.volatile.{space}.u32 [{at}+12], 1", "ld.volatile.{space}.v4.u32 {{%r6, %r7, %r8, %r5}}, [{at}]"),
        (
            "st.volatile.{space}.u32 [{at}+12], 1",
            "ld.volatile.{space}.u64 %rd5, [{at}+8]; shr.u64 %rd5, %rd5, 32; cvt.u32.u64 %r5, %rd5",
        ),
    ],
)
@pytest.mark.parametrize("space", ROLES)
def test_all_words_are_released(space: str, write: str, read: str, fence: str, races: int, workers: int) -> None:
    """And followed, not the first of an access alone."""
    role, at, grid, block = ROLES[space]
    write, read = (text.format(space=space, at=at) for text in (write, read))
    text = program(WIDE.format(role=role, fence=fence, write=write, read=read), SHARED)
    with ptxemu.Device(memory="64 MiB", check="race", workers=workers) as device:
        x, y = (device.to_device(np.zeros(8, np.uint32), name) for name in "xy")
        seen = found(device, text, x, y, grid=grid, block=block)
    assert [one.message.partition(" of")[0] for one in seen] == ["4-byte read"] * races


UPDATE_ANOTHER = "atom.global.add.u32 %r6, [%rd1+16], 1;"
ANOTHER = """and.b32 %r4, %r1, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra DONE; setp.eq.u32 %p2, %r2, 1; @%p2 bra BETWEEN;
setp.eq.u32 %p3, %r2, 2; @%p3 bra THIRD; membar.gl; st.volatile.global.u32 [%rd1], 7; st.volatile.global.u32 [%rd3], 1; bra DONE;
BETWEEN: ld.volatile.global.u32 %r5, [%rd3]; setp.eq.u32 %p4, %r5, 0; @%p4 bra BETWEEN;
st.volatile.global.u32 [%rd3+4], 1; bra DONE;
THIRD: ld.volatile.global.u32 %r5, [%rd3+4]; setp.eq.u32 %p5, %r5, 0; @%p5 bra THIRD;
membar.gl; {} ld.global.u32 %r7, [%rd1]; DONE: mov.u32 %r8, 0"""
"""The first releases a word by a strong write; the third comes later, which nobody has released to it, and reads that."""


@pytest.mark.parametrize(("update", "workers", "races"), [("", 1, 1), ("", 2, 1), (UPDATE_ANOTHER, 1, 1), (UPDATE_ANOTHER, 2, 0)])
def test_who_updates_may_have_followed_strong_writes(update: str, workers: int, races: int) -> None:
    """Where several workers do: somebody else may have updated the word at the same time."""
    with ptxemu.Device(memory="64 MiB", check="race", workers=workers) as device:
        x, y = (device.to_device(np.zeros(8, np.uint32), name) for name in "xy")
        seen = found(device, program(ANOTHER.format(update)), x, y, grid=3)
    assert [one.message.partition(" of")[0] for one in seen] == ["4-byte read"] * races


READ_BEFORE = """and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE; setp.ne.u32 %p2, %r1, 0; @%p2 bra SECOND;
ld.{space}.u32 %r4, [{at}]; {fence} atom.{space}.exch.b32 %r5, [{at}], 1; bra DONE;
SECOND: {before} atom.acq_rel.gpu.{space}.exch.b32 %r5, [{at}], 2; DONE: mov.u32 %r6, 0"""


@pytest.mark.parametrize("before", ["", "membar.gl;"])
@pytest.mark.parametrize(("fence", "races"), [("", 1), ("membar.gl;", 0)])
@pytest.mark.parametrize(("space", "at"), [("shared", "s"), ("global", "%rd1")])
def test_an_update_comes_behind_what_it_follows(space: str, at: str, fence: str, races: int, before: str) -> None:
    """It acquires what has been released where it writes itself: a read there."""
    text = program(READ_BEFORE.format(space=space, at=at, fence=fence, before=before), SHARED).replace(";SECOND", ";\nSECOND")
    with ptxemu.Device(memory="64 MiB", check="race", workers=1) as device:
        seen = found(device, text, device.to_device(np.zeros(1, np.uint32), "x"), 0, block=64)
    assert [one.message.partition(" of")[0] for one in seen] == ["4-byte atomic update"] * races


IN_TURN = "membar.gl; atom.{space}.add.u32 %r3, [{at}], 1; setp.eq.u32 %p1, %r3, {turn}; @%p1 {access}.{space}.u32 {operands};"


@pytest.mark.parametrize(("space", "at"), [("shared", "s"), ("global", "%rd1")])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x00FFFFF0, 0x80000001])
def test_the_last_lane_that_has_updated_a_word_has_it_alone(device: ptxemu.Device, space: str, at: str, mask: int) -> None:
    some = f"mov.u32 %r4, 1; shl.b32 %r4, %r4, %r1; and.b32 %r4, %r4, {mask}; setp.ne.u32 %p2, %r4, 0; @!%p2 exit;"
    for turn in (mask.bit_count() - 1, 0):
        for access, operands in (("st", f"[{at}], 0"), ("ld", f"%r5, [{at}]")):
            body = IN_TURN.format(space=space, at=at, turn=turn, access=access, operands=operands)
            x = device.to_device(np.zeros(1, np.uint32), "x")
            zero = "st.shared.u32 [s], 0; bar.warp.sync 0xffffffff;" if space == "shared" else ""
            seen = found(device, program(zero + some + body, SHARED), x, 0, block=32)
            assert len(seen) == (turn == 0)
