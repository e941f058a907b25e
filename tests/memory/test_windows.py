"""Stores of lanes to a short pattern, such as every second or third element: which are written, and what lies between stays."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel
from tests.support.processors import without_avx512

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
ELEMENTS = 160
FILL = 0x55

PLACES = {
    "second": "shl.b32 %r2, %r1, 1;",
    "odd": "shl.b32 %r2, %r1, 1; add.u32 %r2, %r2, 1;",
    "reversed": "sub.u32 %r2, 63, %r1;",
    "pairs": "and.b32 %r3, %r1, 1; shl.b32 %r2, %r1, 1; sub.u32 %r2, %r2, %r3;",
    "fours": "and.b32 %r3, %r1, 3; shl.b32 %r2, %r1, 1; sub.u32 %r2, %r2, %r3;",
    "first of 32": "and.b32 %r3, %r1, 31; shl.b32 %r2, %r1, 1; sub.u32 %r2, %r2, %r3;",
    "third": "mul.lo.u32 %r2, %r1, 3;",
    "fourth": "shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, 3;",
    "fourth from the end": "sub.u32 %r2, 31, %r1; shl.b32 %r2, %r2, 2;",
}


def places(name: str) -> np.ndarray:
    lane = np.arange(32)
    return {
        "second": 2 * lane,
        "odd": 2 * lane + 1,
        "reversed": 63 - lane,
        "pairs": 2 * lane - lane % 2,
        "fours": 2 * lane - lane % 4,
        "first of 32": 2 * lane - lane % 32,
        "third": 3 * lane,
        "fourth": 4 * lane + 3,
        "fourth from the end": 4 * (31 - lane),
    }[name]


def body(name: str, kind: str, space: str, guard: str = "") -> str:
    """Stores 3 * lane + 1 to the places, in shared or global memory, where FILL was before, and copies shared memory out."""
    size = SIZES[kind]
    value = "cvt.u64.u32 %rd9, %r9;" if kind == "u64" else ""
    register = "%rd9" if kind == "u64" else "%r9"
    start = f"""
    mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mov.u32 %r4, words; {PLACES[name]}
    mul.lo.u32 %r9, %r1, 3; add.u32 %r9, %r9, 1; {value} mul.lo.u32 %r5, %r2, {size};"""
    if space == "global":
        return f"{start} cvt.u64.u32 %rd2, %r5; add.u64 %rd2, %rd2, %rd1; {guard} st.global.{kind} [%rd2], {register};"
    bytes = ELEMENTS * size // 32
    copy = "".join(f"ld.shared.u8 %r7, [%r6+{i}]; st.global.u8 [%rd3+{i}], %r7;" for i in range(bytes))
    clear = "".join(f"st.shared.u8 [%r6+{i}], {FILL};" for i in range(bytes))
    return f"""{start} mad.lo.u32 %r6, %r1, {bytes}, %r4; {clear} bar.warp.sync -1;
    add.u32 %r5, %r5, %r4; {guard} st.shared.{kind} [%r5], {register}; bar.warp.sync -1;
    mul.wide.u32 %rd3, %r1, {bytes}; add.u64 %rd3, %rd3, %rd1; {copy}"""


def launch(name: str, kind: str, space: str, guard: str = "") -> np.ndarray:
    dtype = f"u{SIZES[kind]}"
    out = np.full(ELEMENTS * SIZES[kind], FILL, np.uint8).view(dtype)
    shared = f".shared .align 16 .b8 words[{ELEMENTS * SIZES[kind]}];\n"
    ptxemu.loads(kernel(body(name, kind, space, guard), declarations=shared))["k"][1, 32](out)
    return out


def expected(name: str, kind: str, on: np.ndarray) -> np.ndarray:
    found = np.full(ELEMENTS * SIZES[kind], FILL, np.uint8).view(f"u{SIZES[kind]}")
    found[places(name)[on]] = 3 * np.flatnonzero(on) + 1
    return found


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("name", PLACES)
def test_places(name: str, kind: str, space: str) -> None:
    np.testing.assert_array_equal(launch(name, kind, space), expected(name, kind, np.full(32, True)))


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("name", ["second", "fours", "reversed", "third", "fourth", "fourth from the end"])
def test_lanes_that_are_off(name: str, space: str) -> None:
    guard = "and.b32 %r8, %r1, 5; setp.eq.u32 %p1, %r8, 4; @%p1"
    np.testing.assert_array_equal(launch(name, "u32", space, guard), expected(name, "u32", np.arange(32) & 5 == 4))


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("name", ["second", "third", "reversed", "first of 32"])
def test_places_without_masks(name: str, kind: str, space: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Elements that no lane writes stay as they are; those of all lanes side by side, too."""
    without_avx512(monkeypatch, tmp_path)
    np.testing.assert_array_equal(launch(name, kind, space), expected(name, kind, np.full(32, True)))
    guard = "and.b32 %r8, %r1, 5; setp.eq.u32 %p1, %r8, 4; @%p1"
    np.testing.assert_array_equal(launch(name, kind, space, guard), expected(name, kind, np.arange(32) & 5 == 4))


