"""Divergent control flow, thread by thread against Python, and launches of every shape.

``data/kernels/control_flow.cu`` is the source of the compiled kernels; the others are written for what compilers seldom emit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from ptxemu.driver import compile
from ptxemu.driver.lowering import Options
from tests.support.kernel_tools import GLOBAL_INDEX, Extent, Threads, kernel, run
from tests.support.places import KERNELS

M32 = 0xFFFFFFFF
Words = NDArray[np.uint32]


@pytest.fixture(scope="module")
def compiled() -> ptxemu.Module:
    return ptxemu.load(KERNELS / "control_flow.ptx")


@pytest.fixture(scope="module")
def words() -> Words:
    return np.random.default_rng(3).integers(0, 2**32, 1024, dtype=np.uint32)


def each(function: Callable[..., int | tuple[int, ...]], *columns: object) -> NDArray[np.int64]:
    return np.array([function(*row) for row in zip(*columns)])


def nested(t: int, n: int) -> int:
    h = t
    for i in range(n):
        if (i + t) % 5 == 3:
            continue
        for j in range(t & 3, 12):
            if h >> 3 & 7 == 5:
                h = h + 17 & M32
                break
            if j & 1:
                h ^= j * 2654435761 & M32
                continue
            h = h * 31 + i & M32
        if h % 61 == 7:
            break
        h = h + 3 & M32
    return h


@pytest.mark.parametrize("n", [0, 1, 9])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (2, 45), (3, 1)])
def test_nested_loops(compiled: ptxemu.Module, grid: int, block: int, n: int) -> None:
    out = np.zeros(grid * block, np.uint32)
    compiled["nested"][grid, block](out, n)
    np.testing.assert_array_equal(out, [nested(t, n) for t in range(grid * block)])


def early_return(t: int, limit: int) -> int:
    total, i = 0, 0
    while True:
        total += i * (t + 1)
        if i == limit:
            return total
        if total > 5000:
            return total | 1 << 31
        i += 1


def test_early_return(compiled: ptxemu.Module) -> None:
    n = 150
    limit = np.random.default_rng(1).integers(-1, 30, n).astype(np.int32)
    out = np.full(192, 9, np.uint32)
    compiled["early_return"][3, 64](out, limit, n)
    np.testing.assert_array_equal(out[:n], each(early_return, range(n), limit.tolist()))
    np.testing.assert_array_equal(out[n:], 9)


def collatz(v: int) -> tuple[int, int, int]:
    top, before, count = v, 0, 0
    while v > 1:
        before, v = v, 3 * v + 1 if v & 1 else v // 2
        top, count = max(top, v), count + 1
    return count, top, before


@pytest.mark.parametrize("block", [32, 50, 96])
def test_trip_counts_that_vary(compiled: ptxemu.Module, block: int) -> None:
    """Values carried out of a loop are those of each lane's own last iteration; seeds 0 and 1 make no trip at all."""
    seeds = np.random.default_rng(block).integers(0, 3000, 2 * block).astype(np.uint32)
    seeds[:5] = [0, 1, 0, 27, 1]
    out = np.zeros((3, 2 * block), np.uint32)
    compiled["collatz"][2, block](seeds, *out)
    np.testing.assert_array_equal(out.T, each(collatz, seeds.tolist()))
    idle = np.zeros(block, np.uint32)
    compiled["collatz"][1, block](idle, *out)
    assert not out[:, :block].any()


def pending(v: int, uniform: int) -> int:
    h = 1
    if v & 1:
        if uniform > 3:
            for i in range(uniform):
                h = h * 5 + (i if v & 2 else 1) & M32
        else:
            h = 100
        if v & 4:
            h = h + 7 & M32
            h = h * 3 & M32 if uniform & 1 else h ^ v
    elif uniform == 5:
        h = v // 2 + uniform
        while h > 40:
            h = h // 2 + uniform
    return h


