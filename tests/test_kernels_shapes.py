"""Integer expressions of thread coordinates and parameters: exact in every lane, also where 32-bit indexes wrap.

ptxemu keeps values such as ``base + lane`` as one scalar (``ptxemu/analysis/shape.py``).  Here random programs, some of whose
constants make a warp straddle 2**31 or 2**32, are compared with Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_tools import HEADER, Threads, run

GRID = 2
BLOCKS = [(32, 1, 1), (70, 1, 1), (16, 4, 1), (8, 8, 1), (4, 2, 8), (5, 7, 1), (64, 2, 1), (16, 3, 1), (1, 40, 1)]
LEAVES32 = ["%tid.x", "%tid.y", "%ctaid.x", "%ntid.x", "%laneid"]
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


PROGRAMS = st.lists(st.sampled_from(sorted(MEANING)).flatmap(step), min_size=12, max_size=28)


class Values:
    """The values of a program: how PTX names them, and what they are in every thread."""

    def __init__(self) -> None:
        self.names: dict[int, list[str]] = {32: [], 64: []}
        self.lanes: dict[int, list[list[int]]] = {32: [], 64: []}

    def add(self, bits: int, name: str, lanes: list[int]) -> None:
        self.names[bits].append(name)
        self.lanes[bits].append(lanes)

    def pick(self, bits: int, what: object, count: int) -> tuple[str, list[int]]:
        """A constant, or a value counted from the newest."""
        if isinstance(what, int):
            return str(signed(what % 2**bits, bits)), [what % 2**bits] * count
        assert isinstance(what, tuple)
        index = -1 - what[1] % min(6, len(self.names[bits])) if what[1] % 3 else what[1] % len(self.names[bits])
        return self.names[bits][index], self.lanes[bits][index]


def build(steps: list[Step], threads: Threads, words: tuple[int, int], wide: int) -> tuple[str, list[list[int]]]:
    """The kernel's text and the value of every step in every thread."""
    values = Values()
    lines = []
    leaves = [threads.tid[0], threads.tid[1], threads.ctaid[0], np.full(threads.count, threads.block[0]), threads.lane]
    for number, (name, lanes) in enumerate(zip(LEAVES32, leaves)):
        lines.append(f"mov.u32 %s{number}, {name};")
        values.add(32, f"%s{number}", [int(lane) for lane in lanes])
    for name, word in zip(("%w0", "%w1"), words):
        lines.append(f"ld.param.u32 {name}, [{name[1:]}];")
        values.add(32, name, [word] * threads.count)
    lines.append("ld.param.u64 %q0, [q0];")
    values.add(64, "%q0", [wide] * threads.count)
    results = []
    for number, item in enumerate(steps):
        bits, *sources = widths(item.name)
        picked = [
            values.pick(size, what, threads.count) if size else ("", [0] * threads.count)
            for size, what in zip(sources, (("v", item.a), item.b, item.c))
        ]
        meaning = MEANING[item.name]
        lanes = [meaning(*operands) % 2**bits for operands in zip(*(lanes for _, lanes in picked))]
        target = f"%{'a' if bits == 32 else 'b'}{number}"
        lines.append(f"{item.name} {', '.join([target, *(name for name, _ in picked if name)])};")
        values.add(bits, target, lanes)
        stored = target
        if bits == 32:
            lines.append(f"cvt.u64.u32 %x{number}, {target};")
            stored = f"%x{number}"
        lines.append(f"st.global.u64 [%out+{8 * threads.count * number}], {stored};")
        results.append(lanes)
    return text(lines, threads), results


def text(lines: list[str], threads: Threads) -> str:
    body = "\n  ".join(lines)
    return f"""{HEADER}
.visible .entry k(.param .u64 out, .param .u32 w0, .param .u32 w1, .param .u64 q0)
{{
  .reg .b32 %s<8>; .reg .b32 %a<32>; .reg .b32 %w<2>; .reg .b64 %b<32>; .reg .b64 %x<32>; .reg .b64 %q0, %out, %o; .reg .b32 %t<8>;
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


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PROGRAMS, st.sampled_from(BLOCKS), st.tuples(WORDS, WORDS), st.integers(0, 2**64 - 1))
def test_every_lane_is_exact(steps: list[Step], block: tuple[int, int, int], words: tuple[int, int], wide: int) -> None:
    threads = Threads(GRID, block)
    ptx, expected = build(steps, threads, words, wide)
    out = np.zeros((len(steps), threads.count), np.uint64)
    run(ptx, GRID, block, out, *words, wide)
    np.testing.assert_array_equal(out, np.array(expected, dtype=np.uint64), err_msg=ptx)
