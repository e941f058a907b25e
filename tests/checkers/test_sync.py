"""The checker ``sync``: barriers that not all lanes of a warp come to, and wrong membermasks."""

from __future__ import annotations

import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, messages, program

PLANTED = {
    "setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0": "barrier 0: 16 of the 32 threads of warp 0 do not come to it with the others",
    "setp.lt.u32 %p1, %r1, 35; @!%p1 bra END; bar.sync 0; END: mov.u32 %r4, 0":
        "barrier 0: 29 of the 32 threads of warp 1 do not come to it with the others",
    "setp.gt.u32 %p1, %r1, 60; @%p1 ret; bar.sync 0": "barrier 0: 3 of the 32 threads of warp 1 have exited before it",
}  # fmt: skip
CLEAN = [
    "bar.sync 0; barrier.sync 1; bar.arrive 2, 128; bar.sync 2, 128",
    "setp.lt.u32 %p1, %r1, 32; @!%p1 bra END; bar.sync 1, 32; END: bar.sync 0",
    "setp.gt.u32 %p1, %r1, 31; @%p1 ret; bar.sync 0",
]


device = checked_device("sync")


@pytest.mark.parametrize("body", PLANTED)
def test_planted(device: ptxemu.Device, body: str) -> None:
    assert [finding.message for finding in found(device, program(body), 0, 0, block=64)] == [PLANTED[body]]


@pytest.mark.parametrize("body", CLEAN)
def test_clean(device: ptxemu.Device, body: str) -> None:
    assert found(device, program(body), 0, 0, block=64) == []


HALVES = "setp.lt.u32 %p1, %r1, 16; selp.b32 %r3, 65535, {others}, %p1;"
MEETINGS = [
    "shfl.sync.idx.b32 %r4, %r1, 0, 31, {};", "vote.sync.any.pred %p2, %p1, {};", "match.any.sync.b32 %r4, %r1, {};",
    "redux.sync.add.u32 %r4, %r1, {};", "elect.sync %r4|%p2, {};", "bar.warp.sync {};",
]  # fmt: skip


def each(members: str) -> str:
    return "".join(text.format(members) for text in MEETINGS)


def test_lanes_that_are_not_members(device: ptxemu.Device) -> None:
    """One finding for each instruction, at its line."""
    told = messages(found(device, program(each("65535")), 0, 0))
    wrong = "membermask 0x0000ffff of lane 16 does not name the lane itself"
    assert told == [f"{wrong} | {text.format('65535')} | 0.16 16x" for text in MEETINGS]


def test_membermasks_that_differ(device: ptxemu.Device) -> None:
    told = messages(found(device, program(HALVES.format(others="-1") + each("%r3")), 0, 0))
    wrong = "membermask 0xffffffff of lane 16 names lane 0, whose membermask is 0x0000ffff"
    assert told == [f"{wrong} | {text.format('%r3')} | 0.16 16x" for text in MEETINGS]


GOES = "membermask {mask} of lane {waits} names lane {lane}, which does not come, but to {where}"
HALF = "setp.lt.u32 %p1, %r1, 16; @!%p1 bra ELSE;"
PAIR = "xor.b32 %r5, %r1, 1; shl.b32 %r6, 1, %r1; shl.b32 %r7, 1, %r5; or.b32 %r3, %r6, %r7;"  # of each two lanes
ELSEWHERE = {
    f"{HALF} shfl.sync.idx.b32 %r4, %r1, 0, 31, -1; ELSE: bar.sync 0":
        {GOES.format(mask="0xffffffff", waits=0, lane=16, where="barrier 0")},
    f"{HALF} vote.sync.any.pred %p2, %p1, -1; bra END; ELSE: vote.sync.any.pred %p2, %p1, 0xffff8000; END: bar.sync 0": {
        GOES.format(mask="0xffffffff", waits=0, lane=16, where="membermask 0xffff8000"),
        GOES.format(mask="0xffff8000", waits=16, lane=15, where="membermask 0xffffffff"),
    },
    f"{HALF} vote.sync.any.pred %p2, %p1, 0x1ffff; bra END; ELSE: redux.sync.add.u32 %r4, %r1, 0xffff8000; END: mov.u32 %r5, 0": {
        GOES.format(mask="0x0001ffff", waits=0, lane=16, where="membermask 0xffff8000"),
        GOES.format(mask="0xffff8000", waits=16, lane=15, where="membermask 0x0001ffff"),
    },
    "and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bar.warp.sync 3; bar.sync 0":
        {GOES.format(mask="0x00000003", waits=0, lane=1, where="barrier 0")},
}  # fmt: skip
COMES = [
    f"{HALF} shfl.sync.idx.b32 %r4, %r1, 0, 31, -1; bra END; ELSE: shfl.sync.idx.b32 %r4, %r1, 1, 31, -1; END: bar.sync 0",
    f"{HALF} ret; ELSE: shfl.sync.idx.b32 %r4, %r1, 0, 31, -1; bar.warp.sync -1",
    f"{HALF} shfl.sync.idx.b32 %r4, %r1, 0, 31, 65535; ELSE: vote.sync.any.pred %p2, %p1, -1; bar.sync 0",
    f"{PAIR} {HALF} bar.warp.sync %r3; bar.warp.sync %r3; bra END; ELSE: bar.warp.sync %r3; END: bar.sync 0",
    "activemask.b32 %r3; shfl.sync.idx.b32 %r4, %r1, 0, 31, %r3; bar.sync 0",
]


@pytest.mark.parametrize("body", ELSEWHERE)
def test_lanes_that_go_elsewhere(device: ptxemu.Device, body: str) -> None:
    """They are named together with where they are, which is the other place of the finding; either branch may come first."""
    seen = [finding for finding in found(device, program(body), 0, 0) if "names lane" in finding.message]
    assert seen[0].message in ELSEWHERE[body] and seen[0].other is not None
    assert seen[0].thread != seen[0].other.thread


@pytest.mark.parametrize("body", COMES)
def test_lanes_that_come_later(device: ptxemu.Device, body: str) -> None:
    """By another branch, in the same order; those that exit need not come."""
    assert [finding.message for finding in found(device, program(body), 0, 0)] == []


def test_groups_of_lanes(device: ptxemu.Device) -> None:
    """Each half of a warp by itself, together and in branches; lanes that have exited; and those that a predicate leaves out."""
    together = HALVES.format(others="-65536") + each("%r3") + each("-1")
    apart = "@!%p1 bra ELSE;" + each("65535") + "bra END; ELSE:" + each("-65536") + "END: @%p1 bar.warp.sync 65535; @%p1 ret;"
    assert found(device, program(together + apart + each("-65536") + each("-1")), 0, 0) == []