@pytest.mark.parametrize("kind", SIZES)
def test_distant_places_without_gathers(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A column of 32 in rows of 3: loads of a place each."""
    without_avx512(monkeypatch, tmp_path)
    size, register = SIZES[kind], "%rd9" if kind == "u64" else "%r9"
    text = f"""mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mov.u32 %r4, words; mul.wide.u32 %rd2, %r1, {3 * size};
    add.u64 %rd2, %rd2, %rd1; mad.lo.u32 %r5, %r1, {3 * size}, %r4; ld.global.{kind} {register}, [%rd2];
    st.shared.{kind} [%r5], {register}; bar.sync 0; sub.u32 %r6, 31, %r1; mad.lo.u32 %r5, %r6, {3 * size}, %r4;
    ld.shared.{kind} {register}, [%r5]; st.global.{kind} [%rd2], {register};"""
    out = np.arange(96).astype(f"u{size}")
    ptxemu.loads(kernel(text, declarations=f".shared .align 16 .b8 words[{96 * size}];\n"))["k"][1, 32](out)
    np.testing.assert_array_equal(out[::3], np.arange(96).astype(f"u{size}")[::3][::-1])


def test_none_is_scattered() -> None:
    """On a CPU with cheap masks; on others, where all lanes are on, their places are stored one by one."""
    declarations = f".shared .align 16 .b8 words[{ELEMENTS * 4}];\n"
    module = compile.front(kernel(body("pairs", "u32", "global"), declarations=declarations))
    assert "masked.store.v64i32" in str(compile.emit(module, "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    code = str(compile.emit(module, "k", compile.Options(cpu="x86-64-v3"), "llvm"))
    assert "masked.store" not in code
    assert set(re.findall(r"getelementptr i8, ptr %\w+, i64 (\d+)\n *store i32", code)) >= {
        str(4 * at) for at in places("pairs") if at
    }


@pytest.mark.parametrize("name", ["third", "fourth", "fourth from the end"])
def test_longer_windows_are_for_all_lanes(name: str) -> None:
    declarations = f".shared .align 16 .b8 words[{ELEMENTS * 4}];\n"
    module = compile.front(kernel(body(name, "u32", "global"), declarations=declarations))
    assert "masked.store.v128i32" in str(compile.emit(module, "k", compile.Options(cpu="x86-64-v4"), "llvm"))


def test_faults_name_the_thread() -> None:
    short = ".shared .align 16 .b8 words[128];\n"
    text = f"mov.u32 %r1, %tid.x; mov.u32 %r4, words; {PLACES['second']} mad.lo.u32 %r5, %r2, 4, %r4; st.shared.u32 [%r5], %r1;"
    with pytest.raises(ptxemu.Fault, match=r"thread \(16,0,0\)"):
        ptxemu.loads(kernel(text, declarations=short))["k"][1, 32](np.zeros(1, "u4"))