@pytest.mark.parametrize("uniform", [0, 3, 4, 5, 8])
def test_uniform_branches_while_lanes_wait(compiled: ptxemu.Module, words: Words, uniform: int) -> None:
    out = np.zeros(80, np.uint32)
    compiled["pending"][1, 80](out, words, uniform)
    np.testing.assert_array_equal(out, [pending(int(v), uniform) for v in words[:80]])


def two_exits(v: int, n: int) -> tuple[int, int]:
    i = 0
    while True:
        v = v * 1664525 + 1013904223 & M32
        if v % 7 == 0:
            return i, v
        i += 1
        if i >= n:
            return i, M32


@pytest.mark.parametrize("n", [0, 1, 6, 1000])
def test_endless_loop_with_two_exits(compiled: ptxemu.Module, words: Words, n: int) -> None:
    out = np.zeros((70, 2), np.uint32)
    compiled["two_exits"][1, 70](out, words, n)
    np.testing.assert_array_equal(out, [two_exits(int(v), n) for v in words[:70]])


def rounds(data: list[int], count: int) -> list[int]:
    s, n = list(data), len(data)
    for i in range(count):
        seen = []
        for t in range(n):
            v = s[(t + i + 1) % n]
            k = 0 if v & 1 else 8
            while k < v & 7:
                v, k = v * 3 + k & M32, k + 1
            seen.append(v)
        s = [old if t % 3 == i % 3 else old ^ v for t, (old, v) in enumerate(zip(s, seen))]
    return s


@pytest.mark.parametrize("block", [(32, 1, 1), (16, 3, 1), (5, 7, 2), (1, 64, 1), (100, 1, 1), (32, 8, 4)])
def test_barriers_in_a_uniform_loop(compiled: ptxemu.Module, words: Words, block: Extent) -> None:
    n = int(np.prod(block))
    out = np.zeros((2, n), np.uint32)
    data = np.resize(words, (2, n))
    compiled["rounds"][2, block](out, data, 5)
    np.testing.assert_array_equal(out, [rounds(row, 5) for row in data.tolist()])


BLOCKS = [(8, 8, 1), (16, 16, 1), (16, 3, 1), (5, 7, 2), (32, 4, 1), (1, 64, 1), (1024, 1, 1), (3, 3, 3), (1, 1, 64),
          (33, 2, 1), (2, 16, 4), (64, 1, 3), (8, 3, 5), (4, 8, 2), (1, 1, 1), (31, 1, 1)]  # fmt: skip
GRIDS = [(1, 1, 1), (3, 2, 2), (1, 4, 1), (2, 1, 3)]


@pytest.mark.parametrize("block", BLOCKS)
def test_coordinates(compiled: ptxemu.Module, block: Extent) -> None:
    """Every thread of every block exists once, with its own coordinates."""
    for grid in GRIDS:
        threads = Threads(grid, block)
        out = np.zeros((threads.count, 12), np.uint32)
        compiled["coordinates"][grid, block](out)
        sizes = [np.full(threads.count, extent) for extent in (*block, *grid)]
        np.testing.assert_array_equal(out, np.stack([*threads.tid, *threads.ctaid, *sizes], 1))


STORE = "  mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1; ret;\n"


def unstructured(t: int) -> int:
    """Two entries into a loop body and a jump from one arm of a branch into the other."""
    r, fuel = t, 20
    at = "B" if t % 3 == 0 else "A"
    while True:
        if at == "A":
            r, at = r * 3 + 1 & M32, "C" if r & 4 else "B"
        elif at == "B":
            fuel -= 1
            r, at = r + 5 & M32, "D" if fuel == 0 else "A" if r & 1 else "C"
        elif at == "C":
            fuel -= 1
            r, at = r ^ r >> 2, "D" if fuel <= 0 else "B"
        else:
            return r


UNSTRUCTURED = f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %r0; mov.u32 %r2, 20; rem.u32 %r3, %r0, 3; setp.eq.u32 %p1, %r3, 0;
  @%p1 bra B;
A:
  and.b32 %r4, %r1, 4; setp.ne.u32 %p2, %r4, 0;
  mad.lo.u32 %r1, %r1, 3, 1;
  @%p2 bra C;
