"""Accesses of warps whose lanes lie side by side in a few runs, or share a place in groups: values, edges and faults."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis.runs import Runs, runs_of
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel
from tests.support.processors import without_avx512

PITCH = 53
WIDTHS = {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}
PARAMETERS = ".param .u64 out, .param .u64 matrix, .param .u32 pitch"
PLACE = """
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [matrix]; ld.param.u32 %r1, [pitch];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
  mad.lo.u32 %r6, %r3, %r1, %r2; mov.u32 %r7, %ctaid.x;
"""
"""Of the thread: its coordinates r2 and r3, its number r5, and its place r6 in a matrix of rows of r1."""

MOVED = "setp.eq.u32 %p1, %r1, 7; @%p1 add.u32 %r6, %r6, 20;"
"""After which only a test can tell whether the places of a row are side by side."""


def text(body: str, declarations: str = "") -> str:
    return kernel(PLACE + body, PARAMETERS, declarations)


def at(register: str, index: str, base: str, bytes: int = 4) -> str:
    return f"mul.wide.s32 {register}, {index}, {bytes}; add.s64 {register}, {register}, {base};"


def launch(program: str, block: tuple[int, int], out: np.ndarray, matrix: np.ndarray, pitch: int = PITCH) -> np.ndarray:
    ptxemu.loads(program, filename="test.ptx")["k"][1, block](out, matrix, pitch)
    return out


def in_runs(program: str, variant: str) -> bool:
    """Whether the code for such blocks looks at run time whether addresses are in runs: bases of groups."""
    options = compile.Options(cpu="x86-64-v4", variant=variant)
    return "extractelement <32 x i64>" in str(compile.emit(compile.front(program), "k", options, "llvm"))


BLOCKS = [(16, 6), (8, 12), (4, 8), (32, 2), (16, 5)]


def test_offsets() -> None:
    assert runs_of(tuple(range(0, 128, 4)), 4) == Runs(32, 4)
    assert runs_of((*range(0, 64, 4), *range(1000, 1064, 4)), 4) == Runs(16, 4)
    assert runs_of((5,) * 8 + (9,) * 24, 4) == Runs(8, 0)
    assert runs_of(tuple(range(0, 256, 8)), 4) is None


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", WIDTHS)
def test_rows_of_a_matrix(block: tuple[int, int], kind: str) -> None:
    """Each thread copies its element to a matrix with other rows."""
    x, y = block
    dtype = WIDTHS[kind]
    size, register = np.dtype(dtype).itemsize, "%rd7" if kind == "u64" else "%r20"
    body = f"""
    {at("%rd5", "%r6", "%rd2", size)} ld.global.{kind} {register}, [%rd5];
    mad.lo.u32 %r8, %r3, 40, %r6; {at("%rd6", "%r8", "%rd1", size)} st.global.{kind} [%rd6], {register};"""
    matrix = np.random.default_rng(1).integers(0, 255, (y, PITCH)).astype(dtype)
    found = launch(text(body), block, np.zeros((y, PITCH + 40), dtype), matrix)
    expected = np.zeros_like(found)
    expected[:, :x] = matrix[:, :x]
    np.testing.assert_array_equal(found, expected)


def test_code_looks_for_runs() -> None:
    program = text(f"{MOVED} {at('%rd5', '%r6', '%rd2')} ld.global.u32 %r20, [%rd5]; st.global.u32 [%rd5], %r20;")
    assert in_runs(program, "x16")
    assert in_runs(program, "x8")
    assert not in_runs(program, "row")
    assert not in_runs(program, "any")


def test_accesses_off_one_base_are_looked_at_once() -> None:
    loads = "ld.global.u32 %r20, [%rd5]; ld.global.u32 %r21, [%rd5+8]; add.u32 %r20, %r20, %r21; st.global.u32 [%rd5+4], %r20;"
    options = compile.Options(cpu="x86-64-v4", variant="x16")
    code = str(compile.emit(compile.front(text(f"{MOVED} {at('%rd5', '%r6', '%rd2')} {loads}")), "k", options, "llvm"))
    assert code.count("icmp eq <32 x i64>") == 1


@pytest.mark.parametrize("count", [2, 4])
def test_vectors(count: int) -> None:
    registers = ", ".join(f"%r{20 + index}" for index in range(count))
    body = f"""
    {at("%rd5", "%r6", "%rd2", 4 * count)} ld.global.v{count}.u32 {{{registers}}}, [%rd5];
    {at("%rd6", "%r6", "%rd1", 4 * count)} st.global.v{count}.u32 [%rd6], {{{registers}}};"""
    matrix = np.arange(6 * PITCH * count, dtype="u4").reshape(6, PITCH, count)
    found = launch(text(body), (16, 6), np.zeros_like(matrix), matrix)
    np.testing.assert_array_equal(found[:, :16], matrix[:, :16])
    assert not found[:, 16:].any()


@pytest.mark.parametrize("block", BLOCKS)
def test_a_place_of_each_row(block: tuple[int, int]) -> None:
    x, y = block
    body = f"""
    mad.lo.u32 %r8, %r3, %r1, 3; {at("%rd5", "%r8", "%rd2", 8)} ld.global.v2.u32 {{%r20, %r21}}, [%rd5];
    add.u32 %r20, %r20, %r21; {at("%rd6", "%r5", "%rd1")} st.global.u32 [%rd6], %r20;"""
    matrix = np.random.default_rng(2).integers(0, 1000, (y, PITCH, 2)).astype("u4")
    found = launch(text(body), block, np.zeros((y, x), "u4"), matrix)
    np.testing.assert_array_equal(found, np.repeat(matrix[:, 3].sum(1)[:, None], x, 1))


@pytest.mark.parametrize("width", [15, 9, 1])
def test_edges(width: int) -> None:
    """Lanes beyond the width are off; what lies there is not touched."""
    body = f"""
    setp.ge.u32 %p1, %r2, {width}; @%p1 bra OVER; {at("%rd5", "%r6", "%rd2")} ld.global.u32 %r20, [%rd5];
    {at("%rd6", "%r6", "%rd1")} add.u32 %r20, %r20, 1; st.global.u32 [%rd6], %r20; OVER:"""
    matrix = np.arange(6 * PITCH, dtype="u4").reshape(6, PITCH)
    found = launch(text(body), (16, 6), np.zeros_like(matrix), matrix)
    np.testing.assert_array_equal(found[:, :width], matrix[:, :width] + 1)
    assert not found[:, width:].any()


BOUNDED = f"""
  mov.u32 %r9, %ctaid.x; mad.lo.u32 %r2, %r9, %r4, %r2; mad.lo.u32 %r10, %r3, %r1, 0;
  sub.s32 %r11, %r2, 1; max.s32 %r11, %r11, 0; add.s32 %r12, %r2, 1; sub.s32 %r13, %r1, 1; setp.lt.s32 %p1, %r12, %r1;
  selp.s32 %r12, %r12, %r13, %p1; setp.ge.u32 %p2, %r2, %r1; @%p2 bra OVER;
  add.u32 %r14, %r10, %r11; {at("%rd5", "%r14", "%rd2")} ld.global.u32 %r20, [%rd5];
  add.u32 %r14, %r10, %r12; {at("%rd6", "%r14", "%rd2")} ld.global.u32 %r21, [%rd6];
  mad.lo.u32 %r20, %r20, 1000, %r21; add.u32 %r14, %r10, %r2; {at("%rd7", "%r14", "%rd1")} st.global.u32 [%rd7], %r20; OVER:
