"""Integer expressions of thread coordinates and parameters: exact in every lane, also where 32-bit indexes wrap.

ptxemu keeps values such as ``base + lane`` as one scalar (``ptxemu/analysis/shape.py``).  Here random programs, some of whose
constants make a warp straddle 2**31 or 2**32, are compared with Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.kernel_tools import GLOBAL_INDEX, HEADER, Extent, Threads, kernel, run

GRID = 2
BLOCKS = [(32, 1, 1), (70, 1, 1), (16, 4, 1), (8, 8, 1), (4, 2, 8), (5, 7, 1), (64, 2, 1), (16, 3, 1), (16, 2, 3), (1, 40, 1)]
LEAVES32 = ["%tid.x", "%tid.y", "%ctaid.x", "%ntid.x", "%ntid.y", "%nctaid.x", "%laneid"]
NEAR = [2**31, 2**32]
WORDS = st.one_of(
    st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 0x7FFFFFFF, 0xFFFFFFF0, 0xFFFF0000, 0x0FFFFFFC]),
    st.builds(lambda edge, back: (edge - back) % 2**32, st.sampled_from(NEAR), st.integers(-40, 80)),
    st.integers(0, 2**32 - 1),
)
SMALL = st.integers(-9, 40).map(lambda value: value % 2**32)
CONSTANTS = st.one_of(SMALL, WORDS)
WIDE_CONSTANTS = st.one_of(st.integers(-9, 64), st.integers(-(2**63), 2**63 - 1))


@dataclass(frozen=True)
class Step:
    """One instruction: ``b`` and ``c`` are constants or, as ("v", n), the n-th value of the fitting width so far."""

    name: str
    a: int
    b: object
    c: object


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


MEANING = {
    "add.u32": lambda a, b, c: a + b,
    "add.s32": lambda a, b, c: a + b,
    "sub.s32": lambda a, b, c: a - b,
    "mul.lo.s32": lambda a, b, c: a * b,
    "mul.lo.u32": lambda a, b, c: a * b,
    "mad.lo.s32": lambda a, b, c: a * b + c,
    "shl.b32": lambda a, b, c: a << b if b < 32 else 0,
    "shr.u32": lambda a, b, c: a >> min(b, 32),
    "shr.s32": lambda a, b, c: signed(a, 32) >> min(b, 31),
    "and.b32": lambda a, b, c: a & b,
    "or.b32": lambda a, b, c: a | b,
    "xor.b32": lambda a, b, c: a ^ b,
    "add.s64": lambda a, b, c: a + b,
    "sub.s64": lambda a, b, c: a - b,
    "mul.lo.s64": lambda a, b, c: a * b,
    "mad.lo.s64": lambda a, b, c: a * b + c,
    "shl.b64": lambda a, b, c: a << b if b < 64 else 0,
    "shr.u64": lambda a, b, c: a >> min(b, 64),
    "shr.s64": lambda a, b, c: signed(a, 64) >> min(b, 63),
    "and.b64": lambda a, b, c: a & b,
    "or.b64": lambda a, b, c: a | b,
    "mul.wide.s32": lambda a, b, c: signed(a, 32) * signed(b, 32),
    "mul.wide.u32": lambda a, b, c: a * b,
    "mad.wide.s32": lambda a, b, c: signed(a, 32) * signed(b, 32) + c,
    "mad.wide.u32": lambda a, b, c: a * b + c,
    "cvt.s64.s32": lambda a, b, c: signed(a, 32),
    "cvt.u64.u32": lambda a, b, c: a,
    "cvt.u32.u64": lambda a, b, c: a,
    "cvt.s32.s64": lambda a, b, c: a,
}


def widths(name: str) -> tuple[int, int, int, int]:
    """Bits of the result and of a, b and c (0: no such operand)."""
    if name.startswith("cvt"):
        to, source = name.split(".")[1:]
        return int(to[1:]), int(source[1:]), 0, 0
    base = int(name[-2:])
    result = 64 if "wide" in name else base
    shift = name.startswith("sh")
    return result, base, 32 if shift else base, result if name.startswith("mad") else 0


def operand(bits: int, shift: bool) -> st.SearchStrategy[object]:
    if shift:
        return st.one_of(st.integers(0, 8), st.integers(0, 70))
    constants = CONSTANTS if bits == 32 else WIDE_CONSTANTS
    return st.one_of(constants, st.tuples(st.just("v"), st.integers(0, 1000)))


def step(name: str) -> st.SearchStrategy[Step]:
    shift = name.startswith("sh")
    return st.builds(Step, st.just(name), st.integers(0, 1000), operand(widths(name)[2], shift), operand(64, False))


COMMON = ["add.s32", "mad.lo.s32", "mul.wide.s32", "mul.wide.u32", "cvt.s64.s32", "cvt.u64.u32", "and.b32", "shl.b32", "add.s64"]
PROGRAMS = st.lists(st.sampled_from(sorted(MEANING) + 2 * COMMON).flatmap(step), min_size=12, max_size=28)


class Values:
    """The values of a program: how PTX names them, and what they are in every thread."""

    def __init__(self) -> None:
        self.names: dict[int, list[str]] = {32: [], 64: []}
        self.lanes: dict[int, list[list[int]]] = {32: [], 64: []}

    def add(self, bits: int, name: str, lanes: list[int]) -> None:
        self.names[bits].append(name)
        self.lanes[bits].append(lanes)

    def choose(self, bits: int, what: object) -> int | None:
        """Which value ``what`` stands for: one of the newest, or of the newest that differ a little from thread to thread."""
        if not isinstance(what, tuple):
            return None
        lanes = self.lanes[bits]
        patterns = [n for n, item in enumerate(lanes) if 0 < signed((item[1] - item[0]) % 2**bits, bits) ** 2 < 2**40]
        choice = patterns[-5:] if what[1] % 4 and patterns else list(range(len(lanes)))[-6:]
        return choice[what[1] // 4 % len(choice)]

    def take(self, bits: int, what: object, chosen: int | None, count: int) -> tuple[str, list[int]]:
        """The chosen value, or a constant."""
        if chosen is not None:
            return self.names[bits][chosen], self.lanes[bits][chosen]
        assert isinstance(what, int)
        return str(signed(what % 2**bits, bits)), [what % 2**bits] * count


class Program:
    """Steps as PTX, and their values in every thread."""

    def __init__(self, steps: list[Step], threads: Threads, words: tuple[int, int], wide: int) -> None:
        self.steps, self.threads = steps, threads
        self.choices: list[list[int | None]] = []  # of each step's operands; made in the first iteration
        count = threads.count
        sizes = [np.full(count, size) for size in (*threads.block[:2], threads.grid[0])]
        leaves = [threads.tid[0], threads.tid[1], threads.ctaid[0], *sizes, threads.lane]
        self.leaves = [("%s" + str(n), [int(lane) for lane in lanes]) for n, lanes in enumerate(leaves)]
        self.leaves += [(f"%w{n}", [word] * count) for n, word in enumerate(words)]
        self.wide = ("%q0", [wide] * count)

    def head(self) -> list[str]:
        reads = [f"mov.u32 %s{number}, {name};" for number, name in enumerate(LEAVES32)]
        return [*reads, "ld.param.u32 %w0, [w0];", "ld.param.u32 %w1, [w1];", "ld.param.u64 %q0, [q0];"]

    def values(self, carried: list[tuple[int, str, list[int]]]) -> Values:
        values = Values()
        for name, lanes in self.leaves:
            values.add(32, name, lanes)
        values.add(64, *self.wide)
        for bits, name, lanes in carried:
            values.add(bits, name, lanes)
        return values

    def body(self, carried: list[tuple[int, str, list[int]]]) -> tuple[list[str], Values, list[list[int]]]:
        """The steps and stores as text, all values, and the value of each step in every thread."""
        values, lines, results = self.values(carried), [], []
        count = self.threads.count
        for number, item in enumerate(self.steps):
            bits, *sources = widths(item.name)
            wanted = (("v", item.a), item.b, item.c)
            if number == len(self.choices):
                self.choices.append([values.choose(size, what) if size else None for size, what in zip(sources, wanted)])
            picked = [
                values.take(size, what, chosen, count) if size else ("", [0] * count)
                for size, what, chosen in zip(sources, wanted, self.choices[number])
            ]
            meaning = MEANING[item.name]
            lanes = [meaning(*operands) % 2**bits for operands in zip(*(lanes for _, lanes in picked))]
            target = f"%{'a' if bits == 32 else 'b'}{number}"
            lines.append(f"{item.name} {', '.join([target, *(name for name, _ in picked if name)])};")
            values.add(bits, target, lanes)
            lines += self.store(bits, target, 8 * count * number, f"%x{number}")
            results.append(lanes)
        return lines, values, results

    def store(self, bits: int, name: str, offset: int, scratch: str) -> list[str]:
        if bits == 64:
            return [f"st.global.u64 [%out+{offset}], {name};"]
        return [f"cvt.u64.u32 {scratch}, {name};", f"st.global.u64 [%out+{offset}], {scratch};"]


def text(lines: list[str], threads: Threads) -> str:
    body = "\n  ".join(lines)
    return f"""{HEADER}
