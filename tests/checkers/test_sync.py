"""The checker ``sync``: barriers that not all lanes of a warp come to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ptxemu
from tests.checkers.planted import found, program

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


@pytest.fixture(scope="module")
def device() -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="8 MiB", check="sync") as made:
        yield made


@pytest.mark.parametrize("body", PLANTED)
def test_planted(device: ptxemu.Device, body: str) -> None:
    assert [finding.message for finding in found(device, program(body), 0, 0, block=64)] == [PLANTED[body]]


@pytest.mark.parametrize("body", CLEAN)
def test_clean(device: ptxemu.Device, body: str) -> None:
    assert found(device, program(body), 0, 0, block=64) == []