"""
"""The neighbours of an element in its row; the outermost ones are their own."""
ROUND = BOUNDED.replace(
    "sub.s32 %r11, %r2, 1; max.s32 %r11, %r11, 0;", "add.s32 %r11, %r2, %r1; sub.s32 %r11, %r11, 1; rem.s32 %r11, %r11, %r1;"
)
ROUND = ROUND.replace("selp.s32 %r12, %r12, %r13, %p1;", "rem.u32 %r12, %r12, %r1;")
"""The same in a row that goes round."""


@pytest.mark.parametrize("block", [(32, 3), (16, 4), (8, 8), (24, 2)])
def test_neighbours_within_bounds(block: tuple[int, int]) -> None:
    matrix = np.random.default_rng(3).integers(0, 1000, (block[1], PITCH)).astype("u4")
    found, column = np.zeros_like(matrix), np.arange(PITCH)
    ptxemu.loads(text(BOUNDED))["k"][-(-PITCH // block[0]), block](found, matrix, PITCH)
    np.testing.assert_array_equal(found, matrix[:, (column - 1).clip(0)] * 1000 + matrix[:, (column + 1).clip(max=PITCH - 1)])


@pytest.mark.parametrize("block", [(32, 3), (16, 4), (8, 8), (24, 2)])
def test_neighbours_in_a_row_that_goes_round(block: tuple[int, int]) -> None:
    matrix = np.random.default_rng(4).integers(0, 1000, (block[1], PITCH)).astype("u4")
    found = np.zeros_like(matrix)
    ptxemu.loads(text(ROUND))["k"][-(-PITCH // block[0]), block](found, matrix, PITCH)
    np.testing.assert_array_equal(found, np.roll(matrix, 1, 1) * 1000 + np.roll(matrix, -1, 1))


def test_neighbours_within_a_tile() -> None:
    """Of 16x16 in shared memory, by lanes from a column on, which is their own neighbour; others are off."""
    body = f"""
    mov.u32 %r9, tile; shl.b32 %r10, %r3, 6; add.u32 %r10, %r10, %r9; mad.lo.u32 %r11, %r2, 4, %r10;
    {at("%rd5", "%r5", "%rd2")} ld.global.u32 %r20, [%rd5]; st.shared.u32 [%r11], %r20; bar.sync 0; mov.u32 %r21, 0;
    setp.lt.u32 %p1, %r2, %r1; @%p1 bra OFF;
    sub.s32 %r12, %r2, 1; max.s32 %r12, %r12, %r1; mad.lo.u32 %r12, %r12, 4, %r10; ld.shared.u32 %r21, [%r12];
    OFF: {at("%rd6", "%r5", "%rd1")} st.global.u32 [%rd6], %r21;"""
    module = ptxemu.loads(text(body, ".shared .align 4 .b8 tile[1024];"))
    matrix, column = np.random.default_rng(4).integers(1, 1000, (16, 16)).astype("u4"), np.arange(16)
    for first in (0, 1, 5, 15):
        found = np.zeros_like(matrix)
        module["k"][1, (16, 16)](found, matrix, first)
        np.testing.assert_array_equal(found, np.where(column < first, 0, matrix[:, (column - 1).clip(first)]))


def test_code_looks_for_runs_within_bounds() -> None:
    assert in_runs(text(BOUNDED), "row")
    assert in_runs(text(BOUNDED), "x16")
    assert in_runs(text(ROUND), "row") and in_runs(text(ROUND), "x16")
    assert not in_runs(text(BOUNDED), "any")


ON = f"""
  shr.u32 %r9, %r1, %r2; and.b32 %r9, %r9, 1; setp.eq.u32 %p1, %r9, 0; mul.lo.u32 %r8, %r3, 40; add.u32 %r8, %r8, %r2;
  add.u32 %r20, %r5, 1; mul.wide.u32 %rd9, %r20, 3; @%p1 bra OVER;
  {at("%rd5", "%r8", "%rd1")} st.global.u32 [%rd5], %r20;
  {at("%rd6", "%r8", "%rd2", 8)} st.global.u64 [%rd6], %rd9; OVER:
