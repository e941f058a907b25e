"""Consecutive elements of half a warp, where masks are slow: blocks of 16 threads, and halves that do different things."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512

SHARED = ".shared .align 16 .b8 words[4096];"
PLACE = "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2; shl.b32 %r9, %r60, 2; mov.u32 %r8, words; add.u32 %r9, %r9, %r8;"
THROUGH = "ld.global.u32 %r1, [%rd1]; st.shared.u32 [%r9], %r1; bar.sync 0; ld.shared.u32 %r2, [%r9]; shl.b32 %r2, %r2, 1;"


def text(body: str) -> str:
    return kernel(f"{GLOBAL_INDEX} ld.param.u64 %rd1, [out]; {PLACE} {body}", declarations=SHARED)


def of_halves(cpu: str, body: str, variant: str = "warp") -> int:
    """Loads and stores of half a warp in code."""
    code = str(compile.emit(compile.front(text(body)), "k", compile.Options(cpu=cpu, variant=variant), "llvm"))
    return code.count("load <16 x i32>") + code.count("store <16 x i32>")


def test_code() -> None:
    body = f"{THROUGH} st.global.u32 [%rd1], %r2;"
    assert of_halves("x86-64-v3", body) >= 3
    assert of_halves("x86-64-v4", body) == 0
    assert of_halves("x86-64-v3", body, "row") == 0


@pytest.mark.parametrize("threads", [1, 15, 16, 17, 31, 32, 48])
def test_blocks_that_end_in_a_warp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, threads: int) -> None:
    """Words behind those of the block stay what they are."""
    without_avx512(monkeypatch, tmp_path)
    device = ptxemu.Device()
    words = np.arange(1, 200, dtype=np.uint32)
    found = device.to_device(words)
    ptxemu.loads(text(f"{THROUGH} st.global.u32 [%rd1], %r2;"), device=device)["k"][1, threads](found)
    words[:threads] *= 2
    np.testing.assert_array_equal(found.copy_to_host(), words)


@pytest.mark.parametrize("lanes", [0xFFFF, 0xFFFF0000, 0x1FFFF, 0xFFFF8000, 0x7FFF, 0x0FF00FF0, 0])
def test_lanes_of_a_branch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lanes: int) -> None:
    without_avx512(monkeypatch, tmp_path)
    device = ptxemu.Device()
    words = np.arange(1, 33, dtype=np.uint32)
    chosen = f"mov.u32 %r5, {lanes}; and.b32 %r6, %r60, 31; shr.u32 %r5, %r5, %r6; and.b32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0;"
    other = "@!%p1 bra E; ld.global.u32 %r1, [%rd1]; st.shared.u32 [%r9], %r1; add.u32 %r1, %r1, 7; st.global.u32 [%rd1], %r1; E:"
    seen = "bar.sync 0; @!%p1 bra F; ld.shared.u32 %r2, [%r9]; st.global.u32 [%rd1+128], %r2; F:"
    out = device.to_device(np.concatenate([words, np.zeros(32, np.uint32)]))
    ptxemu.loads(text(f"{chosen} {other} {seen}"), device=device)["k"][1, 32](out)
    on = np.array([bool(lanes >> lane & 1) for lane in range(32)])
    np.testing.assert_array_equal(out.copy_to_host(), np.concatenate([words + 7 * on, words * on]))


ROW_PITCH = 40  # words
ROWS = {
    "of the block": "mov.u32 %r3, %tid.x; mov.u32 %r4, %tid.y;",
    "of lanes": "and.b32 %r3, %r60, {last}; shr.u32 %r4, %r60, {log};",
}
"""The column and the row of a thread: in blocks of two dimensions, and of one."""


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", [32, 16, 8])
@pytest.mark.parametrize("lanes", [0xFFFF, 0xFFFF0000])
def test_halves_of_several_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rows: str, width: int, lanes: int) -> None:
    """Rows that do not follow on each other."""
    without_avx512(monkeypatch, tmp_path)
    device = ptxemu.Device()
    first = 0 if lanes == 0xFFFF else 16
    places = np.array([lane // width * ROW_PITCH + lane % width for lane in range(first, first + 16)])
    words = np.arange(1, 200, dtype=np.uint32)
    out = device.to_device(words)
    place = ROWS[rows].format(last=width - 1, log=width.bit_length() - 1)
    number = f"mad.lo.u32 %r5, %r4, {width}, %r3; sub.u32 %r5, %r5, {first}; setp.lt.u32 %p1, %r5, 16;"
    address = f"mad.lo.u32 %r6, %r4, {ROW_PITCH}, %r3; mul.wide.u32 %rd2, %r6, 4; add.u64 %rd1, %rd1, %rd2;"
    body = f"ld.param.u64 %rd1, [out]; mov.u32 %r60, %tid.x; {place} {number} {address}"
    update = "@%p1 ld.global.u32 %r7, [%rd1]; add.u32 %r7, %r7, 1000; @%p1 st.global.u32 [%rd1], %r7;"
    block = (width, 32 // width) if rows == "of the block" else 32
    ptxemu.loads(kernel(f"{body} {update}"), device=device)["k"][1, block](out)
    words[places] += 1000
    np.testing.assert_array_equal(out.copy_to_host(), words)
