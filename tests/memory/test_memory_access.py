"""Loads and stores of every width in every space, at addresses that ptxemu treats differently: uniform, contiguous,
strided, reversed, rows of 16, irregular.  The oracle is NumPy on bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxemu.device.device import default_device
from ptxemu.driver import compile
from tests.support.kernel_tools import Threads, kernel, run

Index = NDArray[np.int64]
BYTES = 8192
MIDDLE = 2048  # patterns are relative to it, so that negative ones stay inside
SEED = 11


@dataclass(frozen=True)
class Pattern:
    """An element index: instructions from %r0 (the thread's x) and %r1 (its y) to %r9, and the same in NumPy."""

    ptx: str
    index: Callable[[Index, Index], Index]


PATTERNS = {
    "uniform": Pattern("mov.u32 %r9, 5;", lambda x, y: 0 * x + 5),
    "row": Pattern("mov.u32 %r9, %r0;", lambda x, y: x),
    "stride 2": Pattern("shl.b32 %r9, %r0, 1;", lambda x, y: 2 * x),
    "stride 3": Pattern("mul.lo.s32 %r9, %r0, 3;", lambda x, y: 3 * x),
    "stride 4": Pattern("mul.lo.s32 %r9, %r0, 4;", lambda x, y: 4 * x),
    "reversed": Pattern("sub.s32 %r9, 47, %r0;", lambda x, y: 47 - x),
    "negative": Pattern("sub.s32 %r9, %r0, 20;", lambda x, y: x - 20),
    "column": Pattern("and.b32 %r9, %r0, 15;", lambda x, y: x & 15),
    "pairs": Pattern("shr.u32 %r9, %r0, 1;", lambda x, y: x >> 1),
    "tile": Pattern("mad.lo.s32 %r9, %r1, 17, %r0;", lambda x, y: 17 * y + x),
    "mixed": Pattern("mul.lo.s32 %r9, %r0, %r0; and.b32 %r9, %r9, 63;", lambda x, y: x * x & 63),
    "swapped": Pattern("xor.b32 %r9, %r0, 5;", lambda x, y: x ^ 5),
}
DISTINCT = ["row", "stride 2", "stride 3", "stride 4", "reversed", "negative", "tile", "swapped"]
TYPES = ["u8", "s16", "u32", "f64", "v2.u8", "v4.u8", "v4.u16", "v2.u32", "v4.f32", "v2.u64", "v2.b16"]
BLOCKS = [(48, 1, 1), (16, 3, 1)]
FILL = """\
  cvta.to.global.u64 %rd20, %rd1;
  mov.u32 %r20, %tid.y; mov.u32 %r21, %ntid.x; mov.u32 %r22, %tid.x; mad.lo.s32 %r20, %r20, %r21, %r22;
  shl.b32 %r20, %r20, 2;
FILL:
  cvt.u64.u32 %rd21, %r20; add.s64 %rd22, %rd20, %rd21;
  ld.global.u32 %r23, [%rd22];
  mov.u32 %r24, s; add.s32 %r24, %r24, %r20;
  st.shared.u32 [%r24], %r23;
  add.s32 %r20, %r20, 192;
  setp.lt.u32 %p1, %r20, 8192;
  @%p1 bra FILL;
  bar.sync 0;
"""
SPACES = ["global", "shared", "generic"]


def parts(kind: str) -> tuple[int, str, int]:
    """Elements, element type and bytes of ``v4.f32`` and the like."""
    count, element = (int(kind[1]), kind[3:]) if kind.startswith("v") else (1, kind)
    return count, element, count * int(element[1:]) // 8


def registers(kind: str) -> str:
    count, element, _ = parts(kind)
    prefix = {"f32": "%f", "f64": "%d", "u64": "%rd", "u32": "%r"}.get(element, "%h")
    names = [f"{prefix}{10 + index}" for index in range(count)]
    return names[0] if count == 1 else "{" + ", ".join(names) + "}"


def address(space: str, size: int, number: int) -> str:
    """The address of element %r9 of the data in ``space``, by different arithmetic for each number."""
    if space == "shared" and number % 2:
        return f"mov.u32 %r50, s; mad.lo.s32 %r51, %r9, {size}, %r50;\n", f"[%r51+{MIDDLE}]"
    widen = [
        f"mul.wide.s32 %rd3, %r9, {size};",
        f"cvt.s64.s32 %rd3, %r9; mul.lo.s64 %rd3, %rd3, {size};",
        f"cvt.s64.s32 %rd3, %r9; shl.b64 %rd3, %rd3, {size.bit_length() - 1};",
    ][number % 3]
    base = {"global": "%rd1", "shared": "s", "generic": "%rd5" if number % 2 else "%rd1"}[space]
    start = "mov.u64 %rd6, s; cvta.shared.u64 %rd5, %rd6;" if base == "%rd5" else ""
    if base == "s":
        start, base = "mov.u64 %rd5, s;", "%rd5"
    return f"{start}\n  {widen} add.s64 %rd4, {base}, %rd3;\n", f"[%rd4+{MIDDLE}]"


def coordinates(block: tuple[int, int, int]) -> tuple[Threads, str]:
    rank = "mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0;"
    return Threads(1, block), rank


@pytest.fixture(scope="module")
def data() -> NDArray[np.uint8]:
    return np.random.default_rng(SEED).integers(0, 256, BYTES, dtype=np.uint8)


def elements(data: NDArray[np.uint8], index: Index, size: int) -> NDArray[np.uint8]:
    """The bytes of the elements at ``index``, one row for each."""
    return data[MIDDLE + index[:, None] * size + np.arange(size)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", TYPES)
def test_load(kind: str, block: tuple[int, int, int], data: NDArray[np.uint8]) -> None:
    _, element, size = parts(kind)
    threads, rank = coordinates(block)
    body = f"ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];\n{FILL}\n{rank}\n"
    body += f"mul.wide.u32 %rd8, %r3, {size}; add.s64 %rd2, %rd2, %rd8;\n"
    expected = []
    for space in SPACES:
        for number, pattern in enumerate(PATTERNS.values()):
            compute, where = address(space, size, number)
            named = "" if space == "generic" else f".{space}"
            vector = kind[: -len(element)]
            body += f"{pattern.ptx} {compute} ld{named}.{vector}{element} {registers(kind)}, {where};\n"
            place = len(expected) * threads.count * size
            body += f"st.global.{vector}{element} [%rd2+{place}], {registers(kind)};\n"
            expected.append(elements(data, pattern.index(threads.tid[0], threads.tid[1]), size))
    ptx = kernel(body + "ret;", ".param .u64 in, .param .u64 out", f".shared .align 16 .b8 s[{BYTES}];")
    out = np.zeros((len(expected), threads.count, size), np.uint8)
    run(ptx, 1, block, data, out)
    np.testing.assert_array_equal(out, np.array(expected))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("kind", TYPES)
def test_store(kind: str, block: tuple[int, int, int], data: NDArray[np.uint8]) -> None:
    """Each pattern stores to its own copy of the data; threads for which the guard is false store nothing."""
    _, element, size = parts(kind)
    threads, rank = coordinates(block)
    vector = kind[: -len(element)]
    body = f"ld.param.u64 %rd7, [in]; ld.param.u64 %rd1, [out];\n{rank}\n"
    body += f"mul.wide.u32 %rd8, %r3, {size}; add.s64 %rd7, %rd7, %rd8; ld.global.{vector}{element} {registers(kind)}, [%rd7];\n"
    body += "setp.ne.s32 %p2, %r3, 7;\n"
    out = np.zeros((len(DISTINCT), BYTES), np.uint8)
    expected = out.copy()
    source = data[: threads.count * size].reshape(threads.count, size)
    for number, name in enumerate(DISTINCT):
        compute, where = address("global", size, number)
        guard = "@%p2 " if number % 2 else ""
        body += f"{PATTERNS[name].ptx} {compute} {guard}st.global.{vector}{element} {where}, {registers(kind)};\n"
        body += f"add.s64 %rd1, %rd1, {BYTES};\n"
        index = PATTERNS[name].index(threads.tid[0], threads.tid[1])
        for rank_of, place in enumerate(index):
            if not guard or rank_of != 7:
                start = MIDDLE + int(place) * size
                expected[number, start : start + size] = source[rank_of]
    run(kernel(body + "ret;", ".param .u64 in, .param .u64 out"), 1, block, data, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", ["u8", "u32", "v2.u16", "f64", "v4.f32"])
def test_shared_store(kind: str, data: NDArray[np.uint8]) -> None:
    """Threads write shared memory in one pattern each round; the whole window is then copied out."""
    _, element, size = parts(kind)
    block = (48, 1, 1)
    threads, rank = coordinates(block)
    vector = kind[: -len(element)]
    body = f"ld.param.u64 %rd7, [in]; ld.param.u64 %rd1, [out];\n{rank}\n"
    body += f"mul.wide.u32 %rd8, %r3, {size}; add.s64 %rd8, %rd7, %rd8; ld.global.{vector}{element} {registers(kind)}, [%rd8];\n"
    expected = np.zeros((len(DISTINCT), BYTES), np.uint8)
    source = data[: threads.count * size].reshape(threads.count, size)
    memory = np.zeros(BYTES, np.uint8)
    body += copy_shared("%rd1", f"CLEAR{kind.replace('.', '')}", store=True)
    for number, name in enumerate(DISTINCT):
        compute, where = address("shared", size, number)
        body += f"{PATTERNS[name].ptx} {compute} st.shared.{vector}{element} {where}, {registers(kind)};\nbar.sync 0;\n"
        body += copy_shared("%rd1", f"COPY{number}", store=False)
        body += f"add.s64 %rd1, %rd1, {BYTES};\n"
        for rank_of, place in enumerate(PATTERNS[name].index(threads.tid[0], threads.tid[1])):
            start = MIDDLE + int(place) * size
            memory[start : start + size] = source[rank_of]
        expected[number] = memory
    out = np.zeros_like(expected)
    ptx = kernel(body + "ret;", ".param .u64 in, .param .u64 out", f".shared .align 16 .b8 s[{BYTES}];")
    run(ptx, 1, block, data, out)
    np.testing.assert_array_equal(out, expected)


def copy_shared(target: str, label: str, *, store: bool) -> str:
    """All threads clear shared memory (``store``), or copy it to global memory."""
    if store:
        act = "mov.u32 %r43, 0; st.shared.u32 [%r44], %r43;"
    else:
        act = f"ld.shared.u32 %r43, [%r44]; cvt.u64.u32 %rd40, %r40; add.s64 %rd40, {target}, %rd40; st.global.u32 [%rd40], %r43;"
    return f"""
  shl.b32 %r40, %r3, 2;
{label}:
  mov.u32 %r44, s; add.s32 %r44, %r44, %r40;
  {act}
  add.s32 %r40, %r40, 192;
  setp.lt.u32 %p4, %r40, {BYTES};
  @%p4 bra {label};
  bar.sync 0;
"""


@pytest.mark.parametrize("kind", ["u8", "s16", "u32", "u64", "v2.u32", "v4.f32"])
def test_local(kind: str) -> None:
    """Each thread writes its own local array in one order and reads it in another, also through generic addresses."""
    _, element, size = parts(kind)
    block = (40, 1, 1)
    threads, rank = coordinates(block)
    vector = kind[: -len(element)]
    slots = 16
    data = np.random.default_rng(SEED).integers(0, 256, (slots, threads.count, size), dtype=np.uint8)
    body = f"""
  .local .align 16 .b8 depot[{slots * size}];
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  {rank}
  mul.wide.u32 %rd8, %r3, {size}; add.s64 %rd1, %rd1, %rd8; add.s64 %rd2, %rd2, %rd8;
  mov.u64 %rd20, depot; cvta.local.u64 %rd21, %rd20;
  mov.u32 %r30, 0;
LOOP:
  mul.wide.u32 %rd30, %r30, {threads.count * size}; add.s64 %rd31, %rd1, %rd30; add.s64 %rd32, %rd2, %rd30;
  ld.global.{vector}{element} {registers(kind)}, [%rd31];
  add.s32 %r31, %r30, %r0; and.b32 %r31, %r31, {slots - 1};
  mul.wide.u32 %rd33, %r31, {size}; add.s64 %rd34, %rd20, %rd33; add.s64 %rd35, %rd21, %rd33;
  st.local.{vector}{element} [%rd34], {registers(kind)};
  add.s32 %r30, %r30, 1;
  setp.lt.s32 %p1, %r30, {slots};
  @%p1 bra LOOP;
  mov.u32 %r30, 0;
BACK:
  mul.wide.u32 %rd30, %r30, {2 * threads.count * size}; add.s64 %rd32, %rd2, %rd30;
  mul.wide.u32 %rd33, %r30, {size}; add.s64 %rd34, %rd20, %rd33; add.s64 %rd35, %rd21, %rd33;
  ld.local.{vector}{element} {registers(kind)}, [%rd34];
  st.global.{vector}{element} [%rd32], {registers(kind)};
  ld.{vector}{element} {registers(kind)}, [%rd35];
  st.global.{vector}{element} [%rd32+{threads.count * size}], {registers(kind)};
  add.s32 %r30, %r30, 1;
  setp.lt.s32 %p1, %r30, {slots};
  @%p1 bra BACK;
  ret;"""
    out = np.zeros((slots, 2, threads.count, size), np.uint8)
    run(kernel(body, ".param .u64 in, .param .u64 out"), 1, block, data, out)
    for slot in range(slots):
        for thread in range(threads.count):
            expected = data[(slot - thread) % slots, thread]
            np.testing.assert_array_equal(out[slot, 0, thread], expected)
            np.testing.assert_array_equal(out[slot, 1, thread], expected)


def test_constant_and_parameter_arrays() -> None:
    """Dynamic indexes into .const memory and into a struct parameter."""
    table = ", ".join(str(value * value) for value in range(64))
    body = """
  ld.param.u64 %rd1, [out];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;
  mov.u64 %rd3, table; add.s64 %rd4, %rd3, %rd2; ld.const.u32 %r1, [%rd4];
  xor.b32 %r2, %r0, 9; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd3, %rd5; ld.const.u32 %r3, [%rd6+4];
  cvta.const.u64 %rd7, %rd6; ld.u32 %r4, [%rd7];
  mov.u64 %rd8, block; and.b32 %r5, %r0, 7; mul.wide.u32 %rd9, %r5, 4; add.s64 %rd10, %rd8, %rd9; ld.param.u32 %r6, [%rd10];
  ld.param.v2.u32 {%r7, %r8}, [block+8];
  st.global.u32 [%rd1], %r1; st.global.u32 [%rd1+128], %r3; st.global.u32 [%rd1+256], %r4; st.global.u32 [%rd1+384], %r6;
  add.s32 %r9, %r7, %r8; st.global.u32 [%rd1+512], %r9;
  ret;"""
    parameters = ".param .u64 out, .param .align 8 .b8 block[32]"
    block = np.arange(100, 108, dtype=np.uint32)
    out = np.zeros((5, 32), np.uint32)
    run(kernel(body, parameters, f".const .align 4 .u32 table[64] = {{{table}}};"), 1, 32, out, block.tobytes())
    x = np.arange(32)
    expected = [x * x, ((x ^ 9) + 1) ** 2, (x ^ 9) ** 2, 100 + (x & 7), np.full(32, 102 + 103)]
    np.testing.assert_array_equal(out, np.array(expected))


POINTER_LOOP = """
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [start];
  mov.u32 %r3, %tid.x; add.s32 %r4, %r3, %r2;
  mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;
  mul.wide.u32 %rd5, %r3, 8; add.s64 %rd2, %rd2, %rd5;
  mov.u64 %rd6, 0;
  setp.lt.s32 %p1, %r1, 1; @%p1 bra DONE;
LOOP:
  ld.global.u32 %r5, [%rd4]; cvt.u64.u32 %rd7, %r5; add.s64 %rd6, %rd6, %rd7;
  ld.global.u32 %r6, [%rd4+128]; cvt.u64.u32 %rd8, %r6; xor.b64 %rd6, %rd6, %rd8;
  add.s64 %rd4, %rd4, 4;
  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p2, %r1, 0; @%p2 bra LOOP;
DONE:
  st.global.u64 [%rd2], %rd6;
  ret;"""


@pytest.mark.parametrize("start", [0, 5, -3])
@pytest.mark.parametrize("trips", [0, 1, 17])
def test_pointer_loop(start: int, trips: int) -> None:
    """A pointer that starts from a widened index and moves along in a loop."""
    data = np.random.default_rng(SEED).integers(0, 2**32, 256, dtype=np.uint32)
    out = np.zeros(40, np.uint64)
    parameters = ".param .u64 in, .param .u64 out, .param .u32 n, .param .u32 start"
    whole = np.concatenate([np.zeros(8, np.uint32), data])
    buffer = default_device().to_device(whole)
    run(kernel(POINTER_LOOP, parameters), 1, 40, buffer.address + 32, out, trips, start % 2**32)
    for thread in range(40):
        total = 0
        for step in range(trips):
            place = 8 + thread + start + step
            total = (total + int(whole[place])) ^ int(whole[place + 32])
        assert int(out[thread]) == total


WRAPPING = """
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [base];
  mov.u32 %r3, %tid.x; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd2, %rd2, %rd5;
  mov.u32 %r10, 0;
OUTER:
  add.s32 %r4, %r3, %r1; add.s32 %r4, %r4, %r10;
  cvt.u64.u32 %rd3, %r4; shl.b64 %rd3, %rd3, 2; add.s64 %rd4, %rd1, %rd3;
  sub.s64 %rd4, %rd4, 17179869056;
  setp.lt.u32 %p1, %r4, 4096;
  @%p1 add.s64 %rd4, %rd4, 17179869184;
  ld.global.u32 %r5, [%rd4];
  st.global.u32 [%rd2], %r5;
  add.s64 %rd2, %rd2, 160;
  add.s32 %r10, %r10, 16;
  setp.lt.s32 %p2, %r10, 64; @%p2 bra OUTER;
  ret;"""


def test_index_that_wraps_in_the_middle_of_a_warp() -> None:
    """Unsigned indexes 2**32 - 32 ... wrap to 0 ... lane by lane; each must find its own element, in every iteration."""
    data = np.random.default_rng(SEED).integers(0, 2**32, 256, dtype=np.uint32)
    out = np.zeros((4, 40), np.uint32)
    run(kernel(WRAPPING, ".param .u64 in, .param .u64 out, .param .u32 base"), 1, 40, data, out, 2**32 - 32)
    index = np.arange(40) + 16 * np.arange(4)[:, None]
    np.testing.assert_array_equal(out, data[index])


def test_accesses_off_a_base_of_their_block_share_a_test() -> None:
    """There is a version without tests, even where the base is made in the same block."""
    loads = " ".join(f"ld.global.u32 %r{i}, [%rd2+{4 * i}]; add.u32 %r10, %r10, %r{i};" for i in range(1, 8))
    begin = "ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; add.u64 %rd2, %rd2, 16; mov.u32 %r10, 0;"
    text = kernel(f"{begin} {loads} st.global.u32 [%rd1], %r10;", ".param .u64 out, .param .u64 words")
    code = str(compile.emit(compile.front(text), "k", compile.Options(), "llvm"))
    assert max(block.count("load i32, ptr") for block in code.split("\n\n")) >= 7
    out, words = np.zeros(1, np.uint32), np.arange(16, dtype=np.uint32)
    run(text, 1, 32, out, words)
    assert out[0] == words[5:12].sum()


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("kind", ["u32", "u64"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_columns_of_narrow_blocks(width: int, kind: str, space: str) -> None:
    """All rows of a block read the same places, 68 or 136 bytes apart; lanes of some rows and columns are off."""
    size, register = int(kind[1:]) // 8, "%r10" if kind == "u32" else "%rd10"
    fill = f"mov.u64 %rd3, tile; mul.wide.u32 %rd4, %r5, {size}; add.u64 %rd4, %rd4, %rd3; st.shared.{kind} [%rd4], {register};"
    begin = f"mov.u64 %rd3, %rd2;{'' if space == 'global' else fill + 'bar.sync 0;'}"
    body = f"""
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r5, %r3, %r4, %r2; mul.wide.u32 %rd5, %r5, {size}; add.u64 %rd1, %rd1, %rd5; add.u64 %rd6, %rd2, %rd5;
    ld.global.{kind} {register}, [%rd6]; {begin}
    mul.wide.u32 %rd7, %r2, {17 * size}; add.u64 %rd7, %rd7, %rd3;
    setp.eq.u32 %p1, %r3, 1; @%p1 bra OVER; setp.eq.u32 %p1, %r2, 5; @%p1 bra OVER;
    ld.{space}.{kind} {register}, [%rd7+{size}];
    st.global.{kind} [%rd1], {register};
    OVER:"""
    words = np.random.default_rng(SEED).integers(0, 1 << 31, 1024).astype(f"u{size}")
    out = np.zeros((1024 // width, width), words.dtype)
    run(
        kernel(body, ".param .u64 out, .param .u64 words", ".shared .align 16 .b8 tile[8192];\n"),
        1,
        (width, 1024 // width, 1),
        out,
        words,
    )
    expected = np.tile(words[17 * np.arange(width) + 1], (1024 // width, 1))
    expected[1] = expected[:, 5] = 0
    np.testing.assert_array_equal(out, expected)
