"""red on shared memory in loops: updates without calls, with operands that lanes share and such of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

THREADS, TRIPS, WORDS = 128, 5, 37
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def text(name: str, bits: int, value: str, place: str, guard: str = "") -> str:
    """Trip t of thread i updates a word that ``place`` leaves in r5 with ``value``, in rd5: both may use i (r0) and t (r4)."""
    kind = f"{'u' if name == 'add' else 'b'}{bits}"
    operand = "%rd5" if bits == 64 else "%r6"
    size = bits // 8
    body = f"""
  .shared .align 8 .b8 table[{WORDS * size}];
  ld.param.u64 %rd1, [out]; mov.u32 %r3, table; mov.u32 %r4, 0;
  mad.lo.u32 %r7, %r0, {size}, %r3; setp.lt.u32 %p1, %r0, {WORDS}; mov.u64 %rd2, 0x123456789abcdef0; cvt.u32.u64 %r8, %rd2;
  @%p1 st.shared.u{bits} [%r7], {"%rd2" if bits == 64 else "%r8"};
  bar.sync 0;
LOOP:
  {place} rem.u32 %r5, %r5, {WORDS}; mad.lo.u32 %r5, %r5, {size}, %r3;
  {value} cvt.u32.u64 %r6, %rd5;
  {guard} red.shared.{name}.{kind} [%r5], {operand};
  add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, {TRIPS}; @%p2 bra LOOP;
  bar.sync 0;
  @!%p1 bra DONE;
  ld.shared.u{bits} %rd3, [%r7]; mul.wide.u32 %rd4, %r0, 8; add.u64 %rd1, %rd1, %rd4; st.global.u64 [%rd1], %rd3;
DONE:"""
    return kernel(GLOBAL_INDEX + body, ".param .u64 out")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("some", [False, True], ids=["all", "some"])
def test_updates_of_scattered_words(name: str, bits: int, own: bool, some: bool) -> None:
    value = "mul.wide.u32 %rd5, %r0, 0x9e3779b9;" if own else "mov.u64 %rd5, 0xfedcba9876543217;"
    place = "mad.lo.u32 %r5, %r0, 7, %r4;"
    guard = "and.b32 %r9, %r0, 3; setp.ne.u32 %p3, %r9, %r4; @%p3" if some else ""
    out = np.zeros(WORDS, np.uint64)
    ptxemu.loads(text(name, bits, value, place, guard))["k"][1, THREADS](out)
    operands: list[list[int]] = [[] for _ in range(WORDS)]
    for trip in range(TRIPS):
        for thread in range(THREADS):
            if not some or thread & 3 != trip:
                operands[(thread * 7 + trip) % WORDS].append(thread * 0x9E3779B9 if own else 0xFEDCBA9876543217)
    most = 2**bits - 1
    start = 0x123456789ABCDEF0 & most
    expected = [reduce(OPERATIONS[name], (word & most for word in words), start) & most for words in operands]
    np.testing.assert_array_equal(out, np.array(expected, np.uint64))


def test_one_word_of_all_lanes() -> None:
    """Which the runtime combines."""
    out = np.zeros(WORDS, np.uint64)
    ptxemu.loads(text("add", 32, "mov.u64 %rd5, 3;", "mov.u32 %r5, %r4;"))["k"][1, THREADS](out)
    start = 0x9ABCDEF0
    expected = [start + 3 * THREADS * (word < TRIPS) for word in range(WORDS)]
    np.testing.assert_array_equal(out, np.array(expected, np.uint64) % 2**32)


def test_a_fault_names_the_lane() -> None:
    bad = "mad.lo.u32 %r5, %r0, 7, %r4;"
    far = "setp.eq.u32 %p3, %r0, 77; @%p3 add.u32 %r5, %r5, 4096;"
    program = text("add", 32, "mov.u64 %rd5, 3;", bad).replace("red.shared", f"{far} red.shared")
    with pytest.raises(ptxemu.Fault, match=r"thread \(77,0,0\)"):
        ptxemu.loads(program)["k"][1, THREADS](np.zeros(WORDS, np.uint64))


@pytest.mark.parametrize("by", [0, 4, 1 << 31, -4 * THREADS, 1, 2])
def test_words_to_the_end_of_the_window(by: int) -> None:
    """Threads update words of their own; that of the last word, thread 5, goes astray by so many bytes."""
    body = f"""
  .shared .align 8 .b8 table[{THREADS * 4}];
  ld.param.u64 %rd1, [out]; xor.b32 %r6, %r0, 5; mov.u32 %r7, {THREADS - 1}; sub.u32 %r6, %r7, %r6;
  mul.lo.u32 %r5, %r6, 4; mov.u32 %r3, table; add.u32 %r5, %r5, %r3; st.shared.u32 [%r5], %r6; bar.sync 0;
  setp.eq.u32 %p1, %r6, %r7; @%p1 add.u32 %r5, %r5, {by};
  red.shared.add.u32 [%r5], 7; bar.sync 0;
  mad.lo.u32 %r5, %r0, 4, %r3; ld.shared.u32 %r6, [%r5]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r6;"""
    out = np.zeros(THREADS, np.uint32)
    module = ptxemu.loads(kernel(GLOBAL_INDEX + body, ".param .u64 out"), filename="test.ptx")
    if by:
        with pytest.raises(ptxemu.Fault, match=r"thread \(5,0,0\)"):
            module["k"][1, THREADS](out)
    else:
        module["k"][1, THREADS](out)
        np.testing.assert_array_equal(out, np.arange(THREADS) + 7)


SPECIAL = np.array([0, 1, 1 << 31, 0x80000001, 0x7FFFFF, 0x7F800000, 0xFF800000, 0x7FC12345, 0xFFA00001, 0x3F800000], "u4")
"""Bits of f32: zeros, subnormals, infinities, NaNs, one."""
SUMS = """
  .shared .align 4 .b8 table[256];
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [values]; mov.u32 %r3, table; mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3; ld.global.u32 %r6, [%rd2]; ld.global.u32 %r8, [%rd2+512];
  and.b32 %r4, %r0, 63; mad.lo.u32 %r4, %r4, 4, %r3; setp.lt.u32 %p1, %r0, 64; @%p1 st.shared.u32 [%r4], %r8;
  bar.sync 0; setp.ge.u32 %p2, %r0, 32; @%p2 bra DONE;
  mul.lo.u32 %r5, %r0, {factor}; and.b32 %r5, %r5, 63; mad.lo.u32 %r5, %r5, 4, %r3; mov.u32 %r9, 0;
