"""Loops whose lanes compare a counter of each with one bound: who leaves in which turn, also where counters wrap."""

from __future__ import annotations

import operator
import os
import re
from itertools import product

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.driver.lowering import Options
from tests.support.kernel_tools import HEADER

COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
UNSIGNED = {"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
TURNS = 6
BLOCK = 45

KERNEL = """.visible .entry {name}(.param .u64 out, .param .u64 cases)
{{
  .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .{type} %x<6>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [cases]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
  mul.wide.u32 %rd3, %r3, {size}; add.u64 %rd2, %rd2, %rd3;
  ld.global.{type} %x1, [%rd2]; ld.global.{type} %x2, [%rd2+{bytes}]; ld.global.{type} %x3, [%rd2+2*{bytes}];
  {widen} %x4, %r1; {lanes}.{type} %x1, %x1, %x4; mov.u32 %r2, 0;
TURN:
  {test}
  add.u32 %r2, %r2, 1; add.{type} %x1, %x1, %x3;
  setp.lt.u32 %p2, %r2, {turns}; @%p2 bra TURN;
DONE:
  mad.lo.u32 %r1, %r3, %r4, %r1; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2;
  ret;
}}
"""
"""A block has a case of its own: where its first lane's counter starts, the bound, and the step."""


def variants() -> list[tuple[str, str, bool, bool]]:
    """A comparison, how lanes' counters follow, whether the bound stands first, and whether lanes leave if it does not hold.

    Some, with all of these among them; with PTXEMU_EVERY_FORM all."""
    every = list(product(COMPARISONS, ("add", "sub"), (False, True), (False, True)))
    return every if "PTXEMU_EVERY_FORM" in os.environ else every[::5]


def name_of(variant: tuple[str, str, bool, bool]) -> str:
    return "_".join(map(str, variant))


def text(type: str) -> str:
    kernels = []
    for variant in variants():
        cmp, lanes, bound_first, negated = variant
        written = MIRRORED[cmp] if bound_first else cmp
        written = UNSIGNED[written] if type[0] == "u" and negated else written
        operands = "%x2, %x1" if bound_first else "%x1, %x2"
        test = f"setp.{written}.{type} %p1, {operands}; @{'!' if negated else ''}%p1 bra DONE;"
        widen = "mov.b32" if type[1:] == "32" else f"cvt.{type}.u32"
        sizes = {"bytes": int(type[1:]) // 8, "size": 3 * int(type[1:]) // 8}
        kernels.append(KERNEL.format(name=name_of(variant), type=type, widen=widen, lanes=lanes, test=test, turns=TURNS, **sizes))
    return HEADER + "\n".join(kernels)


def turns(variant: tuple[str, str, bool, bool], bits: int, signed: bool, start: int, bound: int, step: int, lane: int) -> int:
    cmp, lanes, _, negated = variant
    low = -(1 << bits - 1) if signed else 0

    def wrapped(value: int) -> int:
        return (value - low) % (1 << bits) + low

    counter = wrapped(start + lane if lanes == "add" else start - lane)
    for turn in range(TURNS):
        if COMPARISONS[cmp](counter, bound) != negated:
            return turn
        counter = wrapped(counter + step)
    return TURNS


@pytest.mark.parametrize("type", ["s32", "u32", "s64", "u64"])
def test_lanes_leave_where_the_comparison_says(type: str) -> None:
    bits, signed = int(type[1:]), type[0] == "s"
    least = -(1 << bits - 1) if signed else 0
    most = least + (1 << bits) - 1
    middle = (least + most) // 2
    starts, bounds = (least, least + 20, middle, most - 20, most), (least, middle + 70, most - 9, most)
    cases = list(product(starts, bounds, (40, -40)))
    words = np.array([value % (1 << bits) for case in cases for value in case], np.dtype(f"u{bits // 8}"))
    module = ptxemu.loads(text(type))
    for variant in variants():
        out = np.zeros((len(cases), BLOCK), np.uint32)
        module[name_of(variant)][len(cases), BLOCK](out, words)
        wanted = [[turns(variant, bits, signed, *case, lane) for lane in range(BLOCK)] for case in cases]
        np.testing.assert_array_equal(out, wanted, str(variant))


def test_two_lanes_tell_of_all() -> None:
    """No vectors are compared in turns in which all lanes stay."""
    module = compile.front(text("s32"), "exits.ptx")
    for variant in variants():
        lowered = compile.lower(module, module.functions[name_of(variant)], "row", Options()).text
        assert re.search(r"(%v\d+) = and i1 .*\n  br i1 \1, label %none", lowered)
