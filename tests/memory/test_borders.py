"""Accesses of shared memory at the border of an array, beyond which only lanes lead that are off, against the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support import processors
from tests.support.kernel_tools import kernel

WORDS = 64
ENDS = [(0, 64), (0, 63), (1, 64), (0, 32), (0, 31), (1, 30), (1, 63), (33, 63), (20, 31), (32, 40), (63, 64), (9, 9)]
PARAMETERS = ".param .u64 out, .param .u32 first, .param .u32 end"


def many(*offsets: int) -> str:
    """Loads off one base, so many that they have one test."""
    return "mov.u32 %r7, 0;" + "".join(f"ld.shared.u32 %r9, [%r6+{offset}]; mad.lo.u32 %r7, %r7, 3, %r9;" for offset in offsets)


FORMS = {
    "behind": ("shl.b32 %r5, %r1, 2;", "ld.shared.u32 %r7, [%r6+4];", "st.shared.u32 [%r6+4], %r8;"),
    "before": ("shl.b32 %r5, %r1, 2;", "ld.shared.u32 %r7, [%r6+-4];", "st.shared.u32 [%r6+-4], %r8;"),
    "pairs": ("shl.b32 %r5, %r1, 3;", "ld.shared.u32 %r7, [%r6+8]; ld.shared.u32 %r9, [%r6+4]; mad.lo.u32 %r7, %r9, 5, %r7;",
              "st.shared.u32 [%r6+4], %r8; st.shared.u32 [%r6+8], %r7;"),
    "every second": ("shl.b32 %r5, %r1, 3;", "ld.shared.u32 %r7, [%r6+4];", "st.shared.u32 [%r6+4], %r8;"),
    "backwards": ("mul.lo.u32 %r5, %r1, -4;", "ld.shared.u32 %r7, [%r6+248];", "st.shared.u32 [%r6+248], %r8;"),
    "of eight bytes": ("shl.b32 %r5, %r1, 3;", "ld.shared.u64 %rd9, [%r6+8]; cvt.u32.u64 %r7, %rd9;",
                       "cvt.u64.u32 %rd8, %r8; st.shared.u64 [%r6+8], %rd8;"),
    "many": ("shl.b32 %r5, %r1, 2;", many(0, 4, 8, 4, 0, 8), "st.shared.u32 [%r6+4], %r8;"),
    "many before": ("shl.b32 %r5, %r1, 2;", many(0, -4, 4, -8, 0, 4), "st.shared.u32 [%r6+-4], %r8;"),
    "many stores": ("shl.b32 %r5, %r1, 3;", "ld.shared.u32 %r7, [%r4];",
                    "".join(f"st.shared.u32 [%r6+{offset}], %r8;" for offset in (-8, 4, 0, 0, 4, 0))),
}  # fmt: skip


def text(form: str) -> str:
    """Threads from the first to the last load neighbours, and store what they make of them."""
    place, load, store = FORMS[form]
    return kernel(
        f"""
  ld.param.u64 %rd1, [out]; ld.param.u32 %r20, [first]; ld.param.u32 %r21, [end]; mov.u32 %r1, %tid.x;
  mov.u32 %r2, words; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; mad.lo.u32 %r22, %r1, %r1, 7; st.shared.u32 [%r4], %r22;
  bar.sync 0; mov.u32 %r7, 0; {place} add.u32 %r6, %r2, %r5;
  setp.lt.u32 %p1, %r1, %r20; setp.ge.u32 %p2, %r1, %r21; or.pred %p3, %p1, %p2;
  @%p3 bra AFTER; {load}
AFTER:
  bar.sync 0; mad.lo.u32 %r8, %r7, 3, %r1; @%p3 bra OVER; {store}
OVER:
  bar.sync 0; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2; ld.shared.u32 %r10, [%r4]; st.global.u32 [%rd2], %r10;
  add.u32 %r7, %r7, %r8; st.global.u32 [%rd2+{4 * WORDS}], %r7;""",
        PARAMETERS,
        f".shared .align 4 .b8 words[{4 * WORDS}];" if form != "of eight bytes" else f".shared .align 8 .b8 words[{4 * WORDS}];",
    )


def outcome(engine: str, form: str, first: int, end: int) -> tuple[str, np.ndarray]:
    out = np.zeros(2 * WORDS, np.uint32)
    with ptxemu.Device("16 MiB", engine=engine) as device:
        try:
            ptxemu.loads(text(form), device=device, tier="best")["k"][1, WORDS](out, first, end)
        except ptxemu.Fault as fault:
            return str(fault).partition(", thread")[0], np.zeros(0)  # which of several threads is the first differs
    return "", out


@pytest.mark.parametrize("form", FORMS)
def test_neighbours(form: str) -> None:
    faults = set()
    for first, end in ENDS:
        jit, interpreted = (outcome(engine, form, first, end) for engine in ("jit", "interpreter"))
        assert jit[0] == interpreted[0]
        np.testing.assert_array_equal(jit[1], interpreted[1], f"{first} to {end}")
        faults.add(bool(jit[0]))
    assert faults == {False, True}


@pytest.mark.parametrize("form", FORMS)
def test_on_other_processors(form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    processors.without_avx512(monkeypatch, tmp_path)
    test_neighbours(form)


def test_nobody_else_has_the_margins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Code for AVX2 writes what it has read there; here it does so all the time, beside another worker."""
    processors.without_avx512(monkeypatch, tmp_path)
    at = [f"[%r4+{4 * word}]" for word in range(6)]
    source = kernel(
        f"""
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, words; shl.b32 %r4, %r1, 2;
  add.u32 %r4, %r3, %r4; mov.u32 %r5, 0; {"".join(f"st.shared.u32 {place}, %r1;" for place in at)}
AGAIN:
  {"".join(f"ld.shared.u32 %r6, {place}; add.u32 %r6, %r6, 1; st.shared.u32 {place}, %r6;" for place in at)}
  add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 40; @%p1 bra AGAIN;
  ld.shared.u32 %r7, [%r4]; mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd1, %rd2; atom.global.add.u32 %r8, [%rd2], %r7;""",
        ".param .u64 out",
        ".shared .align 4 .b8 words[36];",
    )
    sums = {}
    for engine, blocks in (("jit", 4000), ("interpreter", 1)):
        sums[engine] = np.zeros(blocks, np.uint32)
        with ptxemu.Device("64 MiB", engine=engine, workers=2) as device:
            ptxemu.loads(source, device=device, tier="best")["k"][blocks, 4](sums[engine])
    assert (sums["jit"] == sums["interpreter"]).all()


@pytest.mark.parametrize("form", ["behind", "pairs"])
def test_they_are_made_in_the_code(form: str) -> None:
    assert "vpgatherdd" in str(compile.emit(compile.front(text(form)), "k", compile.Options(cpu="x86-64-v4"), "asm"))
