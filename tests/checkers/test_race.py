"""The checker ``race``: accesses of shared and global memory that nothing puts in an order."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.checkers.findings import Finding
from ptxemu.driver import compile
from ptxemu.driver.lowering import Options
from tests.checkers.planted import checked_device, found, program
from tests.isa.test_other_ways import threaded

SHARED = ".shared .align 8 .b8 s[512];\n.shared .align 8 .b64 bar;\n"
OWN = "cvt.u32.u64 %r3, %rd2; st.shared.u32 [%r3], %r1;"  # each thread writes its word
NEXT = "ld.shared.u32 %r4, [%r3+128]"  # and reads that of a thread of the next warp
NEIGHBOUR = "ld.shared.u32 %r4, [%r3+4]"
NONE = "mov.u32 %r7, 0"
CAS = "atom.global.cas"
REVERSED = "xor.b32 %r4, %r1, 63; shl.b32 %r5, %r4, 2;"  # the address of the word of the thread as far from the other end
GENERIC = """cvta.shared.u64 %rd6, 0; add.u64 %rd4, %rd6, %rd2; setp.lt.u32 %p1, %r1, 40; mul.wide.u32 %rd7, %r2, 4;
add.u64 %rd7, %rd1, %rd7; selp.b64 %rd5, %rd4, %rd7, %p1;"""  # words of threads, and of blocks
PAIR = "shr.u32 %r4, %r1, 3; mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd1, %rd4;"  # one word for eight lanes
TWICE = "ld.shared.u32 %r4, [%r5]; bar.sync 0; st.shared.u32 [%r5], %r4; bar.sync 0; ld.shared.u32 %r4, [%r3]; bar.sync 0;"
ONE = "setp.eq.u32 %p1, %r1, 40; @%p1 st.shared.u32 [s], 7;"
WIDE = "shl.b32 %r3, %r1, 3; mov.u64 %rd4, 5; st.shared.u64 [%r3], %rd4;"
ROWS = "and.b32 %r3, %r1, 15; shl.b32 %r3, %r3, 2;"  # a word for all threads with the same column of 16
HALF = "shr.u32 %r3, %r1, 4; shl.b32 %r3, %r3, 2;"  # and one for each row
PADDED = "shr.u32 %r4, %r1, 4; add.u32 %r3, %r4, %r1; shl.b32 %r3, %r3, 2;"  # a free word behind 16: a warp's lie among 33
FOURS = "and.b32 %r4, %r1, 3; add.u32 %r3, %r1, %r1; sub.u32 %r3, %r3, %r4; shl.b32 %r3, %r3, 2;"  # words, and as many between
LAST_OF_WARP = "setp.eq.u32 %p1, %r1, 31; @%p1 st.shared.u32 [%r3], %r1;"
NINE = """and.b32 %r4, %r1, 1; shr.u32 %r5, %r1, 1; and.b32 %r5, %r5, 7; add.u32 %r4, %r4, %r5; shl.b32 %r3, %r4, 4;
mul.wide.u32 %rd4, %r4, 16; add.u64 %rd4, %rd1, %rd4;"""  # nine words for a warp, 16 bytes from one to the next
EVERYWHERE = "ld.global.u32 %r4, [%rd1]; ld.global.u32 %r4, [%rd1+4]; ld.global.u32 %r4, [%rd1+8]; ld.global.u32 %r4, [%rd1+12];"
BLOCKS = "mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd1, %rd4; setp.eq.u32 %p1, %r1, 0;"  # a word of each block
PUBLISH = """setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r2, 0; @%p1 bra DONE; @%p2 bra WAIT; st.global.u32 [%rd3], 7; {fence};
{store} [%rd1], 1; bra DONE; WAIT: {load} %r4, [%rd1]; setp.eq.u32 %p3, %r4, 0; @%p3 bra WAIT; {after};
ld.global.u32 %r5, [%rd3]; DONE: mov.u32 %r6, 0"""
LAST = """setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd3, %rd4; st.global.u32 [%rd4], %r2;
{fence}; atom.global.add.u32 %r4, [%rd1], 1; setp.ne.u32 %p2, %r4, 3; @%p2 bra DONE;
ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd3];
DONE: mov.u32 %r9, 0"""
LOCK = """setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; TAKE: {take}.b32 %r4, [%rd1], 0, 1;
setp.ne.u32 %p2, %r4, 0; @%p2 bra TAKE; {after};
ld.global.u32 %r5, [%rd3]; add.u32 %r5, %r5, 1; st.global.u32 [%rd3], %r5; {fence};
atom.global.exch.b32 %r6, [%rd1], 0; DONE: mov.u32 %r7, 0"""
LOCK_IN_CTA = """and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE; mul.wide.u32 %rd4, %r2, 4;
add.u64 %rd1, %rd1, %rd4; add.u64 %rd3, %rd3, %rd4; TAKE: atom.global.cta.cas.b32 %r4, [%rd1], 0, 1;
setp.ne.u32 %p2, %r4, 0; @%p2 bra TAKE; {after};
ld.global.u32 %r5, [%rd3]; add.u32 %r5, %r5, 1; st.global.u32 [%rd3], %r5; membar.cta;
atom.global.cta.exch.b32 %r6, [%rd1], 0; DONE: mov.u32 %r7, 0"""
SIGNAL = """cvt.u32.u64 %r3, %rd2; st.shared.u32 [%r3], 0; bar.sync 0; shr.u32 %r5, %r1, 5; and.b32 %r6, %r1, 31;
shl.b32 %r6, %r6, 2; setp.eq.u32 %p1, %r5, 0; @%p1 bra GIVE;
WAIT: atom.shared.or.b32 %r7, [%r6], 0; setp.eq.u32 %p2, %r7, 0; @%p2 bra WAIT;
membar.cta; ld.shared.u32 %r8, [%r6+128]; bra DONE;
GIVE: st.shared.u32 [%r6+128], %r1; {fence}; atom.shared.exch.b32 %r7, [%r6], 1; DONE: mov.u32 %r9, 0"""
HANDED_ON = """and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE; setp.gt.u32 %p2, %r2, 1; @%p2 bra DONE;
setp.eq.u32 %p3, %r2, 1; @%p3 bra LAST; setp.eq.u32 %p4, %r1, 32; @%p4 bra SECOND;
st.global.u32 [%rd3], 7; membar.cta; st.volatile.global.u32 [%rd1+4], 1; bra DONE;
SECOND: ld.volatile.global.u32 %r4, [%rd1+4]; setp.eq.u32 %p5, %r4, 0; @%p5 bra SECOND;
membar.gl; st.volatile.global.u32 [%rd1+8], 1; bra DONE;
LAST: ld.volatile.global.u32 %r4, [%rd1+8]; setp.eq.u32 %p5, %r4, 0; @%p5 bra LAST;
membar.gl; ld.global.u32 %r5, [%rd3]; DONE: mov.u32 %r6, 0"""
MANY_READS = f"""{OWN} bar.sync 0; mov.u32 %r6, 0; MORE: ld.shared.u32 %r4, [%r3]; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 600;
@%p1 bra MORE; xor.b32 %r7, %r3, 128; st.shared.u32 [%r7], %r4"""
RACES = {
    MANY_READS: ("shared memory", "write", "read"),
    SIGNAL.format(fence=NONE): ("shared memory", "read", "write"),
    f"{OWN} {NEXT}": ("shared memory", "read", "write"),
    f"{OWN} bar.sync 0; {NEXT}; st.shared.u32 [%r3], %r4": ("shared memory", "read", "write"),
    f"{OWN} {NEIGHBOUR}": ("shared memory", "read", "write"),
    f"{OWN} bar.sync 1, 64; st.shared.u32 [%r3], 0; {NEXT}": ("shared memory", "read", "write"),
    "st.shared.u32 [s], %r1": ("shared memory", "write", "write"),
    "st.global.u32 [%rd1], %r1": ("`x`[0x0]", "write", "write"),
    "atom.global.add.u32 %r3, [%rd1], 1; ld.global.u32 %r4, [%rd1]": ("`x`[0x0]", "atomic update", "read"),
    "mul.wide.u32 %rd4, %r2, 4; add.u64 %rd4, %rd1, %rd4; st.global.u32 [%rd4], 1; ld.global.u32 %r4, [%rd1+4]":
        ("`x`[0x4]", "read", "write"),
    PUBLISH.format(fence=NONE, store="st.volatile.global.u32", load="ld.volatile.global.u32", after="membar.gl"):
        ("`y`[0x0]", "read", "write"),
    PUBLISH.format(fence="membar.cta", store="st.global.u32", load="ld.volatile.global.u32", after="membar.gl"):
        ("", "read", "write"),
    LAST.format(fence=NONE): ("`y`", "read", "write"),
    LOCK.format(take=CAS, fence=NONE, after="membar.gl"): ("`y`[0x0]", "", ""),
    LOCK.format(take=CAS, fence="membar.cta", after="membar.gl"): ("`y`[0x0]", "", ""),
    LOCK.format(take=CAS, fence="membar.gl", after=NONE): ("`y`[0x0]", "", ""),
    LOCK.format(take=CAS, fence="membar.gl", after="membar.cta"): ("`y`[0x0]", "", ""),
    LOCK_IN_CTA.format(after=NONE): ("`y`", "", ""),
    PUBLISH.format(fence="membar.cta", store="st.volatile.global.u32", load="ld.volatile.global.u32", after="membar.gl"):
        ("`y`[0x0]", "read", "write"),
    PUBLISH.format(fence=NONE, store="st.release.cta.global.u32", load="ld.acquire.gpu.global.u32", after=NONE): ("`", "", ""),
    "atom.global.cta.add.u32 %r3, [%rd1], 1": ("`x`[0x0]", "atomic update", "atomic update"),
    "setp.eq.u32 %p1, %r2, 0; @%p1 atom.global.cta.add.u32 %r3, [%rd1], 1; @!%p1 atom.global.add.u32 %r3, [%rd1], 1":
        ("`x`[0x0]", "atomic update", "atomic update"),
    "setp.eq.u32 %p1, %r2, 0; @%p1 st.relaxed.cta.global.u32 [%rd1], 1; @!%p1 ld.volatile.global.u32 %r3, [%rd1]":
        ("`x`[0x0]", "", ""),
    f"{OWN} {REVERSED} ld.shared.u32 %r4, [%r5]": ("shared memory", "read", "write"),
    "shl.b32 %r3, %r1, 3; st.shared.v2.u32 [%r3], {%r1, %r2}; xor.b32 %r3, %r3, 256; ld.shared.u64 %rd4, [%r3]":
        ("shared memory at", "8-byte", "write"),
    f"{PAIR} setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%rd4], %r1; ld.global.u32 %r5, [%rd4]": ("`x`", "", "write"),
    "atom.shared.add.u32 %r3, [s], 1; bar.sync 0; atom.shared.add.u32 %r3, [s], 1; ld.shared.u32 %r4, [s]":
        ("shared memory at 0x0", "", "atomic update"),
    f"{OWN} bar.sync 0; atom.shared.add.u32 %r4, [%r3], 1; {NEXT}": ("shared memory", "read", "atomic update"),
    f"{OWN} bar.sync 0; {NEXT}; red.shared.add.u32 [%r3], 1": ("shared memory", "atomic update", "read"),
    f"{OWN} {REVERSED} bar.sync 0; atom.shared.add.u32 %r4, [%r5], 1; st.shared.u32 [%r3], 1": ("shared memory", "", "update"),
    f"{ONE} ld.shared.u32 %r4, [s]": ("shared memory at 0x0", "", "write"),
    f"{ONE} bar.sync 0; ld.shared.u32 %r4, [s]; {ONE}": ("shared memory at 0x0", "write", "read"),
    f"{WIDE} and.b32 %r5, %r3, 255; ld.shared.u64 %rd4, [%r5]": ("shared memory", "8-byte read", "write"),
    f"{OWN} bar.sync 0; {ROWS} ld.shared.u32 %r4, [%r3]; st.shared.u32 [s+16], 1": ("shared memory at 0x10", "", "write"),
    f"{OWN} bar.sync 0; {HALF} ld.shared.u32 %r4, [%r3]; st.shared.u32 [s+4], 1": ("shared memory at 0x4", "", "write"),
    f"{EVERYWHERE} bar.sync 0; {BLOCKS} @%p1 st.global.u32 [%rd4], %r2": ("`x`", "", ""),
    f"{PADDED} st.shared.u32 [%r3], %r1; ld.shared.u32 %r4, [%r3+136]": ("shared memory", "read", "write"),
    f"{PADDED} {LAST_OF_WARP} ld.shared.u32 %r4, [s+128]": ("shared memory at 0x80", "read", "write"),
    f"setp.eq.u32 %p1, %r1, 40; @%p1 st.shared.u32 [s+128], 7; {NINE} ld.shared.u32 %r6, [%r3]":
        ("shared memory at 0x80", "", "write"),
    f"{NINE} setp.eq.u32 %p1, %r2, 3; @%p1 st.global.u32 [%rd1+128], 7; ld.global.u32 %r6, [%rd4]": ("`x`[0x80]", "", "write"),
}  # fmt: skip
ORDERED = [
    f"{ONE} bar.sync 0; ld.shared.u32 %r4, [s]; bar.sync 0; {ONE}",
    f"{WIDE} ld.shared.u64 %rd4, [%r3]; and.b32 %r5, %r3, 255; bar.sync 0; ld.shared.u64 %rd4, [%r5]; bar.sync 0; {WIDE}",
    f"{OWN} bar.sync 0; {ROWS} ld.shared.u32 %r4, [%r3]; {HALF} ld.shared.u32 %r4, [%r3]; bar.sync 0; {OWN}",
    f"{EVERYWHERE} bar.sync 0; {EVERYWHERE}",
    f"{FOURS} ld.shared.u32 %r5, [%r3]; st.shared.u32 [%r3+16], %r5; ld.shared.u32 %r5, [s]",
    f"{PADDED} st.shared.u32 [%r3], %r1; bar.sync 0; ld.shared.u32 %r4, [%r3+136]; bar.sync 0; {LAST_OF_WARP}",
    f"{OWN} bar.sync 0; {NINE} {'ld.shared.u32 %r6, [%r3]; ld.global.u32 %r6, [%rd4];' * 2} bar.sync 0; st.shared.u32 [s], %r6",
    f"{OWN} bar.sync 0; {NEXT}; bar.sync 0; st.shared.u32 [%r3], %r4",
    f"{OWN} bar.warp.sync 0xffffffff; {NEIGHBOUR.replace('+4', '')}",
    f"{OWN} barrier.sync 3; {NEXT}",
    f"{OWN} bar.arrive 2, 128; bar.sync 2, 128; {NEXT}",
    f"{OWN} bar.red.popc.u32 %r5, 0, %p1; {NEXT}",
    "mov.u32 %r5, 7; st.global.u32 [%rd1], %r5; st.shared.u32 [s], %r5",
    "atom.global.add.u32 %r3, [%rd1], 1; red.global.add.u32 [%rd1], 1; atom.shared.add.u32 %r4, [s], 1",
    "ld.volatile.global.u32 %r3, [%rd1]; st.volatile.global.u32 [%rd1], %r1",
    PUBLISH.format(fence="membar.gl", store="st.volatile.global.u32", load="ld.volatile.global.u32", after="membar.gl"),
    PUBLISH.format(fence=NONE, store="st.release.gpu.global.u32", load="ld.acquire.gpu.global.u32", after=NONE),
    LAST.format(fence="membar.gl"),
    LOCK.format(take=CAS, fence="membar.gl", after="membar.gl"),
    LOCK.format(take="atom.acquire.gpu.global.cas", fence="membar.gl", after=NONE),
    SIGNAL.format(fence="membar.cta"),
    LOCK_IN_CTA.format(after="membar.cta"),
    LOCK.format(take=CAS, fence="membar.gl", after="bar.warp.sync 1"),
    f"{BLOCKS} atom.global.cta.add.u32 %r3, [%rd4], 1; red.global.cta.add.u32 [%rd4], 1",
    HANDED_ON,
    f"{OWN} bar.sync 0; shr.u32 %r4, %r1, 2; shl.b32 %r4, %r4, 2; {'atom.shared.add.u32 %r5, [%r4], 1; ' * 3} bar.sync 0; {NEXT}",
    f"{OWN} {REVERSED} bar.sync 0; {TWICE * 20}",
    f"{GENERIC} st.u32 [%rd4], %r1; bar.sync 0; ld.u32 %r4, [%rd4]; ld.u32 %r4, [%rd5]",
    f"{PAIR} ld.global.u32 %r5, [%rd4]; ld.global.v2.u32 {{%r5, %r6}}, [%rd1+8]",
    "shl.b32 %r3, %r1, 3; st.shared.v2.u32 [%r3], {%r1, %r2}; bar.sync 0; xor.b32 %r3, %r3, 256; ld.shared.u64 %rd4, [%r3]",
]  # fmt: skip


device = checked_device("race", workers=2)


def races(device: ptxemu.Device, body: str) -> list[Finding]:
    x, y = device.empty(64, np.uint32, "x"), device.empty(64, np.uint32, "y")
    text = program(body, SHARED).replace(";WAIT", ";\nWAIT")
    return found(device, text, x, y, grid=4, block=64)


@pytest.mark.parametrize("body", RACES)
def test_races(device: ptxemu.Device, body: str) -> None:
    """Either access may come second."""
    place, one, other = RACES[body]
    seen = races(device, body)
    assert seen
    for finding in seen:
        assert finding.check == "race" and place in finding.message
        assert one in finding.message and other in finding.message
        if finding.other is None:
            assert finding.message.endswith("a read by other threads of its warp")
        else:
            assert (finding.block, finding.thread) != (finding.other.block, finding.other.thread)


@pytest.mark.parametrize("body", ORDERED)
def test_no_races(device: ptxemu.Device, body: str) -> None:
    assert [str(finding) for finding in races(device, body)] == []


BYTE = "cvt.u32.u64 %r3, %rd2; shr.u32 %r3, %r3, 2; cvt.u16.u32 %h1, %r1; xor.b32 %r4, %r3, {other}; add.u64 %rd4, %rd1, {other};"
"""The address of each thread's byte, its number, and the address of the byte of another thread."""
PLACED = "cvt.u64.u32 %rd5, %r3; add.u64 %rd5, %rd1, %rd5; cvt.u64.u32 %rd6, %r4; add.u64 %rd6, %rd1, %rd6;"
NARROW = {
    "shared bytes": ("1", "st.shared.u8 [%r3], %h1;", "ld.shared.u8 %h2, [%r4];"),
    "global bytes": ("1", "st.global.u8 [%rd5], %h1;", "ld.global.u8 %h2, [%rd6];"),
    "of another word": ("7", "st.shared.u8 [%r3], %h1;", "ld.shared.u8 %h2, [%r4];"),
    "words of others": ("36", "st.shared.u8 [%r3], %h1;", "and.b32 %r4, %r4, 60; ld.shared.u32 %r5, [%r4];"),
}  # fmt: skip


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("shift", [0, 1, 4])
def test_rows_that_are_written_again_further_on(device: ptxemu.Device, size: int, space: str, shift: int) -> None:
    """Lanes fill words together, both times or the first time; who comes to the place of another thread races with it."""
    x = device.to_device(np.zeros(64, np.uint32), "x")
    place = f"mul.lo.u32 %r3, %r1, {size}; cvt.u64.u32 %rd5, %r3; add.u64 %rd5, %rd1, %rd5; cvt.u16.u32 %h1, %r1;"
    base = "%r3" if space == "shared" else "%rd5"
    row = f"st.{space}.u{8 * size} [{base}], %h1;"
    again = f"st.{space}.u{8 * size} [{base}+{shift * size}], %h1;"
    seen = found(device, program(f"{place} {row} {again}", SHARED), x, 0, block=64)
    assert sum(one.count for one in seen) == (64 - shift if shift else 0)
    assert all("write" in one.message and f"{size}-byte" in one.message for one in seen)
    seen = found(device, program(f"{place} {row} bar.sync 0; {again} bar.sync 0; {row}", SHARED), x, 0, block=64)
    assert [str(one) for one in seen] == []


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("reads_first", [False, True])
def test_bytes_of_one_word(device: ptxemu.Device, name: str, reads_first: bool) -> None:
    """Each thread has one of its own, and looks at that of another one: all of them are told, none behind a barrier."""
    other, write, read = NARROW[name]
    x = device.to_device(np.zeros(64, np.uint32), "x")
    first, then = (read, write) if reads_first else (write, read)
    start = f"{BYTE.format(other=other)} {PLACED}"
    seen = found(device, program(f"{start} {first} {then}", SHARED), x, 0, block=64)
    assert seen and sum(one.count for one in seen if one.message.startswith(("1-byte", "4-byte"))) >= 64
    rounds = f"{first} bar.sync 0; {then} bar.sync 0;" * 3
    assert [str(one) for one in found(device, program(f"{start} {rounds}", SHARED), x, 0, block=64)] == []
    own = read.replace("%r4", "%r3").replace("%rd6", "%rd5")
    assert bool(found(device, program(f"{start} {write} {own}", SHARED), x, 0)) == (name == "words of others")


