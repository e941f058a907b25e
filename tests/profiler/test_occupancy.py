"""Occupancy as NVIDIA's calculator gives it, and registers that a text needs."""

from __future__ import annotations

import pytest

from ptxemu.driver.compile import front_of
from ptxemu.profiler.occupancy import multiprocessor_of, occupancy
from ptxemu.profiler.registers import registers_of
from ptxemu.text.source import SourceFile
from tests.support.kernel_tools import kernel


@pytest.mark.parametrize(
    ("sm", "threads", "registers", "shared", "blocks", "percent", "limited"),
    [
        (80, 256, 32, 0, 8, 100, ["warps", "registers"]),
        (80, 1024, 64, 0, 1, 50, ["registers"]),
        (80, 256, 40, 0, 6, 75, ["registers"]),  # 1,280 a warp: 51 warps, 48 in fours
        (80, 32, 16, 0, 32, 50, ["blocks"]),
        (80, 128, 32, 48 << 10, 3, 18.75, ["shared memory"]),  # 49 KiB of 164 each
        (86, 256, 40, 0, 6, 100, ["warps", "registers"]),
        (75, 1024, 64, 0, 1, 100, ["warps", "registers"]),
        (70, 128, 255, 0, 2, 12.5, ["registers"]),
        (61, 128, 32, 0, 16, 100, ["warps", "registers"]),  # as the oldest that is known
        (90, 1024, 65, 0, 0, 0, ["registers"]),
    ],
)
def test_blocks_that_fit(
    sm: int, threads: int, registers: int, shared: int, blocks: int, percent: float, limited: list[str]
) -> None:
    found = occupancy(multiprocessor_of(sm), threads, registers, shared)
    assert (found.blocks, found.percent, found.limited_by) == (blocks, percent, limited)


def registers(body: str) -> int:
    module = front_of(SourceFile("k.ptx", kernel(body + " ret;")), strict=True, dialect="ptx")
    return registers_of([module.functions["k"]])


def test_values_that_live_together() -> None:
    assert registers("mov.u32 %r1, 1; add.u32 %r1, %r1, %r1;") == 1
    assert registers("mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u64 %rd1, 3; add.u32 %r3, %r1, %r2; cvt.u32.u64 %r4, %rd1;") == 4
    assert registers("mov.u32 %r1, 1; add.u32 %r2, %r1, 1; mov.u32 %r3, 1; add.u32 %r4, %r3, 1;") == 1
    assert registers("setp.eq.u32 %p1, 1, 2; mov.b16 %h1, 1; mov.b16 %h2, %h1;") == 1


def test_values_live_through_the_loops_that_they_enter() -> None:
    loop = "mov.u32 %r1, 1; L: add.u32 %r2, %r1, 1; mov.u32 %r3, 5; add.u32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 1; @%p1 bra L;"
    assert registers(loop) == 2
    nested = f"mov.u32 %r9, 1; M: {loop} add.u32 %r10, %r9, 1; @%p1 bra M;"
    assert registers(nested) == 3
