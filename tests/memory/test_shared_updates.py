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
