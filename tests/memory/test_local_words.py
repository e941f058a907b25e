"""Local memory: whether words of all lanes lie side by side, or not, each thread finds what it has stored, and nobody else's."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis.interleaving import word_of
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

BYTES = 64
THREADS, CTAS = 96, 3
COUNT = THREADS * CTAS
REGISTERS = {1: "%h", 2: "%h", 4: "%r", 8: "%rd"}
START = GLOBAL_INDEX + " ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 8; add.u64 %rd1, %rd1, %rd2; mov.u64 %rd3, array;"
ARRAY = f".local .align 16 .b8 array[{BYTES}];"
CLEAR = " ".join(f"st.local.u32 [%rd3+{at}], {at * 0x01010101 % (1 << 32)};" for at in range(0, BYTES, 4))


def entry(body: str) -> str:
    return kernel(f"{ARRAY}\n{START}\n{body}", ".param .u64 out, .param .u32 n")


def run(text: str, engine: str = "jit", n: int = 0) -> np.ndarray:
    """What threads leave in a word of 64 bits of each."""
    with ptxemu.Device(memory="64 MiB", workers=2, engine=engine) as device:
        out = device.to_device(np.zeros(COUNT, np.uint64))
        ptxemu.loads(text, device=device, tier="best")["k"][CTAS, THREADS](out, n)
        return np.asarray(out.copy_to_host())


def word(text: str) -> int:
    found = []
    compile.emit_ir(compile.front(text), "k", compile.Options(), hook=lambda _, bodies: found.append(bodies))
    return word_of(found[-1].graphs[0])


class Program:
    """Random accesses to elements of some sizes, alone and in vectors, at places of all threads and of each, some guarded."""

    def __init__(self, seed: int, sizes: Sequence[int]) -> None:
        self.choose = random.Random(seed)
        self.sizes = sizes

    def text(self) -> str:
        widest = max(self.sizes)
        first = f"{REGISTERS[widest]}21"  # no address: those differ between the devices
        clear = [f"st.local.u{8 * widest} [%rd3+{at}], {first};" for at in range(0, BYTES, widest)]
        made = f"cvt.u{max(16, 8 * widest)}.u32 {first}, %r0;"
        lines = [made, *clear, "mov.u64 %rd20, 0;", *(self._access(number) for number in range(24))]
        return "\n".join([*lines, "st.global.u64 [%rd1], %rd20;"])

    def _access(self, number: int) -> str:
        choose, size = self.choose, self.choose.choice(self.sizes)
        count = choose.choice([count for count in (1, 2, 4) if count * size <= 16])
        names = [f"{REGISTERS[size]}{10 + index}" for index in range(count)]
        operand, vector = (f"{{{', '.join(names)}}}", f".v{count}") if count > 1 else (names[0], "")
        guard, opcode = choose.choice(["", "", "@%p1 "]), f"local{vector}.u{8 * size}"
        before = f"{self._place(size * count)} and.b32 %r6, %r0, {choose.choice([1, 3, 31])}; setp.ne.u32 %p1, %r6, 0;"
        if choose.random() < 0.5:
            made = " ".join(self._value(size, name, number) for name in names)
            return f"{before} {made} {guard}st.{opcode} [%rd4], {operand};"
        cleared = " ".join(f"mov.u{max(16, 8 * size)} {name}, 0;" for name in names)
        return f"{before} {cleared} {guard}ld.{opcode} {operand}, [%rd4]; {' '.join(self._added(size, name) for name in names)}"

    def _place(self, size: int) -> str:
        if self.choose.random() < 0.5:
            return f"add.u64 %rd4, %rd3, {self.choose.randrange(0, BYTES, size)};"
        factor = self.choose.choice([1, 3, 5])
        index = f"mul.lo.u32 %r5, %r0, {factor}; rem.u32 %r5, %r5, {BYTES // size};"
        return f"{index} mul.wide.u32 %rd5, %r5, {size}; add.u64 %rd4, %rd3, %rd5;"

    def _value(self, size: int, name: str, number: int) -> str:
        made = f"mul.lo.u32 %r7, %r0, {self.choose.randrange(1 << 31)}; add.u32 %r7, %r7, {number};"
        return made + (f"mul.wide.u32 {name}, %r7, 1000003;" if size == 8 else f"cvt.u{max(16, 8 * size)}.u32 {name}, %r7;")

    def _added(self, size: int, name: str) -> str:
        """To a sum that depends on the order."""
        widened = f"cvt.u64.u{max(16, 8 * size)} %rd6, {name};" if size < 8 else f"mov.u64 %rd6, {name};"
        return f"{widened} mul.lo.u64 %rd20, %rd20, 6364136223846793005; add.u64 %rd20, %rd20, %rd6;"


@pytest.mark.parametrize("sizes", [(4,), (1,), (2,), (8,), (4, 8), (1, 4), (2, 4, 8), (1, 8)], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_each_thread_finds_what_it_has_stored(seed: int, sizes: tuple[int, ...]) -> None:
    """As on the interpreter, which has windows of each thread."""
    text = entry(Program(100 * seed + sum(sizes), sizes).text())
    np.testing.assert_array_equal(run(text), run(text, "interpreter"))


LOOP = """{clear}
  mov.u32 %r9, 0; mov.u64 %rd20, 0;
