"""Checkers that run together find what each finds alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import ptxemu
from tests.checkers import test_init, test_race, test_stray
from tests.checkers.planted import found, program

NUMBERS = re.compile("0x[0-9a-f]+")  # values that nobody has written, addresses of a device
ALONE = ("memory", "race", "init")
ADDRESS = "add.u64 %rd4, %rd1, %rd2;"
LOOP = "mov.u32 %r9, 0; AGAIN: {body}; add.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 4; @%p6 bra AGAIN; mov.u32 %r10, 0"
LATE = {  # nothing is wrong when the instruction runs first
    "memory": f"{ADDRESS} {LOOP.format(body='ld.global.u32 %r4, [%rd4]; add.u64 %rd4, %rd4, 64')}",
    "race": f"{test_race.OWN} "
    + LOOP.format(body="bar.sync 0; ld.shared.u32 %r4, [%r3]; xor.b32 %r3, %r3, 4; st.shared.u32 [%r3], %r4"),
    "init": f"{test_race.OWN} {LOOP.format(body='ld.shared.u32 %r4, [%r3]; add.u32 %r3, %r3, 64')}",
}
PLANTED = [
    *(("memory", body, test_stray.DECLARED) for body in (*test_stray.PLANTED, LATE["memory"])),
    *(("race", body, test_race.SHARED) for body in (*test_race.RACES, LATE["race"])),
    *(("init", body, test_init.DECLARED) for body in test_init.PLANTED),
    ("init", LATE["init"], test_race.SHARED),
]


@pytest.fixture(scope="module", params=["memory,race", "race,init", "memory,sync,race,leak,init"])
def devices(request: pytest.FixtureRequest) -> Iterator[tuple[ptxemu.Device, dict[str, ptxemu.Device]]]:
    """A device with several checkers, and one of each of these alone."""
    together = ptxemu.Device(memory="64 MiB", check=request.param, workers=1)
    assert together.checks is not None
    alone = {name: ptxemu.Device(memory="64 MiB", check=name, workers=1) for name in together.checks.names}
    yield together, alone
    for device in (together, *alone.values()):
        device.close()


def places(device: ptxemu.Device, check: str, body: str, declarations: str) -> list[tuple[object, ...]]:
    races = check == "race"
    x = device.empty(64, "u4", "x") if races else device.to_device(np.arange(30, dtype="u4"), "x")
    y = device.empty(64, "u4", "y") if races else device.empty(33, "u1", "y")
    text = program(body, declarations).replace(";WAIT", ";\nWAIT")
    seen = found(device, text, x, y, grid=4 if races else 1, block=64 if races else 32)
    return [(NUMBERS.sub("", one.message), *one.place, one.block, one.thread) for one in seen if one.check == check]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("check", "body", "declarations"), PLANTED)
def test_the_same_is_found(
    devices: tuple[ptxemu.Device, dict[str, ptxemu.Device]], check: str, body: str, declarations: str
) -> None:
    together, alone = devices
    if check in alone:
        assert places(together, check, body, declarations) == places(alone[check], check, body, declarations)


def test_late_errors_are_found(devices: tuple[ptxemu.Device, dict[str, ptxemu.Device]]) -> None:
    together, alone = devices
    for check in set(ALONE) & set(alone):
        assert places(together, check, LATE[check], test_race.SHARED)