@pytest.mark.parametrize("address", [1 << 63, (1 << 63) + 8, (1 << 64) - 4, 508, 512, 1 << 32])
def test_atomics_beyond_shared_memory(device: ptxemu.Device, address: int) -> None:
    """They are faults, and no stamps are left for them."""
    body = f"add.u64 %rd4, %rd2, {address}; bar.sync 0; atom.shared.add.u32 %r3, [%rd4], 1"
    with pytest.raises(ptxemu.Fault):
        found(device, program(body, SHARED), 0, 0)


ATOMIC = "setp.eq.u32 %p1, %r1, {writer}; @%p1 st.{space}.u32 [{at}], 5; {atom}.{space}.add.u32 {to}[{at}], 1"


@pytest.mark.parametrize("writer", [0, 40])
@pytest.mark.parametrize(("atom", "to"), [("atom", "%r5, "), ("red", "")])
@pytest.mark.parametrize(("space", "at"), [("shared", "s"), ("global", "%rd1")])
def test_writes_before_atomics_of_all(device: ptxemu.Device, writer: int, atom: str, to: str, space: str, at: str) -> None:
    """An atomic operation of the thread itself does not hide what it has written before."""
    x = device.to_device(np.zeros(64, np.uint32), "x")
    body = ATOMIC.format(writer=writer, space=space, at=at, atom=atom, to=to)
    seen = found(device, program(body, SHARED), x, 0, block=64)
    assert seen and {one.thread[0] for one in seen} | {one.other.thread[0] for one in seen if one.other} >= {writer}
    ordered = body.replace("; atom", "; bar.sync 0; atom").replace("; red", "; bar.sync 0; red")
    assert found(device, program(ordered, SHARED), x, 0, block=64) == []