B:
  sub.s32 %r2, %r2, 1;
  and.b32 %r4, %r1, 1; setp.ne.u32 %p2, %r4, 0;
  add.u32 %r1, %r1, 5;
  setp.eq.s32 %p3, %r2, 0;
  @%p3 bra D;
  @%p2 bra A;
C:
  sub.s32 %r2, %r2, 1;
  shr.u32 %r5, %r1, 2; xor.b32 %r1, %r1, %r5;
  setp.le.s32 %p3, %r2, 0;
  @!%p3 bra B;
D:
{STORE}"""


@pytest.mark.parametrize("block", [32, 70])
def test_jumps_into_loops(block: int) -> None:
    out = np.zeros(2 * block, np.uint32)
    run(kernel(UNSTRUCTURED), 2, block, out)
    np.testing.assert_array_equal(out, [unstructured(t) for t in range(2 * block)])


SWITCH = f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [out]; mov.u32 %r1, 0; and.b32 %r2, %r0, 3;
  mov.u32 %r3, %r0;
AGAIN:
  rem.u32 %r4, %r3, 4;
table: .branchtargets ZERO, ONE, TWO, THREE;
  brx.idx %r4, table;
ZERO:
  add.u32 %r1, %r1, 1;
  bra NEXT;
ONE:
  mul.lo.u32 %r1, %r1, 3;
TWO:
  add.u32 %r1, %r1, 7;
  bra NEXT;
THREE:
  setp.gt.u32 %p1, %r1, 200;
  @%p1 bra DONE;
  xor.b32 %r1, %r1, 21;
NEXT:
  shr.u32 %r3, %r3, 1;
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra AGAIN;
DONE:
{STORE}"""


def switch(t: int) -> int:
    r, key = 0, t
    while True:
        case = key % 4
        if case == 0:
            r += 1
        elif case == 1:
            r = r * 3 + 7
        elif case == 2:
            r += 7
        elif r > 200:
            return r
        else:
            r ^= 21
        key >>= 1
        if key == 0:
            return r


def test_switch_in_a_loop() -> None:
    out = np.zeros(300, np.uint32)
    run(kernel(SWITCH), 3, 100, out)
    np.testing.assert_array_equal(out, [switch(t) for t in range(300)])


PREDICATED = f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [out]; mov.u32 %r1, 5; mov.u32 %r2, 9; mov.u32 %r3, 0;
LOOP:
  and.b32 %r4, %r0, 7; setp.gt.u32 %p1, %r4, %r3;
  @%p1 mov.u32 %r5, %r1;
  @%p1 mov.u32 %r1, %r2;
  @%p1 mov.u32 %r2, %r5;
  @!%p1 add.u32 %r1, %r1, %r3;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, 6;
  @%p2 bra LOOP;
  mad.lo.u32 %r1, %r2, 1000, %r1;
{STORE}"""


def predicated(t: int) -> int:
    a, b = 5, 9
    for i in range(6):
        if t & 7 > i:
            a, b = b, a
        else:
            a += i
    return b * 1000 + a


def test_predicated_swaps_in_a_loop() -> None:
    out = np.zeros(80, np.uint32)
    run(kernel(PREDICATED), 1, 80, out)
    np.testing.assert_array_equal(out, [predicated(t) for t in range(80)])


EXITS = f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [out]; mov.u32 %r1, 1;
  and.b32 %r2, %r0, 15; mov.u32 %r3, 0;
LOOP:
  setp.eq.u32 %p1, %r2, %r3;
  @%p1 exit;
  mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r1;
  mad.lo.u32 %r1, %r1, 7, %r3;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, 10;
  @%p2 bra LOOP;
  mov.u32 %r1, 77;
{STORE}"""


def test_exit_in_some_lanes() -> None:
    out = np.zeros(64, np.uint32)
    run(kernel(EXITS), 1, 64, out)

    def expected(t: int) -> int:
        value, written = 1, 0
        for i in range(10):
            if t & 15 == i:
                return written
            written, value = value, value * 7 + i & M32
        return 77

    np.testing.assert_array_equal(out, [expected(t) for t in range(64)])