.visible .entry k(.param .u64 out, .param .u32 w0, .param .u32 w1, .param .u64 q0)
{{
  .reg .pred %p; .reg .b32 %s<8>; .reg .b32 %a<32>; .reg .b32 %w<2>; .reg .b32 %t<8>; .reg .b32 %c<4>;
  .reg .b64 %b<32>; .reg .b64 %x<32>; .reg .b64 %y<4>; .reg .b64 %q0, %out, %o;
  ld.param.u64 %out, [out];
  mov.u32 %t0, %tid.x; mov.u32 %t1, %tid.y; mov.u32 %t2, %tid.z; mov.u32 %t3, %ctaid.x;
  mad.lo.u32 %t4, %t2, {threads.block[1]}, %t1;
  mad.lo.u32 %t4, %t4, {threads.block[0]}, %t0;
  mad.lo.u32 %t4, %t3, {threads.per_block}, %t4;
  mul.wide.u32 %o, %t4, 8;
  add.s64 %out, %out, %o;
  {body}
  ret;
}}
"""


# Without shrinking: it takes minutes where every step costs a compilation, and the failing kernel is printed whole.
SETTINGS = settings(deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
ARGUMENTS = (PROGRAMS, st.sampled_from(BLOCKS), st.tuples(WORDS, WORDS), st.integers(0, 2**64 - 1))


def check_straight(steps: list[Step], block: Extent, words: tuple[int, int], wide: int) -> None:
    threads = Threads(GRID, block)
    program = Program(steps, threads, words, wide)
    lines, _, expected = program.body([])
    ptx = text(program.head() + lines, threads)
    out = np.zeros((len(steps), threads.count), np.uint64)
    run(ptx, GRID, block, out, *words, wide)
    np.testing.assert_array_equal(out, np.array(expected, dtype=np.uint64), err_msg=ptx)


@settings(SETTINGS, max_examples=25)
@given(*ARGUMENTS)
def test_every_lane_is_exact(steps: list[Step], block: Extent, words: tuple[int, int], wide: int) -> None:
    check_straight(steps, block, words, wide)


TRIPS = 4


def check_loop(steps: list[Step], block: Extent, words: tuple[int, int], wide: int, divergent: bool) -> None:
    """The steps in a loop: %c0 counts, %c1 strides, %y0 is a pointer that moves, %y1 and %c2 keep the last iteration's values.

    Threads leave after different numbers of iterations if ``divergent``.  What they carried out is stored after the loop.
    """
    threads = Threads(GRID, block)
    count = threads.count
    program = Program(steps, threads, words, wide)
    trips = [1 + lane % TRIPS if divergent else TRIPS for lane in (int(x) for x in threads.tid[0])]
    state = [[0] * count, [int(x) for x in threads.tid[0]], [7] * count, [0] * count, [wide] * count]
    state[3] = [signed(int(x) + words[0] - (1 << 32) * (int(x) + words[0] >> 32), 32) * 4 % 2**64 for x in threads.tid[0]]
    names = [(32, "%c0"), (32, "%c1"), (32, "%c2"), (64, "%y0"), (64, "%y1")]
    expected = np.zeros((TRIPS, len(steps), count), np.uint64)
    last = [[0] * count for _ in names]
    lines: list[str] = []
    for trip in range(TRIPS):
        lines, values, results = program.body([(bits, name, lanes) for (bits, name), lanes in zip(names, state)])
        running = np.array([trip < limit for limit in trips])
        expected[trip] = np.where(running, np.array(results, dtype=np.uint64), np.uint64(0))
        state = [
            [lane + 1 for lane in state[0]],
            [(lane + words[1]) % 2**32 for lane in state[1]],
            values.lanes[32][-1],
            [(lane + 4) % 2**64 for lane in state[3]],
            values.lanes[64][-1],
        ]
        last = [[new if on else old for new, old, on in zip(*group, running)] for group in zip(state, last)]
        update = [f"mov.u32 %c2, {values.names[32][-1]};", f"mov.u64 %y1, {values.names[64][-1]};"]
    ptx = text([*program.head(), *loop_text(program, lines, update, names, divergent)], threads)
    out = np.zeros((TRIPS * len(steps) + len(names), count), np.uint64)
    run(ptx, GRID, block, out, *words, wide)
    np.testing.assert_array_equal(out[: TRIPS * len(steps)].reshape(expected.shape), expected, err_msg=ptx)
    np.testing.assert_array_equal(out[TRIPS * len(steps) :], np.array(last, dtype=np.uint64), err_msg=ptx)


def loop_text(program: Program, lines: list[str], update: list[str], names: list[tuple[int, str]], divergent: bool) -> list[str]:
    step = 8 * program.threads.count
    limit = f"and.b32 %t5, %s0, {TRIPS - 1}; add.s32 %t5, %t5, 1;" if divergent else f"mov.u32 %t5, {TRIPS};"
    carried = [line for n, (bits, name) in enumerate(names) for line in program.store(bits, name, n * step, f"%x{29 + n % 3}")]
    return [
        limit,
        "mov.u32 %c0, 0; mov.u32 %c1, %s0; mov.u32 %c2, 7; mov.u64 %y1, %q0;",
        f"add.s32 %t6, %s0, %w0; mul.wide.s32 %y0, %t6, 4; add.s64 %o, %out, {TRIPS * len(program.steps) * step};",
        "LOOP:",
        *lines,
        *update,
        "add.s32 %c0, %c0, 1; add.s32 %c1, %c1, %w1; add.s64 %y0, %y0, 4;",
        f"add.s64 %out, %out, {len(program.steps) * step};",
        "setp.lt.u32 %p, %c0, %t5; @%p bra LOOP;",
        "mov.u64 %out, %o;",
        *carried,
    ]


@settings(SETTINGS, max_examples=25)
@given(*ARGUMENTS, st.booleans())
def test_every_iteration_is_exact(steps: list[Step], block: Extent, words: tuple[int, int], wide: int, divergent: bool) -> None:
    check_loop(steps, block, words, wide, divergent)


INDEX = """
  ld.param.u64 %rd1, [out]; ld.param.u32 %r10, [n];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8; add.s64 %rd4, %rd1, %rd3;