READS_OF_OTHERS = f"""{OWN} bar.sync 0; ld.shared.u32 %r4, [s]; ld.shared.v2.u32 {{%r5, %r6}}, [s+64]; {NEXT};
and.b32 %r7, %r1, 3; setp.eq.u32 %p1, %r7, 1; @%p1 ld.shared.u32 %r7, [%r3]; xor.b32 %r8, %r3, 128; st.shared.u32 [%r8], %r4"""


@pytest.mark.parametrize("body", [READS_OF_OTHERS, MANY_READS, f"{OWN} {NEXT}"])
def test_races_in_threaded_code(device: ptxemu.Device, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Its routines make the description of a pattern anew each time."""
    threaded(monkeypatch)
    arrays = device.empty(4, name="x"), device.empty(4, name="y")
    assert device.checks is not None
    device.checks.clear()
    ptxemu.loads(program(body, SHARED), device=device, tier="fast")["k"][1, 64](*arrays)
    findings = device.checks.findings
    assert findings
    for one in findings:
        kind = "read" if "ld.shared" in one.lines[-1].text else "write"
        assert re.match(rf"\d-byte {kind} of .*in no order with a (read|write)", one.message.replace(" to shared", " of shared"))


STORES, UPDATES, LOADS = "st.{}.u32 [{}], 1;", "red.{}.add.u32 [{}], 1;", "ld.{}.u32 %r5, [{}];"
ONE_AFTER_ANOTHER = """mov.u32 %r4, s; setp.ne.u32 %p1, %r1, 0; @%p1 bra REST; {}
REST: setp.ne.u32 %p2, %r1, 32; @%p2 bra DONE; {} DONE: mov.u32 %r6, 0"""


@pytest.mark.parametrize(("first", "second"), [(STORES, UPDATES), (LOADS, STORES)])
@pytest.mark.parametrize(("space", "at"), [("shared", "%r4"), ("global", "%rd1")])
def test_instructions_of_one_form(
    device: ptxemu.Device, monkeypatch: pytest.MonkeyPatch, space: str, at: str, first: str, second: str
) -> None:
    """Threaded code has one routine for them; they are told apart."""
    threaded(monkeypatch)
    places = [f"{at}+{8 * number}" for number in range(3)]
    done = ("".join(text.format(space, place) for place in places) for text in (first, second))
    text = program(ONE_AFTER_ANOTHER.format(*done), SHARED)
    assert device.checks is not None
    device.checks.clear()
    x = device.to_device(np.zeros(8, np.uint32), "x")
    ptxemu.loads(text, filename="test.ptx", device=device, tier="fast")["k"][1, 64](x, 0)
    texts = [(one.other.lines[-1].text, one.lines[-1].text) for one in device.checks.findings if one.other]
    assert texts == [(first.format(space, place), second.format(space, place)) for place in places]


def test_report(device: ptxemu.Device) -> None:
    assert [str(finding) for finding in races(device, f"{OWN} bar.sync 0; {NEXT}; bar.sync 0; st.shared.u32 [s+4], %r1")] == [
        "race: 4-byte write of 0x1 to shared memory at 0x4, in no order with a write of 0x0\n"
        "  test.ptx:17: st.shared.u32 [s+4], %r1;\n"
        "  in `k`: block (0,0,0), thread (1,0,0); 252 times\n"
        "  test.ptx:17: st.shared.u32 [s+4], %r1;\n"
        "  by block (0,0,0), thread (0,0,0)"
    ]


VALUES = {
    f"{OWN} mov.u32 %r5, 9; xor.b32 %r3, %r3, 4; st.shared.u32 [%r3], %r5":
        "4-byte write of 0x9 to shared memory at 0x4, in no order with a write of 0x1",
    f"{OWN} ld.shared.u32 %r4, [s+4]": "4-byte read of shared memory at 0x4, in no order with a write of 0x1",
    "cvt.u16.u32 %h1, %r1; st.shared.u8 [s], %h1": "1-byte write of 0x1 to shared memory at 0x0, in no order with a write of 0x0",
    f"{OWN} st.shared.u8 [s+5], 7": "1-byte write of 0x7 to shared memory at 0x5, in no order with a write of 0x0",
    f"ld.shared.u32 %r4, [s+4]; {OWN}": "4-byte write of 0x1 to shared memory at 0x4, in no order with a read",
    "atom.shared.add.u32 %r3, [s], 1; st.shared.u32 [s], 5":
        "4-byte atomic update of shared memory at 0x0, in no order with a write of 0x5",
}  # fmt: skip


@pytest.mark.parametrize("body", VALUES)
def test_values_of_both(device: ptxemu.Device, body: str) -> None:
    assert VALUES[body] in [finding.message for finding in races(device, body)]


SAME = {
    "st.shared.u32 [s], 7": "4-byte write of 0x7 to shared memory at 0x0",
    "st.global.u32 [%rd1], 7": "4-byte write of 0x7 to `x`[0x0]",
    "setp.eq.u32 %p1, %r1, 40; st.shared.u32 [s], 7; bar.sync 0":
        "4-byte write of 0x7 to shared memory at 0x0",
}  # fmt: skip


@pytest.mark.parametrize("body", SAME)
def test_writes_of_the_same_value(device: ptxemu.Device, body: str) -> None:
    """They are told, and are no findings."""
    assert races(device, body) == []
    assert device.checks is not None and device.checks.summary.endswith(": nothing found, 1 note")
    (note,) = device.checks.notes
    assert note.message == f"{SAME[body]}, in no order with a write of the same value"
    assert str(note).startswith("race note: ") and device.checks.to_json()["notes"] == [note.to_json()]


ROW = "shr.u32 %r5, %r1, 4; and.b32 %r6, %r1, 15; shl.b32 %r6, %r6, 2;"  # of 16 threads
OF_ROWS = (
    f"ld.global.u32 %r4, [%rd3]; {ROW} mad.lo.u32 %r3, %r5, %r4, %r6; add.u64 %rd4, %rd1, 0; cvt.u64.u32 %rd5, %r3;"
    "add.u64 %rd4, %rd4, %rd5; bar.sync 0; ld.shared.u32 %r7, [s+508]; {access}"
)
"""Rows as far apart as the launch says."""


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(("distance", "others"), {64: {}, 0: {16: 0, 31: 15}, 32: {16: 8, 23: 15}, 60: {16: 15}, 68: {}}.items())
def test_writes_of_rows(space: str, distance: int, others: dict[int, int]) -> None:
    with ptxemu.Device(memory="64 MiB", check="race", workers=1) as device:
        y = device.to_device(np.array([distance], np.uint32), "y")
        address = "%r3" if space == "shared" else "%rd4"
        text = program(OF_ROWS.format(access=f"st.{space}.u32 [{address}], %r1; bar.sync 0;" * 2), SHARED)
        seen = found(device, text, device.empty(64, np.uint32, "x"), y)
        assert len(seen) == (2 if others else 0)
        for finding in seen:
            assert finding.thread == (min(others), 0, 0) and finding.other is not None
            assert finding.other.thread == (others[min(others)], 0, 0) and finding.count == max(others) - min(others) + 1


SPREAD = """add.u32 %r3, %r1, %r1; and.b32 %r4, %r1, {low}; sub.u32 %r3, %r3, %r4; shl.b32 %r3, %r3, 2;
and.b32 %r5, %r1, {writers}; setp.eq.u32 %p1, %r5, 0; and.b32 %r6, %r1, {readers}; setp.eq.u32 %p2, %r6, 0;"""
"""Words in groups of some, with as many between them; who writes his, and who reads that of the same lane of the other warp."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize(("writers", "readers"), [(0, 0), (1, 0), (0, 2), (6, 3), (32, 0), (0, 32), (63, 0), (33, 31)])
def test_words_of_some_lanes(device: ptxemu.Device, width: int, writers: int, readers: int) -> None:
    """Each lane that does race is counted, and no other, whoever else has words between theirs."""
    write, read = "@%p1 st.shared.u32 [%r3], %r1;", "xor.b32 %r3, %r3, 256; @%p2 ld.shared.u32 %r7, [%r3];"
    spread = SPREAD.format(low=width - 1, writers=writers, readers=readers)
    pairs = {
        "write": sum(not (t & writers or (t ^ 32) & readers) for t in range(32, 64)),
        "read": sum(not ((t ^ 32) & writers or t & readers) for t in range(32, 64)),
    }
    seen = found(device, program(spread + write + read, SHARED), 0, 0, block=64)
    counts = {kind: sum(one.count for one in seen if one.message.startswith(f"4-byte {kind}")) for kind in pairs}
    assert counts == pairs
    assert found(device, program(f"{spread}{write} bar.sync 0; {read} bar.sync 0; {write}", SHARED), 0, 0, block=64) == []


def test_parts_of_a_warp_with_elements_of_two_sizes() -> None:
    """Stamps and elements are stored with masks, by the same functions of LLVM."""
    x, out = np.arange(70.0), np.zeros(70)
    with ptxemu.Device(memory="64 MiB", check="race") as device:
        ptxemu.load("tests/data/corpus/dyn_shared.ptx", device=device)["rev"][1, 70](x, out, 50, shared=12 * 70)
        assert device.checks is not None and device.checks.findings == []
    np.testing.assert_array_equal(out, np.where(x < 50, x, 0)[::-1])


ALONE = "setp.eq.u32 %p1, %r1, {}; setp.lt.u32 %p2, %r1, 17;"
PAIRED = "shr.u32 %r3, %r1, 1; shl.b32 %r3, %r3, 2; cvt.u64.u32 %rd4, %r3; add.u64 %rd4, %rd1, %rd4;"


@pytest.mark.parametrize("writer", [0, 5, 16])
@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("st.shared.u32 [s], 3", "ld.shared.u32 %r4, [s]"),
        ("st.shared.u32 [s], 3", "@%p2 ld.shared.u32 %r4, [s]"),
        ("st.shared.u32 [s+8], 3", "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [s]"),
        ("st.global.u32 [%rd1], 3", "ld.global.u32 %r4, [%rd1]"),
        (f"{PAIRED} st.shared.u32 [%r3], 3", "ld.shared.u32 %r4, [%r3]"),
        (f"{PAIRED} st.global.u32 [%rd4], 3", "ld.global.u32 %r4, [%rd4]"),
    ],
)
def test_a_lane_writes_what_others_of_its_warp_read(device: ptxemu.Device, writer: int, write: str, read: str) -> None:
    """They may be behind or before it, but for bar.warp.sync; the lane itself is not."""
    *places, write = write.rpartition(";")
    for between, expected in (("", 1), ("bar.warp.sync 0xffffffff;", 0)):
        x = device.empty(64, np.uint32, "x")
        body = f"{ALONE.format(writer)} {''.join(places)} @%p1 {write}; {between} {read}"
        findings = found(device, program(body, SHARED), x, x)
        assert ["read of" in finding.message for finding in findings] == [True] * expected
        assert all(finding.thread[0] != writer == finding.other.thread[0] for finding in findings if finding.other)
        alone = body.replace("@%p2", "").replace(read.rpartition("@%p2 ")[2], f"@%p1 {read.rpartition('@%p2 ')[2]}")
        assert found(device, program(alone, SHARED), x, x) == []


