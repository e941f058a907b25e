"""Consecutive elements of lanes some of which are off, and elements near each other of whole warps: sizes for which the CPU has
neither masks nor gathers. Nothing that belongs to lanes that are off is touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512

TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
REGISTERS = {"u8": "%r1", "u16": "%h1", "u32": "%r1", "u64": "%rd9"}
MASKS = [0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0x00FFFF00, 0x80000001, 0x55555555, 0x0001FFFF, 0xF00F7E01, 0]
PARAMETERS = ".param .u64 out, .param .u64 words, .param .u32 lanes"
CHOSEN = """ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u32 %r5, [lanes];
and.b32 %r6, %r60, 31; shr.u32 %r5, %r5, %r6; and.b32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0;"""


def text(type: str, step: int = 1) -> str:
    """Lanes that are on copy the element at ``step * i`` of one array to place i of another."""
    size, value = np.dtype(TYPES[type]).itemsize, REGISTERS[type]
    places = f"mul.lo.u32 %r7, %r0, {step * size}; cvt.u64.u32 %rd3, %r7; mul.wide.u32 %rd4, %r0, {size};"
    places += "add.u64 %rd2, %rd2, %rd3; add.u64 %rd1, %rd1, %rd4;"
    copy = f"ld.global.{type} {value}, [%rd2]; st.global.{type} [%rd1], {value};"
    return kernel(f"{GLOBAL_INDEX} {CHOSEN} {places} @!%p1 bra E; {copy} E:", PARAMETERS)


def elements(type: str, count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, count * np.dtype(TYPES[type]).itemsize, np.uint8).view(TYPES[type])


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("type", TYPES)
def test_lanes_that_are_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, type: str, step: int) -> None:
    without_avx512(monkeypatch, tmp_path)
    device = ptxemu.Device()
    launch = ptxemu.loads(text(type, step), device=device)["k"][1, 64]
    words = elements(type, 63 * step + 1)
    there, given = device.to_device(words), np.full(64, 7, TYPES[type])
    for mask in MASKS:
        out = device.to_device(given)
        launch(out, there, np.uint32(mask))
        on = np.array([bool(mask >> lane % 32 & 1) for lane in range(64)])
        np.testing.assert_array_equal(out.copy_to_host(), np.where(on, words[::step], given))


@pytest.mark.parametrize("type", TYPES)
def test_the_ends_of_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, type: str) -> None:
    """Lanes that are off would read and write before an array that begins a page, and behind one that ends one."""
    without_avx512(monkeypatch, tmp_path)
    device = ptxemu.Device()
    kernel = ptxemu.loads(text(type), device=device, filename="test.ptx")["k"][1, 32]
    page = 4096 // np.dtype(TYPES[type]).itemsize
    words = elements(type, page)
    source, out = device.to_device(words), device.to_device(np.zeros(page, TYPES[type]))
    for mask, start in ((0xFFFF0000, -16), (0x0000FFFF, page - 16), (0x7FFFFFFF, page - 31), (0xFFFFFFFE, -1)):
        kernel(_moved(out, start), _moved(source, start), np.uint32(mask))
        on = np.array([bool(mask >> lane & 1) for lane in range(32)])
        places = start + np.arange(32)[on]
        np.testing.assert_array_equal(out.copy_to_host()[places], words[places])
        with pytest.raises(ptxemu.Fault):
            kernel(_moved(out, start), _moved(source, start), np.uint32(0xFFFFFFFF))


def _moved(buffer: ptxemu.Buffer, elements: int) -> np.uint64:
    """The address some elements from the start of a buffer."""
    return np.uint64(buffer.address + elements * buffer.dtype.itemsize)


@pytest.mark.parametrize(("type", "step", "whole"), [("u8", 3, True), ("u16", 2, True), ("u32", 3, True), ("u8", 5, False)])
def test_code(type: str, step: int, whole: bool) -> None:
    """Elements that lie near each other change places in registers."""
    code = str(compile.emit(compile.front(text(type, step)), "k", compile.Options(cpu="x86-64-v3"), "llvm"))
    bits = np.dtype(TYPES[type]).itemsize * 8
    assert (f"load <{31 * step + 1} x i{bits}>" in code) == whole