L: and.b32 %r5, %r9, 15; mul.wide.u32 %rd5, %r5, 4; add.u64 %rd5, %rd3, %rd5;
  {guard}ld.local.u32 %r7, [%rd5]; add.u32 %r7, %r7, %r0; {guard}st.local.u32 [%rd5], %r7; cvt.u64.u32 %rd6, %r7;
  add.u64 %rd20, %rd20, %rd6; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r10; @%p2 bra L; st.global.u64 [%rd1], %rd20;"""


@pytest.mark.parametrize("trips", ["mov.u32 %r10, 40;", "and.b32 %r10, %r0, 31; add.u32 %r10, %r10, 1;"])
def test_an_array_in_a_loop(trips: str) -> None:
    text = entry(trips + LOOP.format(clear=CLEAR, guard=""))
    expected = []
    for thread in range(COUNT):
        words, sum = [at * 0x01010101 % (1 << 32) for at in range(0, BYTES, 4)], 0
        for trip in range(40 if "40" in trips else thread % 32 + 1):
            words[trip % 16] = (words[trip % 16] + thread) % (1 << 32)
            sum += words[trip % 16]
        expected.append(sum)
    np.testing.assert_array_equal(run(text), expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CLEAR, 4),
        ("st.local.u8 [%rd3], %h1; ld.local.u8 %h2, [%rd3];", 1),
        ("st.local.v4.u32 [%rd3], {%r1, %r2, %r3, %r4}; ld.local.u64 %rd4, [%rd3];", 4),
        ("st.local.u8 [%rd3], %h1; ld.local.u64 %rd4, [%rd3];", 0),  # of eight parts
        ("ld.global.u32 %r3, [%rd1];", 0),
        (CLEAR + "cvta.local.u64 %rd4, %rd3; ld.u32 %r4, [%rd4]; st.global.u32 [%rd1], %r4;", 0),
        (CLEAR + "cvta.local.u64 %rd4, %rd3;", 4),  # for nobody
        (CLEAR + "alloca.u64 %rd4, 16;", 0),
    ],
)
def test_which_kernels_have_words_side_by_side(body: str, expected: int) -> None:
    assert word(entry(body)) == expected


def test_generic_addresses_lead_to_the_same_memory() -> None:
    text = entry(
        CLEAR + "cvta.local.u64 %rd4, %rd3; st.u32 [%rd4+8], %r0; ld.local.u64 %rd5, [%rd3+8]; st.global.u64 [%rd1], %rd5;"
    )
    np.testing.assert_array_equal(run(text), np.arange(COUNT, dtype=np.uint64) + (0x0C0C0C0C << 32))


FAULTS = {
    "beyond": ("add.u64 %rd4, %rd3, 1048576;", "out of bounds|illegal address"),
    "misaligned": ("add.u64 %rd4, %rd3, 2;", "misaligned"),
    "one lane": ("mov.u64 %rd4, %rd3; setp.eq.u32 %p1, %r0, 41; @%p1 add.u64 %rd4, %rd3, 1;", "misaligned"),
    "one lane far away": (
        "mov.u64 %rd4, %rd3; setp.eq.u32 %p1, %r0, 41; @%p1 mov.u64 %rd4, -4;",
        "out of bounds|illegal address",
    ),
}


@pytest.mark.parametrize("access", ["ld.local.u32 %r4, [%rd4]; st.global.u32 [%rd1], %r4;", "st.local.u32 [%rd4], %r0;"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_those_of_the_interpreter(fault: str, access: str) -> None:
    place, message = FAULTS[fault]
    said = []
    for engine in ("jit", "interpreter"):
        with pytest.raises(ptxemu.Fault, match=message) as caught:
            run(entry(f"{CLEAR} {place} {access}"), engine)
        said.append(str(caught.value))
    if "lane" in fault:
        assert said[0] == said[1]


def test_an_access_by_no_lane_may_be_anywhere() -> None:
    body = CLEAR + "ld.param.u32 %r9, [n]; setp.lt.u32 %p1, %r0, %r9; mov.u64 %rd4, 1048575; mov.u32 %r4, 5;"
    text = entry(
        body + "@%p1 ld.local.u32 %r4, [%rd4]; @%p1 st.local.u32 [%rd4], %r4; cvt.u64.u32 %rd5, %r4; st.global.u64 [%rd1], %rd5;"
    )
    assert (run(text) == 5).all()