ARRIVE = "mbarrier.arrive.shared.b64 _, [bar]"
ARRIVE_RELAXED = "mbarrier.arrive.relaxed.cta.shared.b64 _, [bar]"
STORE, SUM = "st.shared.u32 [s+4], 1", "red.shared.add.u32 [s+4], 1"
FLAG = "st.volatile.shared.u32 [s+8], 1"


@pytest.mark.parametrize(
    ("done", "found_out", "expected"),
    [
        (f"{STORE}; {ARRIVE}", "", 0),
        (f"{SUM}; {ARRIVE}", "", 0),
        (f"{ARRIVE}; {STORE}", "", 1),
        (f"{ARRIVE}; {SUM}", "", 1),
        (f"{STORE}; {ARRIVE_RELAXED}", "", 1),
        (f"{STORE}; membar.cta; {ARRIVE_RELAXED}", "", 0),
        (f"{ARRIVE_RELAXED}; mbarrier.expect_tx.shared.b64 [bar], 0; {STORE}", "", 1),
        (f"{STORE}; membar.cta; {FLAG}; {ARRIVE_RELAXED}", "ld.volatile.shared.u32 %r5, [s+8]; membar.cta", 0),
        (f"membar.cta; {FLAG}; {SUM}; {ARRIVE_RELAXED}", "", 0),
        (f"membar.cta; {FLAG}; {ARRIVE_RELAXED}; {SUM}", "ld.volatile.shared.u32 %r5, [s+8]; membar.cta", 1),
    ],
)
def test_what_the_first_warp_does_before_it_arrives(device: ptxemu.Device, done: str, found_out: str, expected: int) -> None:
    """The second one waits for it, and reads. Each strong write behind a fence is released at a time of its own."""
    body = f"""
    setp.ne.u32 %p3, %r1, 0; @%p3 bra START; mbarrier.init.shared.b64 [bar], 32; START: bar.sync 0;
    setp.gt.u32 %p1, %r1, 31; @%p1 bra SECOND; {done}; bra END;
    SECOND: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra SECOND; {found_out}; ld.shared.u32 %r4, [s+4];
    END: mov.u32 %r8, 0
    """
    text = program(body, ".shared .b32 s[4]; .shared .align 8 .b64 bar;").replace("sm_80", "sm_90")
    x = device.empty(64, np.uint32, "x")
    findings = found(device, text, x, x, block=64)
    assert ["4-byte read of shared memory at" in finding.message for finding in findings] == [True] * expected