"""
PARAMETERS = ".param .u64 out, .param .u32 n"
MASKED = """
  shl.b32 %r11, %r10, 5; add.s32 %r2, %r1, %r11; and.b32 %r3, %r2, 0xFFFFFFF0; shr.s32 %r4, %r3, 4; add.s32 %r5, %r4, 1;
  cvt.u64.u32 %rd2, %r5; st.global.u64 [%rd4], %rd2;
  ret;"""


def test_a_mask_may_leave_the_sign() -> None:
    out = np.zeros(64, np.uint64)
    run(kernel(INDEX + MASKED, PARAMETERS), 1, 64, out, 2**27 - 1)
    expected = [((signed((2**32 - 32 + t) % 2**32 & 0xFFFFFFF0, 32) >> 4) + 1) % 2**32 for t in range(64)]
    assert out.tolist() == expected


CARRIED = """
  mov.u64 %rd5, 7; mov.u32 %r2, 0;
LOOP:
  st.global.u64 [%rd4], %rd5; add.s64 %rd4, %rd4, 256;
  add.s32 %r3, %r1, %r10; cvt.u64.u32 %rd5, %r3;
  add.s32 %r10, %r10, 24; add.s32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 5; @%p1 bra LOOP;
  ret;"""


def test_widened_index_of_the_iteration_before() -> None:
    """Only one iteration wraps; the value carried out of it keeps its own corrections."""
    out, start = np.zeros((5, 32), np.uint64), 2**32 - 60
    run(kernel(INDEX + CARRIED, PARAMETERS), 1, 32, out, start)
    expected = [[7] * 32] + [[(start + 24 * trip + t) % 2**32 for t in range(32)] for trip in range(4)]
    assert out.tolist() == expected


@pytest.mark.parametrize("kind", ["u32", "s32"])
def test_comparisons_at_the_edges_of_warps(kind: str) -> None:
    """Those that hold for all lanes of a warp or none, and those next to them."""
    cases = [(name, bound) for name in ("lt", "le", "gt", "ge", "eq") for bound in (-1, 0, 31, 32, 33, 63, 64)]
    tests = "".join(
        f"setp.{name}.{kind} %p1, %r60, {bound}; selp.u64 %rd3, {1 << bit:#x}, 0, %p1; or.b64 %rd2, %rd2, %rd3;\n"
        for bit, (name, bound) in enumerate(cases)
    )
    body = GLOBAL_INDEX + "ld.param.u64 %rd1, [out]; mov.u64 %rd2, 0; mul.wide.u32 %rd4, %r60, 8; add.u64 %rd1, %rd1, %rd4;\n"
    out = np.zeros(96, np.uint64)
    run(kernel(body + tests + "st.global.u64 [%rd1], %rd2; ret;"), 1, 96, out)
    tid = np.arange(96)
    expected = np.zeros(96, np.uint64)
    for bit, (name, bound) in enumerate(cases):
        limit = bound % 2**32 if kind == "u32" else bound
        compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal}[name]
        expected |= compare(tid, limit).astype(np.uint64) << np.uint64(bit)
    np.testing.assert_array_equal(out, expected)