BARRIER_AFTER_EXIT = f"""{GLOBAL_INDEX}
  .shared .align 4 .b32 s[128];
  ld.param.u64 %rd1, [out];
  mov.u32 %r10, s; mad.lo.u32 %r11, %r60, 4, %r10; st.shared.u32 [%r11], %r60;
  setp.ge.u32 %p1, %r60, 70;
  @%p1 exit;
  bar.sync 0;
  sub.u32 %r12, 69, %r60; mad.lo.u32 %r13, %r12, 4, %r10; ld.shared.u32 %r1, [%r13];
{STORE}"""


def test_exited_threads_do_not_hold_up_a_barrier() -> None:
    out = np.zeros(128, np.uint32)
    run(kernel(BARRIER_AFTER_EXIT), 1, 128, out)
    np.testing.assert_array_equal(out, np.where(np.arange(128) < 70, 69 - np.arange(128), 0))


CONTINUE = f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [out]; and.b32 %r10, %r60, 3; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
AGAIN:
  add.u32 %r1, %r1, 1; and.b32 %r4, %r1, 3; setp.ne.u32 %p1, %r4, %r10;
  @%p1 bra AGAIN;
  add.u32 %r2, %r2, %r1; add.u32 %r3, %r3, 1; atom.global.add.u32 %r5, [%rd1+256], 1; setp.lt.u32 %p2, %r2, 100;
  @%p2 bra AGAIN;
  mad.lo.u32 %r2, %r3, 1000, %r2;
{STORE.replace("%r1;", "%r2;")}"""


def test_lanes_that_go_round_a_loop_early() -> None:
    """What only the last trip of every lane is sure to reach is not reached by all lanes of a trip."""
    out = np.zeros(65, np.uint32)
    run(kernel(CONTINUE), 1, 64, out)

    def expected(t: int) -> tuple[int, int]:
        step, total, kept = 0, 0, 0
        while total < 100:
            step += 1
            if step & 3 == t & 3:
                total, kept = total + step, kept + 1
        return kept, total

    counts = [expected(t) for t in range(64)]
    assert list(out[:64]) == [kept * 1000 + total for kept, total in counts]
    assert out[64] == sum(kept for kept, _ in counts)


def test_a_predicate_that_was_never_written_is_false() -> None:
    out = np.zeros(33, np.uint32)
    body = f"""{GLOBAL_INDEX}
      mov.u32 %r1, 1;
      @%p1 add.u32 %r1, %r1, 2;
      @!%p1 add.u32 %r1, %r1, 4;
      @%p1 bra SKIP;
      add.u32 %r1, %r1, 8;
    SKIP:
      ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd1, %rd1; mad.wide.u32 %rd1, %r0, 4, %rd1;
      @!%p2 st.global.u32 [%rd1], %r1;
    """
    run(kernel(body), 1, 33, out)
    assert set(out.tolist()) == {13}


LEAVES = f"""
  ld.param.u64 %rd1, [out]; {GLOBAL_INDEX}
  and.b32 %r2, %r0, 7; shl.b32 %r3, %r2, 2; and.b32 %r4, %r0, 1; setp.eq.u32 %p1, %r4, 0;
  mov.u32 %r5, 0; mov.u32 %r6, 1;
TURN:
  setp.ge.u32 %p2, %r5, %r3; and.pred %p3, %p2, %p1; @%p3 bra EVEN;
  mad.lo.u32 %r6, %r6, 3, %r5; add.u32 %r5, %r5, 1;
  @!%p2 bra TURN;
  xor.b32 %r6, %r6, 0x55; bra DONE;
EVEN:
  add.u32 %r6, %r6, 1000;