@pytest.mark.parametrize("leaves", [0, 1])
def test_warps_that_have_exited_are_in_no_order(device: ptxemu.Device, leaves: int) -> None:
    """They do not come to the barrier of the others, of which those that do come are."""
    body = (
        f"{OWN} shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r5, {leaves}; @%p1 exit; bar.sync 0; ld.shared.u32 %r6, [s+{leaves * 128}]"
    )
    (finding,) = found(device, program(body, SHARED), 0, 0, block=96)
    assert finding.count == 64 and finding.other is not None and finding.other.thread == (32 * leaves, 0, 0)
    stays = body.replace(f"[s+{leaves * 128}]", f"[s+{128 - leaves * 128}]")
    assert found(device, program(stays, SHARED), 0, 0, block=96) == []


SCATTER = """setp.ge.u32 %p1, %r1, {lanes}; @%p1 bra DONE; add.u64 %rd4, %rd1, %rd2; ld.global.u32 %r3, [%rd4];
mul.wide.u32 %rd5, %r3, 4; add.u64 %rd5, %rd3, %rd5; st.global.u32 [%rd5], %r1; DONE: mov.u32 %r4, 0"""


@pytest.mark.parametrize("lanes", [1, 4, 12, 13, 32])
def test_some_lanes_anywhere(device: ptxemu.Device, lanes: int) -> None:
    """Each writes a word of its own, and then one of them that of another."""
    order, y = np.random.default_rng(lanes).permutation(64).astype(np.uint32)[:32], device.empty(64, np.uint32, "y")
    text = program(SCATTER.format(lanes=lanes))
    assert found(device, text, device.to_device(order, "x"), y) == []
    order[3] = order[1]
    seen = found(device, text, device.to_device(order, "x"), y)
    assert len(seen) == (lanes > 3)
    for finding in seen:
        assert f"`y`[{4 * order[1]:#x}]" in finding.message and finding.count == 1
        assert finding.other is not None and (finding.thread[0], finding.other.thread[0]) == (3, 1)