LOOP: {value} {guard} red.shared.add.f32 [%r5], %f1;
  add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, {trips}; @%p3 bra LOOP;
DONE: bar.sync 0; @%p1 ld.shared.u32 %r7, [%r4]; @%p1 st.global.u32 [%rd1], %r7;"""


@pytest.mark.parametrize("trips", [1, 3])
@pytest.mark.parametrize("factor", [1, 3, 2, 16])
@pytest.mark.parametrize("value", ["mov.b32 %f1, %r6;", "mov.f32 %f1, 0f00000001;", "mov.f32 %f1, 0f7FA00000;"])
@pytest.mark.parametrize("guard", ["", "and.b32 %r10, %r0, 3; setp.ne.u32 %p4, %r10, 1; @%p4"])
def test_sums_of_floats_in_the_order_of_lanes(guard: str, value: str, factor: int, trips: int) -> None:
    """Bit by bit those of the interpreter: subnormals stay, NaNs are canonical."""
    random = np.random.default_rng(factor)
    values = np.where(random.random(256) < 0.3, random.choice(SPECIAL, 256), random.normal(size=256).astype("f4").view("u4"))
    program = kernel(
        GLOBAL_INDEX + SUMS.format(factor=factor, trips=trips, value=value, guard=guard), ".param .u64 out, .param .u64 values"
    )
    found = []
    for engine, tier in (("jit", "best"), ("jit", "fast"), ("interpreter", "best")):
        with ptxemu.Device(memory="64 MiB", engine=engine) as device:
            out = device.to_device(np.zeros(THREADS, np.uint32))
            ptxemu.loads(program, device=device, tier=tier)["k"][1, THREADS](out, values.astype(np.uint32))
            found.append(np.asarray(out.copy_to_host()))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[2])
