"""The checker ``race`` at fences and strong accesses for threads of a cluster alone."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

NONE = "mov.u32 %r7, 0"
NEAR, FAR = "fence.acq_rel.cluster", "fence.acq_rel.gpu"
START = "mov.u32 %r9, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; setp.eq.u32 %p2, %r2, 0; @%p2 bra GIVE;"
END = "DONE: mov.u32 %r8, 0"
GIVE = "GIVE: st.global.u32 [%rd3], 7; {fence}; st.relaxed.{scope}.global.u32 [%rd1], 1;"
TAKE = "{name}: ld.relaxed.{scope}.global.u32 %r9, [%rd1{at}]; setp.eq.u32 %p3, %r9, 0; @%p3 bra {name}; {fence};"
READ = "ld.global.u32 %r6, [%rd3];"


def handed(fence: str, scope: str = "cluster", after: str = NEAR) -> str:
    """Block 0 hands a word on to all others."""
    take = TAKE.format(name="WAIT", at="", scope=scope, fence=after)
    return f"{START} {take} {READ} bra DONE; {GIVE.format(fence=fence, scope=scope)} {END}"


def handed_on(fence: str) -> str:
    """Block 0 hands a word on to block 1 of its cluster, and that to block 2."""
    first = TAKE.format(name="FIRST", at="", scope="cluster", fence=NEAR)
    then = TAKE.format(name="THEN", at="+4", scope="gpu", fence=FAR)
    return (
        f"{START} setp.gt.u32 %p4, %r2, 2; @%p4 bra DONE; setp.eq.u32 %p4, %r2, 2; @%p4 bra THEN;"
        f"{first} {fence}; st.relaxed.gpu.global.u32 [%rd1+4], 1; bra DONE;"
        f"{then} {READ} bra DONE; {GIVE.format(fence=NEAR, scope='cluster')} {END}"
    )


LOCK = """setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; TAKE: atom.relaxed.cluster.global.cas.b32 %r4, [%rd1], 0, 1;
setp.ne.u32 %p2, %r4, 0; @%p2 bra TAKE; {after}; ld.global.u32 %r5, [%rd3]; add.u32 %r5, %r5, 1; st.global.u32 [%rd3], %r5;
{before}; atom.relaxed.cluster.global.exch.b32 %r6, [%rd1], 0; DONE: mov.u32 %r7, 0"""
ADD = "atom.relaxed.cluster.global.add.u32 %r3, [%rd1], 1"

RACES = {
    (handed(NEAR), 2): {"x", "y"},
    (handed(FAR), 2): {"x"},
    (handed(NEAR, "gpu", FAR), 2): {"y"},
    (handed("fence.acq_rel.cta"), 4): {"y"},
    (handed(NONE), 4): {"y"},
    (handed_on(NONE), 2): {"y"},
    (handed_on("fence.acq_rel.cta"), 2): {"y"},
    (LOCK.format(after=NEAR, before=NONE), 4): {"y"},
    (LOCK.format(after=NONE, before=NEAR), 4): {"y"},
    (LOCK.format(after=NEAR, before=NEAR), 2): {"x", "y"},
    (ADD, 2): {"x"},
    (ADD, 1): {"x"},
}
ORDERED = [
    (handed(NEAR), 4),
    (handed(FAR), 4),
    (handed_on(FAR), 2),
    (LOCK.format(after=NEAR, before=NEAR), 4),
    (LOCK.format(after=NEAR, before=FAR), 4),
    (ADD, 4),
]

device = checked_device("race", workers=2)


def names(device: ptxemu.Device, body: str, cluster: int) -> set[str]:
    """The arrays in which there is a race."""
    x, y = device.to_device(np.zeros(64, np.uint32), "x"), device.to_device(np.zeros(64, np.uint32), "y")
    text = program(body).replace(".target sm_80", ".target sm_90")
    return {one.message.split("`")[1] for one in found(device, text, x, y, grid=4, cluster=cluster)}


@pytest.mark.parametrize(("body", "cluster"), RACES)
def test_races(device: ptxemu.Device, body: str, cluster: int) -> None:
    assert names(device, body, cluster) == RACES[body, cluster]


@pytest.mark.parametrize(("body", "cluster"), ORDERED)
def test_no_races(device: ptxemu.Device, body: str, cluster: int) -> None:
    assert names(device, body, cluster) == set()
