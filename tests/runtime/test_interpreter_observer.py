"""Observers of the interpreter: what they are told, in which order, and how they choose the schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu._runtime import lib
from ptxemu.interpreter.observer import Access, Observer, observing
from ptxemu.interpreter.schedule import Schedule
from tests.support.kernel_tools import kernel

BODY = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  setp.lt.u32 %p1, %r1, 8;
  @%p1 bra low;
  st.global.u32 [%rd1], 1;
low:
  @%p1 ld.global.u32 %r2, [%rd1];
  ret;
"""


class Log(Observer):
    def __init__(self, schedule: Schedule | None = None) -> None:
        self.schedule = schedule or Schedule()
        self.told: list[tuple[Any, ...]] = []
        self.accesses: list[Access] = []

    def begins(self, grid: Any) -> None:
        self.told.append(("begins", grid.code.function.name))

    def executes(self, warp: Any, group: Any, code: Any, pc: int) -> None:
        assert all(lane.pc == pc and lane.code is code for lane in group)
        self.told.append((warp.index, code.ops[pc].opcode, len(group)))

    def executed(self, warp: Any, group: Any, code: Any, pc: int, accesses: list[Access]) -> None:
        self.accesses += accesses

    def ends(self, grid: Any, error: Exception | None) -> None:
        self.told.append(("ends", type(error).__name__))


@pytest.fixture
def device() -> Any:
    with ptxemu.Device(memory="4 MiB", engine="interpreter") as made:
        yield made


def launch(device: ptxemu.Device, observer: Observer, text: str = BODY, block: int = 32) -> Any:
    out = device.empty(64, np.uint32)
    with observing(observer):
        ptxemu.loads(kernel(text), device=device)["k"][1, block](out)
    return out


def test_instructions_come_with_their_lanes_and_accesses(device: ptxemu.Device) -> None:
    log = Log()
    out = launch(device, log)
    assert log.told == [
        ("begins", "k"), *((0, opcode, 32) for opcode in ("ld", "mov", "mul", "add", "setp", "bra")),
        (0, "st", 24), (0, "ld", 32), (0, "ret", 32), ("ends", "NoneType"),
    ]  # fmt: skip
    parameter, store, load = log.accesses
    assert (parameter.space, parameter.size, parameter.lanes) == (lib.PE_PARAM, 8, tuple(range(32)))
    assert (store.kind, store.lanes) == (lib.PE_WRITE, tuple(range(8, 32)))
    assert (load.kind, load.size, load.lanes) == (lib.PE_READ, 4, tuple(range(8)))
    assert load.addresses == tuple(out.address + 4 * lane for lane in range(8))


def test_a_fault_is_seen_before_the_launch_ends(device: ptxemu.Device) -> None:
    log = Log()
    with pytest.raises(ptxemu.Fault):
        launch(device, log, "trap;")
    assert log.told == [("begins", "k"), (0, "trap", 32), ("ends", "Fault")]


def test_what_an_observer_raises_comes_out_and_the_device_is_usable(device: ptxemu.Device) -> None:
    class Leave(Log):
        def executes(self, *told: Any) -> None:
            raise LookupError

    with pytest.raises(LookupError):
        launch(device, Leave())
    log = Log()
    launch(device, log)
    assert log.told[-1] == ("ends", "NoneType")


def test_a_seed_gives_an_order_that_comes_again(device: ptxemu.Device) -> None:
    def order(seed: int | None) -> list[Any]:
        log = Log(Schedule(seed=seed))
        launch(device, log, BODY.replace("mov.u32", "bar.sync 0; mov.u32"), block=64)
        return log.told

    assert order(1) == order(1)
    assert len({str(order(seed)) for seed in range(8)}) > 1


def test_what_is_stuck_says_where_its_warps_stand(device: ptxemu.Device) -> None:
    half = "setp.lt.u32 %p1, %r1, 32; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 40; @%p1 bra end; bar.sync 3, 96; end: ret;"
    with pytest.raises(ptxemu.Fault, match="deadlock") as found:
        ptxemu.loads(kernel(half, ""), filename="k.ptx", device=device)["k"][1, 64]()
    lines = str(found.value).splitlines()[1:]
    assert lines == [
        "  block (0,0,0) warp   0 lanes 0xffffffff waits for barrier 3: 64 of 96 threads have arrived  k.ptx:8",
        "  block (0,0,0) warp   1 lanes 0x000000ff waits for barrier 3: 64 of 96 threads have arrived  k.ptx:8",
    ]


def test_what_ran_over_its_time_says_where_its_warps_stand(device: ptxemu.Device) -> None:
    with pytest.raises(ptxemu.LaunchTimeout) as found:
        ptxemu.loads(kernel("L: bra L;", ""), filename="k.ptx", device=device)["k"][1, 32](timeout=0.05)
    assert str(found.value).splitlines()[1:] == ["  block (0,0,0) warp   0 lanes 0xffffffff can run  k.ptx:8"]
