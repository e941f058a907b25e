"""The checker ``sync`` at asynchronous copies that nobody has waited for: what ``race`` finds, and nothing else."""

from __future__ import annotations

import pytest

import ptxemu
from tests.checkers.planted import checked_device
from tests.checkers.test_copies import COPY, ORDERED, OTHERS, PLACES, TWO, UNDER_WAY
from tests.checkers.test_copies import messages as of_grid

IN_SHARED = {body: said.replace(" of 0x9 to", " of") for body, said in UNDER_WAY.items() if "`x`" not in said}

device = checked_device("sync", workers=2)
careful = checked_device("memory,sync", workers=2)


def messages(device: ptxemu.Device, body: str, grid: int = 1) -> list[str]:
    return of_grid(device, body, grid)


@pytest.mark.parametrize("body", IN_SHARED)
def test_copies_that_nobody_has_waited_for(device: ptxemu.Device, body: str) -> None:
    (said,) = messages(device, body)
    assert said.startswith("sync: ") and IN_SHARED[body] in said
    assert "cp.async" in said.splitlines()[3]


@pytest.mark.parametrize("body", ORDERED)
@pytest.mark.parametrize("grid", [1, 5])
def test_copies_that_are_complete(device: ptxemu.Device, body: str, grid: int) -> None:
    assert messages(device, body, grid) == []


ROUNDS = """mov.u32 %r9, 0; mov.u32 %r10, 0; {places} cp.async.ca.shared.global [%r3], [%rd4], 4; cp.async.commit_group;
AGAIN: xor.b32 %r10, %r10, 256; add.u32 %r11, %r3, %r10; cp.async.ca.shared.global [%r11], [%rd4], 4; cp.async.commit_group;
cp.async.wait_group {but}; bar.sync 0; sub.u32 %r12, %r5, %r10; add.u32 %r12, %r12, 256; ld.shared.u32 %r6, [%r12]; bar.sync 0;
add.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 9; @%p6 bra AGAIN"""
"""Two buffers in turn, one of which is filled while others read the other one."""


@pytest.mark.parametrize(("but", "any_found"), [(0, False), (1, False), (2, True)])
def test_buffers_in_turn(device: ptxemu.Device, but: int, any_found: bool) -> None:
    body = ROUNDS.format(places=PLACES + "xor.b32 %r5, %r3, 128;", but=but)
    assert bool(messages(device, body, 3)) == any_found


def test_with_bounds(careful: ptxemu.Device) -> None:
    """Both checkers look at the same accesses."""
    copied, beyond = f"{COPY} bar.sync 0; {OTHERS}", "ld.shared.u32 %r6, [%r3+4096];"
    assert [said.split(":")[0] for said in messages(careful, f"{copied} {beyond}")] == ["sync", "memory"]
    assert messages(careful, f"{COPY} cp.async.wait_all; bar.sync 0; {OTHERS}") == []
    assert [said.split(":")[0] for said in messages(careful, f"cvt.u32.u64 %r3, %rd2; {beyond}")] == ["memory"]


def test_blocks_before_and_beside(device: ptxemu.Device) -> None:
    """A block ends with copies under way; those of others are none of its own."""
    assert messages(device, f"{PLACES} ld.shared.u32 %r4, [%r3]; bar.sync 0; {TWO}", 40) == []


def test_report(device: ptxemu.Device) -> None:
    assert messages(device, f"{COPY} bar.sync 0; {OTHERS}") == [
        "sync: 4-byte read of shared memory at 0x80, which a copy is writing that nobody has waited for\n"
        "  test.ptx:18: ld.shared.u32 %r4, [%r5];\n"
        "  in `k`: block (0,0,0), thread (0,0,0); 64 times\n"
        "  test.ptx:15: cp.async.ca.shared.global [%r3], [%rd4], 4;\n"
        "  by block (0,0,0), thread (32,0,0)"
    ]
