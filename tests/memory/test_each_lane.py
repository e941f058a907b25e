"""Bytes and halves from a place for each lane, and to one, by code that goes over all lanes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel
from tests.support.processors import aarch64, without_avx512

LANES, ROOM, WILD = 32, 512, 1 << 30
SPACES = ("global", "shared")
MASKS = (0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0x0000FFFF, 0x5A5AF00F, 0x000001FF, 0x80402010, 0x00FF0000, 0x80000000, 1, 0)
PARAMETERS = ".param .u64 words, .param .u64 indexes, .param .u64 out, .param .u32 mask"


def text(bits: int, space: str) -> str:
    """Each lane that is on takes the word at an index, and stores it plus its number there: lanes may have the same."""
    size, kind = bits // 8, f"{space}.u{bits}"
    window, base, fill, back, place = "", "mov.u64 %rd8, %rd1;", "", "", "[%a]"
    if space == "shared":
        window, base, place = f".shared .align 16 .b8 s[{ROOM * size}];", "mov.u32 %low, s;", "[%low]"
        fill = loop("IN", f"ld.global.u{bits} %v, [%rd7]; st.shared.u{bits} [%r6], %v;", size)
        back = loop("OUT", f"ld.shared.u{bits} %v, [%r6]; st.global.u{bits} [%rd7], %v;", size)
    return kernel(
        f"""{window} .reg .u64 %a; .reg .u16 %v, %w; .reg .u32 %i, %n, %low;
    mov.u32 %r0, %tid.x; ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [indexes]; ld.param.u64 %rd3, [out];
    ld.param.u32 %r1, [mask]; {base} {fill}
    mul.wide.u32 %rd4, %r0, 4; add.u64 %rd2, %rd2, %rd4; mul.wide.u32 %rd4, %r0, {size}; add.u64 %rd3, %rd3, %rd4;
    mov.u16 %v, 7; ld.global.u32 %i, [%rd2];
    shr.u32 %r2, %r1, %r0; and.b32 %r2, %r2, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra OFF;
    mad.lo.u32 %low, %i, {size}, %low; mul.wide.u32 %a, %i, {size}; add.u64 %a, %a, %rd8;
    ld.{kind} %v, {place}; cvt.u16.u32 %w, %r0; add.u16 %w, %w, %v; st.{kind} {place}, %w;
    OFF: st.global.u{bits} [%rd3], %v; {back}""",
        PARAMETERS,
    )


def loop(label: str, body: str, size: int) -> str:
    """Over all words, between barriers: at ``%rd7`` and, in shared memory, ``%r6``."""
    return f"""bar.sync 0; mov.u32 %n, %r0; mov.u32 %r5, s;
    {label}: mad.lo.u32 %r6, %n, {size}, %r5; mul.wide.u32 %rd7, %n, {size}; add.u64 %rd7, %rd7, %rd1; {body}
    add.u32 %n, %n, {LANES}; setp.lt.u32 %p0, %n, {ROOM}; @%p0 bra {label}; bar.sync 0;"""


def wanted(words: np.ndarray, indexes: np.ndarray, mask: int) -> tuple[np.ndarray, np.ndarray]:
    """What is in memory at the end, and what lanes have loaded."""
    lanes = np.arange(LANES, dtype=words.dtype)
    on = mask >> np.arange(LANES) & 1 == 1
    out, after = np.where(on, words[indexes], 7).astype(words.dtype), words.copy()
    for lane in lanes[on]:
        after[indexes[lane]] = (words[indexes[lane : lane + 1]] + lane)[0]
    return after, out


def check(bits: int, space: str, engine: str) -> None:
    random, kind = np.random.default_rng(bits), np.dtype(f"u{bits // 8}")
    with ptxemu.Device(engine=engine) as device:
        run = ptxemu.loads(text(bits, space), device=device)["k"]
        for most in (ROOM, 6):
            for mask in MASKS:
                words = random.integers(0, 1 << bits, ROOM, dtype=kind)
                indexes = random.integers(0, most, LANES, dtype=np.uint32)
                after, loaded = wanted(words, indexes, mask)
                indexes[mask >> np.arange(LANES) & 1 == 0] = WILD  # where nothing is
                out = np.zeros(LANES, kind)
                run[1, LANES](words, indexes, out, mask)
                np.testing.assert_array_equal(out, loaded, hex(mask))
                np.testing.assert_array_equal(words, after, hex(mask))


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("bits", [8, 16])
def test_only_lanes_that_are_on_take_part(engine: str, space: str, bits: int) -> None:
    check(bits, space, engine)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("bits", [8, 16])
def test_without_avx512(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, space: str, bits: int) -> None:
    without_avx512(monkeypatch, tmp_path)
    check(bits, space, "jit")


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x0FFFFFF0])
def test_a_wild_index_is_a_fault(space: str, mask: int) -> None:
    def fault(engine: str) -> tuple[str, np.ndarray]:
        words, indexes = np.zeros(ROOM, np.uint8), np.arange(LANES, dtype=np.uint32)
        indexes[[9, 20]] = WILD
        with ptxemu.Device(engine=engine) as device, pytest.raises(ptxemu.Fault) as found:
            ptxemu.loads(text(8, space), device=device)["k"][1, LANES](words, indexes, np.zeros(LANES, np.uint8), mask)
        return re.sub(r"0x\w+", "", str(found.value)), words  # not where the engines have their memory

    (compiled, words), (interpreted, others) = fault("jit"), fault("interpreter")
    assert compiled == interpreted
    np.testing.assert_array_equal(words, others)


@pytest.mark.parametrize(
    ("cpu", "space", "loads", "stores"),
    [
        (
            "x86-64-v4",
            "global",
            "call fastcc <32 x i8> @lanes.gather.8(<32 x i64>",
            "call fastcc void @lanes.scatter.8(<32 x i64>",
        ),
        (
            "x86-64-v4",
            "shared",
            "call fastcc <32 x i8> @lanes.gather.8.near(<32 x i32>",
            "call fastcc void @lanes.scatter.8.near(<32 x i32>",
        ),
        ("x86-64-v3", "global", "call fastcc void @lanes.gather.8(ptr", "call void @pe_scatter_8(ptr"),
        ("x86-64-v3", "shared", "call fastcc void @lanes.gather.8(ptr", "call void @pe_scatter_8(ptr"),
    ],
)
def test_code(cpu: str, space: str, loads: str, stores: str) -> None:
    code = str(compile.emit(compile.front(text(8, space)), "k", compile.Options(cpu=cpu), "llvm"))
    assert loads in code
    assert stores in code


@pytest.mark.parametrize("space", SPACES)
def test_aarch64(monkeypatch: pytest.MonkeyPatch, space: str) -> None:
    aarch64(monkeypatch, "generic")
    code = str(compile.emit(compile.front(text(8, space)), "k", compile.Options(), "asm"))
    assert "lanes.gather.8" in code
