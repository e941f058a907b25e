"""The checker ``race`` at strong reads that have no fence behind them: what they alone put in an order is a note."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.checkers.findings import Finding
from tests.checkers.planted import found, program

SHARED = ".shared .align 8 .b8 s[512];\n"
PLACES = {"shared": ("shr.u32 %r3, %r1, 5;", "s", 1, 64), "global": ("mov.u32 %r3, %r2;", "%rd1", 2, 32)}
"""The role of a warp, which is one of a block, or alone in its own; a base; grid and block."""
HANDED = """{role} {zero} and.b32 %r4, %r1, 31; setp.ne.u32 %p1, %r4, 0; @%p1 bra DONE; setp.ne.u32 %p2, %r3, 0; @%p2 bra SECOND;
{first} fence.acq_rel.gpu; st.relaxed.gpu.{space}.u32 [{at}+4], 1; bra DONE;
SECOND: {poll} setp.eq.u32 %p3, %r5, 0; @%p3 bra SECOND; {behind} {then} DONE: mov.u32 %r8, 0"""
"""The first touches a word and sets a flag; the second waits for that, and touches the word."""
ZERO = "setp.eq.u32 %p4, %r1, 0; @%p4 st.shared.u32 [s+4], 0; bar.sync 0;"
RELAXED = "ld.relaxed.gpu.{space}.u32 %r5, [{at}+4];"
POLLS = {
    "relaxed": RELAXED,
    "volatile": "ld.volatile.{space}.u32 %r5, [{at}+4];",
    "update": "atom.{space}.or.b32 %r5, [{at}+4], 0;",
}
WRITE, READ = "st.{space}.u32 [{at}], 7;", "ld.{space}.u32 %r6, [{at}];"
BEHIND = [
    "fence.acq_rel.gpu;",
    "membar.sys;",
    "bar.warp.sync 1;",
    "ld.acquire.gpu.{space}.u32 %r5, [{at}+4];",
]


def told(space: str, workers: int = 1, **given: str) -> list[Finding]:
    """The notes of a launch, which has no findings."""
    role, at, grid, block = PLACES[space]
    usual = {"first": WRITE, "poll": RELAXED, "behind": "", "then": READ}
    parts = {name: text.format(space=space, at=at) for name, text in {**usual, **given}.items()}
    body = HANDED.format(role=role, zero=ZERO if space == "shared" else "", space=space, at=at, **parts)
    text = program(body, SHARED).replace(";SECOND", ";\nSECOND").replace(".target sm_80", ".target sm_90")
    with ptxemu.Device(memory="64 MiB", check="race", workers=workers) as device:
        assert device.checks is not None
        x = device.to_device(np.zeros(8, np.uint32), "x")
        assert [str(one) for one in found(device, text, x, 0, grid=grid, block=block)] == []
        return device.checks.notes


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("poll", POLLS)
@pytest.mark.parametrize("space", PLACES)
def test_reads_without_a_fence(space: str, poll: str, workers: int) -> None:
    (note,) = told(space, workers, poll=POLLS[poll])
    assert note.message.startswith("4-byte read of ")
    assert note.message.endswith(", behind a write by a strong read that lacks a fence")
    assert note.other is not None and note.other.lines[-1].text.startswith("st.")


@pytest.mark.parametrize(("first", "then", "before"), [(READ, WRITE, "a read"), (WRITE, WRITE, "a write")])
@pytest.mark.parametrize("space", PLACES)
def test_writes_without_a_fence(space: str, first: str, then: str, before: str) -> None:
    (note,) = told(space, first=first, then=then)
    assert note.message.startswith("4-byte write of ") and f", behind {before} by a strong read" in note.message


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("space", PLACES)
def test_what_makes_it_sure(space: str, behind: str) -> None:
    assert told(space, behind=behind) == []


@pytest.mark.parametrize("space", PLACES)
def test_what_acquires_by_itself(space: str) -> None:
    assert told(space, poll="ld.acquire.gpu.{space}.u32 %r5, [{at}+4];") == []
    assert told(space, poll="atom.acquire.gpu.{space}.or.b32 %r5, [{at}+4], 0;") == []
    assert told(space, then="") == []


@pytest.mark.parametrize(("space", "notes"), [("shared", 0), ("global", 1)])
def test_a_fence_for_the_block_alone(space: str, notes: int) -> None:
    """It does for what the block has released."""
    assert len(told(space, behind="fence.acq_rel.cta;")) == notes


@pytest.mark.parametrize("space", PLACES)
def test_a_second_read_does_not_make_it_sure(space: str) -> None:
    assert len(told(space, behind=POLLS["volatile"])) == 1


@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"])
def test_barriers_serve_as_fences(barrier: str) -> None:
    """One thread waits, and all go on."""
    body = f"""setp.ne.u32 %p1, %r2, 0; setp.ne.u32 %p2, %r1, 0; @%p1 bra SECOND; @%p2 bra DONE;
    st.global.u32 [%rd1], 7; fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1+4], 1; bra DONE; SECOND: @%p2 bra MEET;
    POLL: ld.relaxed.gpu.global.u32 %r5, [%rd1+4]; setp.eq.u32 %p3, %r5, 0; @%p3 bra POLL;
    MEET: {barrier} ld.global.u32 %r6, [%rd1]; DONE: mov.u32 %r8, 0"""
    text = program(body).replace(".target sm_80", ".target sm_90")
    with ptxemu.Device(memory="64 MiB", check="race", workers=1) as device:
        assert device.checks is not None
        found(device, text, device.to_device(np.zeros(8, np.uint32), "x"), 0, grid=2, block=64)
        assert device.checks.notes == []
