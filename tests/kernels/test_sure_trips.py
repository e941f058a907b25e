"""Loops that go through memory by the same distance in each trip, against a model of single threads: what each reads and when it
leaves, where indexes wrap, bounds are near and addresses lead out of memory."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.lower.functions.sure_trips import TRIPS
from tests.support.kernel_tools import HEADER

WORDS = 1 << 14
MOST_TRIPS = 90
SEEDS = range(24)
KERNELS = 16  # of a module
BLOCK = 64

KERNEL = """.visible .entry k{number}(.param .u64 in, .param .u64 out, .param .u64 numbers)
{{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<12>; .shared .align 4 .b8 tile[1024];
  ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [numbers];
  mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;
  ld.global.u32 %r5, [%d3]; ld.global.u32 %r6, [%d3+4]; ld.global.u32 %r7, [%d3+8];
  mul.lo.u32 %r4, %r1, {lanes}; add.u32 %r4, %r4, %r5;
  shl.b32 %r8, %r1, 4; mov.u32 %r9, tile; add.u32 %r8, %r8, %r9; st.shared.v4.u32 [%r8], {{%r1, %r1, %r1, %r1}}; bar.sync 0;
AGAIN:
  {address}
  {load} add.u32 %r3, %r3, %r10;
  add.u32 %r2, %r2, 1; {step}
  setp.{order}.{type} %p1, %r4, %r6; setp.{counted}.u32 %p2, %r2, {most}; {join}.pred %p3, %p1, %p2;
  @{sign}%p3 bra AGAIN;
  mul.wide.u32 %d4, %r1, 8; add.u64 %d2, %d2, %d4; st.global.v2.u32 [%d2], {{%r2, %r3}};
  ret;
}}
"""
"""The index is %r4, that of the first thread %r5, the bound %r6 and the step %r7; trips are counted in %r2."""


ADDRESSES = {
    "wide": "mul.wide.{type} %d5, %r4, {bytes}; add.u64 %d5, %d1, %d5;",
    "mad": "mad.wide.{type} %d5, %r4, {bytes}, %d1;",
    "convert": "cvt.{to}.{type} %d5, %r4; shl.b64 %d5, %d5, {log}; add.u64 %d5, %d1, %d5;",
    "product": "cvt.{to}.{type} %d5, %r4; mul.lo.u64 %d5, %d5, {bytes}; sub.u64 %d6, 0, %d5; sub.u64 %d5, %d1, %d6;",
}
INVERSE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq"}


def _number(word: int, type: str) -> int:
    return word - 2**32 if type == "s32" and word >> 31 else word


@dataclass
class Case:
    """A kernel with its numbers: where the first thread's index begins and where the loop ends, and what is given as the step.

    The index is compared as one ``type``, and ``extended`` as another one to make addresses.
    """

    text: str
    type: str
    extended: str
    order: str
    lanes: int
    start: int
    bound: int
    step: int
    given: int
    scale: int
    shared: bool

    def words(self, thread: int) -> list[int]:
        """The words that a thread reads, counted from the first of the array; there may be none there."""
        index, found = (self.start + thread * self.lanes) % 2**32, []
        while True:
            found.append(_number(index, self.extended) * self.scale)
            index = (index + self.step) % 2**32
            if not self._goes_on(index) or len(found) == MOST_TRIPS:
                return found

    def _goes_on(self, index: int) -> bool:
        a, b = _number(index, self.type), _number(self.bound % 2**32, self.type)
        return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "ne": a != b}[self.order]

    def expected(self, values: np.ndarray) -> np.ndarray | None:
        """For each thread its trips and the sum of what it reads; None if it reads from elsewhere."""
        memory = np.arange(BLOCK * 4, dtype=np.uint32) // 4 if self.shared else values
        words = [self.words(thread) for thread in range(BLOCK)]
        if not all(0 <= word < len(memory) for found in words for word in found):
            return None
        return np.array([(len(found), int(memory[found].sum(dtype=np.uint32))) for found in words], np.uint32)


def case(rng: random.Random, number: int) -> Case:
    """Numbers are often near those at which something changes: 0, the greatest, an end of the array, a multiple of the trips."""
    type, extended = rng.choice(["s32", "u32"]), rng.choice(["s32", "u32"])
    order, lanes = rng.choice(list(INVERSE)), rng.choice([0, 1, 1, 1, 2, 3])
    shared, log = rng.random() < 0.2, rng.choice([2, 2, 3])
    size = rng.choice([1, 2, 3] if shared else [1, 2, 32, 64, 7, 100, 1 << 20, 1 << 28])
    rises = order in ("lt", "le") or (order == "ne" and rng.random() < 0.5)
    step = size if rises ^ (rng.random() < 0.05) else -size
    trips = rng.choice([1, TRIPS - 1, TRIPS, TRIPS + 1, 2 * TRIPS, 3 * TRIPS + 2, 60])
    far = rng.choice([2**31 - size * TRIPS, 2**31 - 40, 2**32 - 33, 2**32 - size * TRIPS, WORDS - 90, WORDS // 2 - 90])
    start = far if rng.random() < 0.25 else rng.choice([0, 5]) if rises else size * trips + rng.choice([0, 5])
    bound = start + step * trips + rng.choice([0, 0, 0, -1, 1, lanes * 31, 17])
    form = "shl.b32 %r11, %r4, {log}; add.u32 %r11, %r9, %r11;" if shared else ADDRESSES[rng.choice(list(ADDRESSES))]
    negated, minus, constant = (rng.random() < 0.5 for _ in range(3))
    added = f"add.{type} %r4, %r4, {step};" if constant else f"{'sub' if minus else 'add'}.{type} %r4, %r4, %r7;"
    text = KERNEL.format(
        number=number, lanes=lanes, type=type, order=INVERSE[order] if negated else order, most=MOST_TRIPS,
        join="or" if negated else "and", counted="ge" if negated else "lt", sign="!" if negated else "", step=added,
        address=form.format(type=extended, bytes=1 << log, log=log, to=f"{extended[0]}64"),
        load="ld.shared.u32 %r10, [%r11];" if shared else "ld.global.u32 %r10, [%d5];",
    )  # fmt: skip
    given = -step if minus and not constant else step
    return Case(text, type, extended, order, lanes, start, bound, step, given, (1 << log) // 4, shared)


def outcomes(cases: list[Case], values: np.ndarray, engine: str) -> list[np.ndarray | str]:
    """What kernels leave for each thread, or what fault there is and where in the text: which warp
    comes to one first differs."""
    found: list[np.ndarray | str] = []
    with ptxemu.Device("64 MiB", workers=1, engine=engine) as device:
        module = ptxemu.loads(HEADER + "".join(made.text for made in cases), device=device, tier="best")
        memory = device.to_device(values)
        for number, made in enumerate(cases):
            out = device.to_device(np.zeros((BLOCK, 2), np.uint32))
            numbers = device.to_device(np.array([made.start, made.bound, made.given], np.int64).astype(np.uint32))
            try:
                module[f"k{number}"][1, BLOCK](memory, out, numbers)
                found.append(out.copy_to_host())
            except ptxemu.Fault as fault:
                found.append(str(fault).partition(": block")[0])
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_threads_read_what_they_would_alone(seed: int) -> None:
    """Where the model knows what is read, that; else whatever the interpreter does, which may be a fault."""
    rng = random.Random(seed)
    cases = [case(rng, number) for number in range(KERNELS)]
    values = np.random.default_rng(seed).integers(0, 2**32, WORDS, np.uint32)
    known = [made.expected(values) for made in cases]
    compiled, interpreted = (outcomes(cases, values, engine) for engine in ("jit", "interpreter"))
    for made, model, one, other in zip(cases, known, compiled, interpreted):
        expected = other if model is None else model
        np.testing.assert_array_equal(one, expected, err_msg=made.text)
        np.testing.assert_array_equal(other, expected, err_msg=made.text)


ROUND = {
    "global": (f"mul.lo.u64 %d5, %d3, {(2**64 + 12) // 7}; add.u64 %d5, %d1, %d5;", "ld.global.u32 %r10, [%d5];"),
    "shared": (f"mul.lo.u32 %r11, %r2, {(2**32 + 24) // 7}; add.u32 %r11, %r11, %r12;", "ld.shared.u32 %r10, [%r11];"),
}
"""Addresses that after seven trips, and not before, are in memory again: 64 or 32 bits have come round."""


@pytest.mark.parametrize("space", ROUND)
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_what_lies_between_is_tested(space: str, engine: str) -> None:
    address, load = ROUND[space]
    text = f"""{HEADER}.visible .entry k(.param .u64 in, .param .u64 out)
{{
  .reg .pred %p1; .reg .b32 %r<16>; .reg .b64 %d<8>; .shared .align 4 .b8 tile[1024];
  ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u64 %d3, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r12, tile;
AGAIN:
  {address} {load} add.u32 %r3, %r3, %r10; add.u64 %d3, %d3, 1; add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 12; @%p1 bra AGAIN;
  st.global.u32 [%d2], %r3;
  ret;
}}"""
    with ptxemu.Device("64 MiB", engine=engine) as device:
        arrays = [device.to_device(np.zeros(64, np.uint32)) for _ in range(2)]
        with pytest.raises(ptxemu.Fault, match=rf"<string>:9: .* access to {space} address"):
            ptxemu.loads(text, device=device, tier="best")["k"][1, 32](*arrays)


def test_sums_share_what_they_are_made_of() -> None:
    """Each difference is of the two before it: as a tree, that has more nodes than could be looked at."""
    lines = "".join(f"  sub.u64 %d{number}, %d{number - 1}, %d{number - 2};\n" for number in range(6, 80))
    text = f"""{HEADER}.visible .entry k(.param .u64 in, .param .u64 out)
{{
  .reg .pred %p1; .reg .b32 %r<8>; .reg .b64 %d<80>;
  ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u64 %d4, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
AGAIN:
  add.u64 %d5, %d4, 16;
{lines}
  add.u64 %d3, %d1, %d79; ld.global.u32 %r1, [%d3]; add.u32 %r3, %r3, %r1;
  add.u64 %d4, %d4, 4; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20; @%p1 bra AGAIN;
  st.global.u32 [%d2], %r3;
  ret;
}}"""
    module = compile.front(text)
    assert ".sure:" in compile.lower(module, module.functions["k"], "row", compile.Options()).text


GIB = 1 << 30


def test_indexes_that_change_their_sign() -> None:
    """In an array so large that both what follows and what comes first are in it: 2**31 is followed by -2**31."""
    text = f"""{HEADER}.visible .entry k(.param .u64 in, .param .u64 out)
{{
  .reg .pred %p1; .reg .b32 %r<16>; .reg .b64 %d<8>;
  ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0;
  add.u32 %r4, %r1, {2**31 - 16 - 5 * 32}; add.u64 %d1, %d1, {3 * GIB};
AGAIN:
  cvt.s64.s32 %d5, %r4; add.u64 %d5, %d1, %d5; ld.global.u8 %r10, [%d5]; mad.lo.u32 %r3, %r3, 3, %r10;
  add.u32 %r4, %r4, 32; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20; @%p1 bra AGAIN;
  mul.wide.u32 %d4, %r1, 4; add.u64 %d2, %d2, %d4; st.global.u32 [%d2], %r3;
  ret;
}}"""
    indexes = np.arange(20)[:, None] * 32 + np.arange(32) + 2**31 - 16 - 5 * 32
    values = np.arange(indexes.size, dtype=np.uint8).reshape(indexes.shape)
    wanted = np.zeros(32, np.uint32)
    for row in values:
        wanted = wanted * np.uint32(3) + row
    with ptxemu.Device("8 GiB") as device:
        large, out = device.empty(6 * GIB, np.uint8), device.to_device(np.zeros(32, np.uint32))
        for index, value in zip(indexes.ravel(), values.ravel()):
            place = int(index) - (2**32 if index >> 31 else 0) + 3 * GIB
            large[place : place + 1].copy_from_host(np.array([value], np.uint8))
        ptxemu.loads(text, device=device, tier="best")["k"][1, 32](large, out)
        np.testing.assert_array_equal(out.copy_to_host(), wanted)