def test_barriers_of_the_block_before_are_forgotten(device: ptxemu.Device) -> None:
    """Of its warps some come to a barrier more often than others."""
    uneven = "shr.u32 %r5, %r1, 5; setp.eq.u32 %p1, %r5, 1; bar.sync 3; @%p1 exit; bar.sync 3; bar.sync 3"
    for block in [96, 64, 32, 96]:
        assert found(device, program(uneven, SHARED), 0, 0, grid=4, block=block) == []
        assert found(device, program(f"{OWN} bar.sync 3; {NEXT}", SHARED), 0, 0, grid=4, block=block) == []
        assert bool(found(device, program(f"{OWN} {NEXT}", SHARED), 0, 0, grid=4, block=block)) == (block > 32)


@pytest.mark.parametrize("distance", [64, 0, 4])
def test_reads_of_rows(device: ptxemu.Device, distance: int) -> None:
    y = device.to_device(np.array([distance], np.uint32), "y")
    text = program(OF_ROWS.format(access=f"{OWN} bar.sync 0; mad.lo.u32 %r3, %r5, %r4, %r6; ld.shared.u32 %r7, [%r3]"), SHARED)
    assert found(device, text, device.empty(64, np.uint32, "x"), y) == []
    late = program(OF_ROWS.format(access=f"{OWN} mad.lo.u32 %r3, %r5, %r4, %r6; ld.shared.u32 %r7, [%r3]"), SHARED)
    assert bool(found(device, late, device.empty(64, np.uint32, "x"), y)) == (distance != 64)


