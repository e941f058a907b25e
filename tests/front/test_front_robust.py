"""No input, however malformed, long or deep, gives more than diagnostics."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

import ptxemu
from tests.fuzz.front import HEADER, SEED, fuzz

KERNEL = ".visible .entry k(.param .u64 p)\n{\n    .reg .b32 %r<4>;\n    add.u32 %r1, %r2, %r3;\n    ret;\n}\n"


def test_fuzz() -> None:
    assert fuzz(SEED, 2000, seconds=2) > 0


def test_truncated_at_every_character() -> None:
    for end in range(len(HEADER + KERNEL)):
        ptxemu.lint((HEADER + KERNEL)[:end])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0",
        "\ufeff" + HEADER + KERNEL,
        (HEADER + KERNEL).replace("\n", "\r\n"),
        HEADER + ".entry k() {" + "{" * 200 + "}" * 200 + " ret; }",
        HEADER + ".entry k() {" + "{" * 100_000,
        HEADER + ".entry k() { .reg .b32 %r<100000>; mov.b32 %r99999, 1; ret; }",
        HEADER + ".entry k() { " + "/*x*/" * 200_000 + " ret; }",
        HEADER + "// " + "x" * 1_000_000,
        HEADER + ".global .u32 x = " + "(" * 50_000,
        HEADER + ".entry k() { .reg .u32 %r1; mov.u32 %r1, " + "9" * 100_000 + "; ret; }",
        HEADER + ".global .u32 " + "a" * 1_000_000 + ";",
        HEADER + ".global .u8 x[1000000000000] = {1};",
        HEADER + ".entry k() { .reg .b32 %r<9>; mov.b32 %r" + "1" * 6000 + ", 1; }",
        HEADER + ".entry k() { " + "".join(f"T{i}: .branchtargets L<65536>; " for i in range(200)) + "}",
        HEADER + ".entry k() { " + "".join(f".reg .b32 r{i}; " for i in range(20_000)) + "mov.b32 missing, 1; }",
        HEADER + ".entry k() { " + "".join(f"bra L{i}; " for i in range(8000)) + "x: y:" + "L: " * 8000 + "}",
        HEADER + ".entry k() { " + "".join(f"T{i}: .branchtargets A{i}; " for i in range(8000)) + "}",
        HEADER + ".entry k() { " + "".join(f"call f{i}, (a); " for i in range(8000)),
        HEADER + "".join(f".global .u32 a{i} = b{i}; " for i in range(8000)),
    ],
    ids=lambda text: f"{len(text)} characters",
)
def test_extreme_texts(text: str) -> None:
    ptxemu.lint(text)
    ptxemu.lint(text, strict=True)


@pytest.mark.parametrize("text", [KERNEL, KERNEL.replace("%r2", "%missing")], ids=["right", "wrong"])
def test_a_module_that_was_read_leaves_nothing(text: str) -> None:
    """No cycles: what nobody holds any more is gone at once, so that a process may read modules for ever."""
    ptxemu.lint(HEADER + text)
    gc.collect()
    gc.disable()
    try:
        ptxemu.lint(HEADER + text)
        assert gc.collect() == 0
    finally:
        gc.enable()


GARBAGE = """
import gc
from ptxemu.process import gc_pause as collector

collector.LEAST = 10_000
collector._unsearched = collector._Unsearched()
gc.collect()
before = len(gc.get_objects())
allowed = max(collector.LEAST, before // 4)
for _ in range(10 * allowed // 100):
    with collector.collector_paused():
        for _ in range(100):
            cycle = []
            cycle.append(cycle)
assert len(gc.get_objects()) - before < 2 * allowed
"""


def test_the_collector_still_finds_garbage_of_others() -> None:
    """In a process of its own: how much garbage it takes depends on how many objects there are."""
    subprocess.run([sys.executable, "-c", GARBAGE], check=True)