DONE:
  mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r6;
  ret;"""


def leaving(t: int) -> int:
    value = 1
    for turn in range(100):
        past = turn >= (t & 7) * 4
        if past and t % 2 == 0:
            return value + 1000
        value = value * 3 + turn & M32
        if past:
            return value ^ 0x55
    raise AssertionError


@pytest.mark.parametrize("block", [1, 32, 45])
def test_lanes_leave_a_loop_by_two_ways_in_some_of_its_turns(block: int) -> None:
    module = ptxemu.loads(kernel(LEAVES, ".param .u64 out"))
    out = np.zeros(2 * block, np.uint32)
    module["k"][2, block](out)
    np.testing.assert_array_equal(out, [leaving(t) for t in range(2 * block)])


def test_turns_in_which_no_lane_leaves_blend_nothing() -> None:
    """What is behind the loop takes its values from the lanes that leave, where some do."""
    module = compile.front(kernel(LEAVES, ".param .u64 out"), "leaves.ptx")
    text = compile.lower(module, module.functions["k"], "row", Options()).text
    turns = re.findall(r"^none\d+:.*?^  br ", text, re.MULTILINE | re.DOTALL)
    assert len(turns) == 2 and not any("select" in turn for turn in turns)


# Each thread sorts a row of 40 in global memory, with a stack in local memory. Values alike are swapped.
QUICKSORT = kernel(
    GLOBAL_INDEX
    + """
  .local .align 4 .b8 stack[256];
  ld.param.u64 %rd1, [out]; mul.lo.u32 %r1, %r0, 160; cvt.u64.u32 %rd2, %r1; add.u64 %rd1, %rd1, %rd2;
  mov.u64 %rd2, stack; mov.u32 %r1, 0; st.local.v2.u32 [%rd2], {%r1, 39}; mov.u32 %r1, 1;
RANGE:
  sub.u32 %r1, %r1, 1; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd3, %rd3, %rd2; ld.local.u32 %r2, [%rd3]; ld.local.u32 %r3, [%rd3+4];
  setp.ge.s32 %p1, %r2, %r3; @%p1 bra NEXT;
  add.u32 %r4, %r2, %r3; shr.u32 %r4, %r4, 1; mad.wide.u32 %rd4, %r4, 4, %rd1; ld.global.s32 %r5, [%rd4];
  mov.u32 %r6, %r2; mov.u32 %r7, %r3;
PARTITION:
  mov.u32 %r10, %r6;
RIGHT:
  mov.u32 %r6, %r10; mad.wide.s32 %rd4, %r6, 4, %rd1; ld.global.s32 %r8, [%rd4];
  add.u32 %r10, %r6, 1; setp.lt.s32 %p1, %r8, %r5; @%p1 bra RIGHT;
  mov.u32 %r11, %r7;
LEFT:
  mov.u32 %r7, %r11; mad.wide.s32 %rd5, %r7, 4, %rd1; ld.global.s32 %r9, [%rd5];
  sub.u32 %r11, %r7, 1; setp.gt.s32 %p1, %r9, %r5; @%p1 bra LEFT;
  setp.gt.s32 %p1, %r6, %r7; @%p1 bra KEPT;
  st.global.u32 [%rd4], %r9; st.global.u32 [%rd5], %r8; mov.u32 %r6, %r10; mov.u32 %r7, %r11;
KEPT:
  setp.le.s32 %p1, %r6, %r7; @%p1 bra PARTITION;
  st.local.u32 [%rd3], %r2; st.local.u32 [%rd3+4], %r7; st.local.u32 [%rd3+8], %r6; st.local.u32 [%rd3+12], %r3;
  add.u32 %r1, %r1, 2;
NEXT:
  setp.ne.u32 %p1, %r1, 0; @%p1 bra RANGE;
  ret;"""
)


@pytest.mark.parametrize("most", [3, 1 << 30])
def test_quicksort_of_rows(most: int) -> None:
    """Nobody waits for anybody in it: the partition of a range ends by itself."""
    rows = np.random.default_rng(5).integers(-most, most, (3 * 45, 40), np.int32)
    wanted = np.sort(rows, axis=1)
    run(QUICKSORT, 3, 45, rows, timeout=60)
    np.testing.assert_array_equal(rows, wanted)
    assert "spin loop" not in compile.emit_ir(compile.front(QUICKSORT), "k", Options(), "copies", ["spins"])