def test_launches_are_in_an_order(device: ptxemu.Device) -> None:
    x = device.empty(64, np.uint32, "x")
    assert device.checks is not None
    device.checks.clear()
    module = ptxemu.loads(
        program("add.u64 %rd4, %rd1, %rd2; ld.global.u32 %r4, [%rd4]; st.global.u32 [%rd4], %r4"), device=device, opt=0
    )
    for block in (64, 32, 64):
        module["k"][1, block](x, 0)
    assert device.checks.findings == []


def test_memory_for_it_is_bounded() -> None:
    """What the checker keeps counts as memory of the device; what it has no room for is told."""
    with ptxemu.Device(memory="2 MiB", check="race") as device:
        x = device.empty(400_000, np.uint32, "x")
        text = program("mov.u32 %r3, %ntid.x; mad.lo.u32 %r3, %r2, %r3, %r1; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4;"
                       " st.global.u32 [%rd4], 1")  # fmt: skip
        assert found(device, text, x, 0, grid=100, block=512) == []
        assert device.checks is not None and "no memory to check" in device.checks.summary


MALLOC = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc (.param .b64 n);
.visible .entry k() {
  { .param .b64 n; .param .b64 r; st.param.b64 [n], 4194304; call (r), malloc, (n); }
  ret;
}
"""


def test_nothing_is_kept_of_what_malloc_gives() -> None:
    """Until somebody touches it: a block of a kernel begins with words of which nothing is known."""
    with ptxemu.Device("64 MiB", check="race") as device:
        kernel = ptxemu.loads(MALLOC, device=device)["k"]
        kernel[1, 1]()
        first = device.used
        kernel[1, 1]()
        assert device.used - first < 1 << 20 and first < 16 << 20


def test_accesses_of_such_words_share_the_code_that_looks_at_them() -> None:
    """Of 46 steps of a network, with three or four accesses each."""
    module = compile.front(Path("bench/kernels/bitonic.ptx").read_text(), "bitonic.ptx")
    text = compile.emit(module, "bitonic", Options(cpu="x86-64-v3", observed="stamps"), "llvm")
    assert isinstance(text, str)
    assert text.count("call i1 @stamps.") > 150 and text.count("define internal i1 @stamps.") < 20


def test_functions_that_look_at_stamps_leave_the_kernel_its_lines(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM would leave out those of the whole kernel, and say so."""
    module = compile.front(program(f"{OWN} bar.sync 0; {NEXT};", SHARED), "test.ptx")
    text = compile.emit(module, "k", Options(observed="stamps", lines=True), "llvm")
    assert isinstance(text, str)
    assert "@stamps." in text and "!DISubprogram(" in text and not capfd.readouterr().err
