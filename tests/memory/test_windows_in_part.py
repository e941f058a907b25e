"""Loads from places near each other by some lanes of a warp, against the interpreter: backwards, at strides, two to a place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support import processors
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

THREADS, PAGE = 64, 4096
PLACES = {
    "backwards": "sub.u32 %r5, 63, %r0;",
    "every second": "shl.b32 %r5, %r0, 1;",
    "every third, backwards": "mul.lo.u32 %r5, %r0, 3; sub.u32 %r5, 189, %r5;",
    "every fourth": "shl.b32 %r5, %r0, 2;",
    "two to a place": "shr.u32 %r5, %r60, 1;",
}
TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
MASKS = (0, 1, 1 << 31, 0x55555555, 0xFFFF0000, 0x0000FFFF, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678)


def text(place: str, size: int) -> str:
    """Each thread whose bit is set in the mask of its warp loads an element."""
    wide = "ld.global.u64 %rd9, [%rd5]; cvt.u32.u64 %r7, %rd9;"
    load = wide if size == 8 else f"ld.global.{TYPES[size]} %r7, [%rd5];"
    return kernel(
        GLOBAL_INDEX
        + f"""
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u32 %r3, [mask]; mov.u32 %r4, %laneid; shr.u32 %r3, %r3, %r4;
  and.b32 %r3, %r3, 1; setp.eq.u32 %p1, %r3, 0; {PLACES[place]} mul.wide.u32 %rd4, %r5, {size}; add.u64 %rd5, %rd2, %rd4;
  ld.param.u64 %rd3, [start]; add.u64 %rd5, %rd5, %rd3;
  mov.u32 %r7, 77; @%p1 bra OVER; {load}
OVER:
  mul.wide.u32 %rd6, %r0, 4; add.u64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], %r7;""",
        ".param .u64 out, .param .u64 words, .param .u64 start, .param .u32 mask",
    )


def outcome(engine: str, program: str, size: int, mask: int, start: int) -> tuple[str, np.ndarray]:
    out, words = np.zeros(THREADS, np.uint32), np.arange(3, PAGE // size + 3).astype(f"u{size}")
    with ptxemu.Device("16 MiB", engine=engine) as device:
        try:
            ptxemu.loads(program, device=device, tier="best")["k"][2, THREADS // 2](out, words, start, np.uint32(mask))
        except ptxemu.Fault as fault:
            return str(fault).partition(" address 0x")[0], np.zeros(0)
    return "", out


@pytest.mark.parametrize("size", TYPES)
@pytest.mark.parametrize("place", PLACES)
def test_lanes_that_are_off_load_nothing(place: str, size: int) -> None:
    """Not even where their places are beyond the end of memory, as some are at its end."""
    program, faults = text(place, size), set()
    for mask in MASKS:
        for start in (0, PAGE - 10 * size):
            jit, interpreted = (outcome(engine, program, size, mask, start) for engine in ("jit", "interpreter"))
            assert jit[0] == interpreted[0]
            np.testing.assert_array_equal(jit[1], interpreted[1], f"{mask:08x}, from {start}")
            faults.add(bool(jit[0]))
    assert faults == {False, True}


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("place", PLACES)
def test_on_other_processors(place: str, size: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    processors.without_avx512(monkeypatch, tmp_path)
    test_lanes_that_are_off_load_nothing(place, size)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_they_are_no_gathers(size: int) -> None:
    code = str(compile.emit(compile.front(text("backwards", size)), "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    assert "masked.load" in code and "masked.gather" not in code
