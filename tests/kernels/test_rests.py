"""Loops that make the trips of unrolled ones as well: against a model in Python, for such loops and for some that only look like
it, and where they fault."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import HEADER, REGISTERS
from tests.support.places import ROOT

BLOCK = 64
WORDS = 4096
TABLE = 64
KERNELS = 24

KERNEL = """
.visible .entry {name}(
  .param .u64 offsets, .param .u64 table, .param .u64 out, .param .u64 places, .param .s32 from, .param .s32 bound)
{{{registers}
  ld.param.u64 %rd1, [offsets]; ld.param.u64 %rd2, [table]; ld.param.u64 %rd3, [out]; ld.param.u64 %rd10, [places];
  ld.param.s32 %r1, [from]; ld.param.s32 %r2, [bound];
  mov.u32 %r3, %tid.x; mad.lo.s32 %r10, %r3, {apart}, %r1; mov.u32 %r12, 1;
  setp.{order}.s32 %p1, %r10, %r2; @!%p1 bra DONE;
  sub.s32 %r4, {between}; add.s32 %r4, %r4, {size_less}; shr.u32 %r4, %r4, {log}; add.s32 %r4, %r4, {more};
  and.b32 %r5, %r4, {copies_less};
  mul.wide.s32 %rd4, %r10, 4; add.s64 %rd8, %rd10, %rd4; add.s64 %rd4, %rd1, %rd4;
  setp.eq.s32 %p2, %r5, 0; @%p2 bra JOIN;
REST:
  ld.global.u32 %r20, [%rd4];
  cvt.u64.u32 %rd6, %r20; add.s64 %rd6, %rd2, %rd6;
  ld.global.u32 %r21, [%rd6];
  mad.lo.u32 %r12, %r12, 3, %r21;
  {store}
  add.s32 %r10, %r10, {unit}; add.s64 %rd4, %rd4, {bytes}; add.s64 %rd8, %rd8, {bytes}; add.s32 %r5, %r5, -1;
  setp.ne.s32 %p3, %r5, 0; @%p3 bra REST;
JOIN:
  setp.lt.u32 %p4, %r4, {copies}; @%p4 bra DONE;
  mul.wide.s32 %rd9, %r10, 4; add.s64 %rd5, %rd1, %rd9; add.s64 %rd5, %rd5, {ahead};
SEVERAL:
  add.s64 %rd11, %rd10, %rd9;
{several}
  add.s64 %rd5, %rd5, {all_bytes}; add.s64 %rd10, %rd10, {all_bytes}; add.s32 %r10, %r10, {all_units};
  setp.{order}.s32 %p6, %r10, %r2; @%p6 bra SEVERAL;
DONE:
  mul.wide.u32 %rd7, %r3, 4; add.s64 %rd7, %rd3, %rd7; st.global.u32 [%rd7], %r12;
  ret;
}}
"""
COPY = """  ld.global.u32 %r20, [%rd5+{offset}]; cvt.u64.u32 %rd6, %r20; add.s64 %rd6, %rd2, %rd6;
  ld.global.u32 %r21, [%rd6];
  mad.lo.u32 %r12, %r12, {factor}, %r21; {store}"""


@dataclass
class Loops:
    """For ``i`` from ``start + apart * thread`` on, as long as ``order`` holds of it and ``bound``: a value becomes three times
    what it was, plus a word, and is written to its place if it ``stores``.  The other members are what an unrolled loop has
    wrong: the number of trips left over by ``more``, where its elements begin by ``shift``, and in a ``copy`` the element by
    ``beside``, the ``factor``, or the place by ``astray``."""

    unit: int
    copies: int
    order: str
    apart: int
    start: int
    bound: int
    more: int = 0
    shift: int = 0
    copy: int = 0
    beside: int = 0
    factor: int = 3
    stores: bool = False
    astray: int = 0

    def text(self, name: str) -> str:
        down = self.unit < 0
        several = [
            COPY.format(
                offset=4 * (copy * self.unit + (self.beside if copy == self.copy else 0)) - 8,
                factor=self.factor if copy == self.copy else 3,
                store=self.store("%rd11", copy * self.unit + (self.astray if copy == self.copy else 0)),
            )
            for copy in range(self.copies)
        ]
        return KERNEL.format(
            store=self.store("%rd8", 0),
            name=name, registers=REGISTERS, apart=self.apart, order=self.order, more=self.more, unit=self.unit,
            copies=self.copies,
            between="%r10, %r2" if down else "%r2, %r10", size_less=abs(self.unit) - 1, log=abs(self.unit).bit_length() - 1,
            copies_less=self.copies - 1, bytes=4 * self.unit, ahead=8 + 4 * self.shift, several="\n".join(several),
            all_bytes=4 * self.unit * self.copies, all_units=self.unit * self.copies,
        )  # fmt: skip

    def store(self, base: str, element: int) -> str:
        return f"st.global.u32 [{base}+{4 * element}], %r12;" if self.stores else ""

    def goes_on(self, i: int) -> bool:
        return i < self.bound if self.order == "lt" else i > self.bound if self.order == "gt" else i != self.bound

    def elements(self, thread: int) -> list[tuple[int, int]]:
        """Those that a thread reads, each with the factor."""
        i = self.start + self.apart * thread
        if not self.goes_on(i):
            return []
        size = abs(self.unit)
        total = ((abs(self.bound - i) + size - 1) // size + self.more) % 2**32
        found = []
        for _ in range(total % self.copies):
            found.append((i, 3))
            i += self.unit
        if total < self.copies:
            return found
        at = i + self.shift
        while True:
            for copy in range(self.copies):
                odd = copy == self.copy
                found.append((at + copy * self.unit + odd * self.beside, self.factor if odd else 3))
            at += self.unit * self.copies
            i += self.unit * self.copies
            if not self.goes_on(i):
                return found

    def results(self, offsets: np.ndarray, table: np.ndarray) -> list[int]:
        """What each thread has in the end, and what is in all places."""
        found, places = [], [0] * WORDS
        for thread in range(BLOCK):
            value = 1
            for element, factor in self.elements(thread):
                value = (value * factor + int(table[offsets[element] // 4])) % 2**32
                if self.stores:
                    places[element] = value
            found.append(value)
        return found + places


def loops(rng: random.Random, wrong: bool) -> Loops:
    """Threads have different numbers of trips, or may have."""
    copies, order, apart = rng.choice([2, 4, 4, 4, 8]), rng.choice(["lt", "lt", "gt", "ne"]), rng.choice([1, 1, 1, 2, 0])
    size = rng.choice([1, 2, 32, 32, 64])
    if order == "ne":
        apart, size = 0 if size > 1 else apart, size
    unit = -size if order == "gt" or (order == "ne" and apart == 0 and rng.random() < 0.5) else size
    trips = rng.choice([0, 1, 3, 4, 5, 7, 8, 9, 16, 25])
    length = size * trips + (0 if order == "ne" else rng.randrange(size + 70))
    least = 8 * size + BLOCK * apart + 80
    start = least if unit > 0 else WORDS - least
    bound = start + (length if unit > 0 else -length)
    if order == "ne" and apart:
        bound += BLOCK * apart
    elif order == "gt":
        start -= BLOCK * apart  # which is added
    found = Loops(unit, copies, order, apart, start, bound)
    found.stores = size == 64 and apart == 1  # no place is another thread's, too
    if wrong:
        anywhere = [] if found.stores else ["shift", "beside"]
        kind = rng.choice([*anywhere, "factor", *(["more"] if order != "ne" else [])])
        found.copy = rng.randrange(copies)
        value = rng.choice([-1, 1, 2])
        setattr(found, kind, rng.choice([5, 2]) if kind == "factor" else value)
    return found


def launch(cases: list[Loops], offsets: np.ndarray, table: np.ndarray, engine: str) -> list[list[int] | str]:
    """What each leaves, or the fault."""
    found: list[list[int] | str] = []
    text = HEADER + "".join(case.text(f"k{number}") for number, case in enumerate(cases))
    with ptxemu.Device("64 MiB", workers=1, engine=engine) as device:
        module = ptxemu.loads(text, device=device, tier="best")
        arrays = [device.to_device(array) for array in (offsets, table)]
        for number, case in enumerate(cases):
            out, places = (device.to_device(np.zeros(size, np.uint32)) for size in (BLOCK, WORDS))
            try:
                module[f"k{number}"][1, BLOCK](*arrays, out, places, case.start, case.bound)
                found.append([*out.copy_to_host().tolist(), *places.copy_to_host().tolist()])
            except ptxemu.Fault as fault:
                found.append(str(fault))
    return found


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(seed)
    return 4 * values.integers(0, TABLE, WORDS, np.uint32), values.integers(0, 2**32, TABLE, np.uint32)


def rewritten(text: str, name: str) -> bool:
    return "_rest_trips" in compile.emit_ir(compile.front(text), name, compile.Options())


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_trips(seed: int, wrong: bool) -> None:
    rng = random.Random(f"{seed} {wrong}")
    cases = [loops(rng, wrong) for _ in range(KERNELS)]
    offsets, table = data(seed)
    for case, found in zip(cases, launch(cases, offsets, table, "jit"), strict=True):
        assert found == case.results(offsets, table), case


def faulty(rng: random.Random, seed: int, wrong: int) -> tuple[Loops, np.ndarray, np.ndarray] | None:
    """Loops, of which one trip of one thread finds a wrong offset."""
    case = loops(rng, wrong=False)
    offsets, table = data(seed)
    read = [element for thread in range(BLOCK) for element, _ in case.elements(thread)]
    once = [element for element in read if read.count(element) == 1]
    if not once:
        return None
    offsets[rng.choice(once)] = wrong
    return case, offsets, table


@pytest.mark.parametrize("seed", range(4))
def test_faults_name_the_instruction_and_the_thread(seed: int) -> None:
    rng = random.Random(seed)
    found = [made for _ in range(KERNELS) if (made := faulty(rng, seed, wrong=2)) is not None]
    for case, *arrays in found:
        compiled, interpreted = (launch([case], *arrays, engine)[0] for engine in ("jit", "interpreter"))
        assert isinstance(compiled, str) and "misaligned" in compiled
        assert without_address(compiled) == without_address(str(interpreted)), case
    assert len(found) > 5


def without_address(message: str) -> str:
    """Devices lie anywhere."""
    return re.sub("0x[0-9a-f]+", "0x", message)


def test_which_are_rewritten() -> None:
    """With one difference, whatever it is, none: it would be known only where it does not matter."""
    for stores in (False, True):
        right = Loops(32, 4, "lt", 1, 0, 1000, stores=stores)
        assert rewritten(HEADER + right.text("k"), "k")
        for wrong in ({"beside": 1}, {"factor": 5}, *([{"astray": 2}] if stores else [])):
            assert not rewritten(HEADER + replace(right, **wrong).text("k"), "k")


def test_what_is_read_of_the_rest_later() -> None:
    """Where it has got to would be elsewhere."""
    text = HEADER + Loops(32, 4, "lt", 1, 0, 1000).text("k")
    kept = text.replace("mov.u32 %r12, 1;", "mov.u32 %r12, 1; mov.u32 %r30, 0;").replace("JOIN:", "JOIN: mov.u32 %r30, %r10;")
    assert not rewritten(kept.replace("DONE:", "DONE: add.u32 %r12, %r12, %r30;"), "k")


def test_order_of_accesses() -> None:
    """A place may be one that is read: the unrolled loop must not read before what the rest would have written."""
    text = HEADER + Loops(32, 4, "lt", 1, 0, 1000, stores=True).text("k")
    first, second = (line for line in text.splitlines() if "[%rd11+0]" in line or "[%rd5+120]" in line)
    assert rewritten(text, "k") and not rewritten(swapped(text, first, second), "k")


def swapped(text: str, store: str, load: str) -> str:
    """With the load of the second copy before the store of the first one, into another register."""
    begin, end = store.split("; st.global")
    return text.replace(store, f"{begin}; ld.global.u32 %r30, [%rd5+120]; st.global{end}").replace(
        load, load.replace("ld.global.u32 %r20, [%rd5+120];", "mov.u32 %r20, %r30;")
    )


def test_long_chains() -> None:
    """They are left as they are: to follow them would take as much stack."""
    text = HEADER + Loops(32, 4, "lt", 1, 0, 1000).text("k")
    chain = "add.u32 %r12, %r12, %r12; " * 500
    assert not rewritten(text.replace("  mad.lo.u32 %r12", f"  {chain} mad.lo.u32 %r12"), "k")
    assert not rewritten(text.replace("JOIN:", f"JOIN: {'add.u32 %r4, %r4, 0; ' * 500}"), "k")


def test_a_row_for_each_warp() -> None:
    """What nvcc makes of it."""
    text = (ROOT / "bench" / "kernels" / "warp_rows.ptx").read_text(encoding="utf-8")
    assert rewritten(text, "warp_rows")


def test_lanes_that_leave_together() -> None:
    """There is nothing to be gained where their numbers of trips are the same."""
    assert not rewritten(HEADER + Loops(32, 4, "lt", 0, 0, 1000).text("k"), "k")


@pytest.mark.parametrize(
    ("start", "bound"), [(2**31 - 200, 2**31 - 1), (2**31 - 100, 2**31 - 60), (-(2**31) + 5, -(2**31) + 900)]
)
def test_near_the_ends_of_numbers(start: int, bound: int) -> None:
    """Indexes go round as they would in the unrolled loop; memory is where they are less by so much."""
    case = Loops(1, 4, "lt", 1, start, bound)
    offsets, table = data(1)
    compiled, interpreted = (launch([case], offsets, table, engine)[0] for engine in ("jit", "interpreter"))
    assert isinstance(compiled, str) and compiled.partition(": block")[0] == str(interpreted).partition(": block")[0]