"""
"""Lanes that are on in a mask store words and double words."""


@pytest.mark.parametrize("block", [(32, 2), (16, 4)])
def test_stores_of_some_lanes(block: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_avx512(monkeypatch, tmp_path)
    x, y = block
    module, number, lane = ptxemu.loads(text(ON)), np.arange(x * y).reshape(y, x) + 1, np.arange(x)
    for mask in (0xFFFF, 0xFFFF0000, 0x80000001, 0x7FFE7FFE, 0x5A5AA5A5, 0xFFFFFFFE, 0):
        words, doubles = np.zeros((y, 40), "u4"), np.zeros((y, 40), "u8")
        module["k"][1, block](words, doubles, mask)
        on = mask >> lane & 1 == 1
        np.testing.assert_array_equal(words[:, :x], np.where(on, number, 0))
        np.testing.assert_array_equal(doubles[:, :x], np.where(on, 3 * number, 0))
        assert not words[:, x:].any() and not doubles[:, x:].any()


def test_avx2_has_no_masked_stores() -> None:
    code = str(compile.emit(compile.front(text(ON)), "k", compile.Options(cpu="x86-64-v3"), "llvm"))
    assert "masked.store" not in code


def test_lanes_that_are_elsewhere() -> None:
    """A guard moves some addresses: expected runs are none at run time."""
    body = f"""
    setp.eq.u32 %p1, %r2, 5; @%p1 add.u32 %r6, %r6, 20; {at("%rd5", "%r6", "%rd2")} ld.global.u32 %r20, [%rd5];
    {at("%rd6", "%r6", "%rd1")} st.global.u32 [%rd6], %r20;"""
    matrix = np.arange(6 * PITCH, dtype="u4").reshape(6, PITCH)
    found = launch(text(body), (16, 6), np.zeros_like(matrix), matrix)
    columns = [20 + 5 if x == 5 else x for x in range(16)]
    np.testing.assert_array_equal(found[:, columns], matrix[:, columns])
    assert np.count_nonzero(found) == 6 * 16 - 1


def test_indices_that_wrap() -> None:
    """Places -4 to 11 of each row, as signed and as unsigned numbers of 32 bits."""
    body = f"""
    sub.u32 %r8, %r6, 4; add.u64 %rd2, %rd2, 16; {at("%rd5", "%r8", "%rd2")} ld.global.u32 %r20, [%rd5];
    mul.wide.u32 %rd6, %r8, 4; setp.lt.s32 %p1, %r8, 0; @%p1 sub.u64 %rd6, %rd6, 17179869184; add.u64 %rd6, %rd6, %rd1;
    st.global.u32 [%rd6+16], %r20;"""
    matrix = np.arange(6 * PITCH, dtype="u4").reshape(6, PITCH)
    found = launch(text(body), (16, 6), np.zeros_like(matrix), matrix)
    np.testing.assert_array_equal(found[:, :16], matrix[:, :16])


@pytest.mark.parametrize("pitch", [17, 16, 33, 200])
def test_tiles_in_shared_memory(pitch: int) -> None:
    """Stored by rows, loaded by rows and by columns."""
    body = f"""
    mov.u32 %r9, tile; mad.lo.u32 %r8, %r3, {pitch}, %r2; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r9;
    {at("%rd5", "%r6", "%rd2")} ld.global.u32 %r20, [%rd5]; st.shared.u32 [%r8], %r20; bar.sync 0; ld.shared.u32 %r21, [%r8];
    mad.lo.u32 %r10, %r2, {pitch}, %r3; shl.b32 %r10, %r10, 2; add.u32 %r10, %r10, %r9; ld.shared.u32 %r22, [%r10];
    mad.lo.u32 %r21, %r21, 1000, %r22; {at("%rd6", "%r5", "%rd1")} st.global.u32 [%rd6], %r21;"""
    program = text(body, f".shared .align 16 .b8 tile[{16 * pitch * 4}];\n")
    matrix = np.random.default_rng(3).integers(0, 1000, (16, PITCH)).astype("u4")
    found = launch(program, (16, 16), np.zeros((16, 16), "u4"), matrix)
    np.testing.assert_array_equal(found, matrix[:, :16] * 1000 + matrix[:, :16].T)


@pytest.mark.parametrize("pitch", [16, 70])
def test_rows_in_shared_memory_at_a_distance_of_the_launch(pitch: int) -> None:
    body = f"""
    mov.u32 %r9, tile; shl.b32 %r8, %r6, 2; add.u32 %r8, %r8, %r9; st.shared.u32 [%r8], %r5; ld.shared.u32 %r21, [%r8];
    {at("%rd6", "%r5", "%rd1")} st.global.u32 [%rd6], %r21;"""
    program = text(body, ".shared .align 16 .b8 tile[4096];\n")
    found = launch(program, (16, 8), np.zeros(128, "u4"), np.zeros(1, "u4"), pitch)
    np.testing.assert_array_equal(found, np.arange(128))


@pytest.mark.parametrize("access", ["ld.global.u32 %r20, [%rd5]", "st.global.u32 [%rd5], %r20"])
def test_faults_name_the_thread(access: str) -> None:
    """The third row is misaligned."""
    body = f"""
    setp.eq.u32 %p1, %r3, 2; {at("%rd5", "%r6", "%rd2")} selp.b64 %rd6, 2, 0, %p1; add.u64 %rd5, %rd5, %rd6; {access};"""
    with pytest.raises(ptxemu.Fault, match=r"misaligned.*thread \(0,2,0\)"):
        launch(text(body), (16, 6), np.zeros(1, "u4"), np.zeros((6, PITCH), "u4"))


def test_a_run_beyond_shared_memory_is_a_fault() -> None:
    body = "mov.u32 %r9, tile; shl.b32 %r8, %r6, 2; add.u32 %r8, %r8, %r9; st.shared.u32 [%r8], %r5;"
    with pytest.raises(ptxemu.Fault, match=r"thread \(9,1,0\)"):
        launch(text(body, ".shared .align 16 .b8 tile[4096];\n"), (16, 2), np.zeros(1, "u4"), np.zeros(1, "u4"), 4096 // 4 - 9)
