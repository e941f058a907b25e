"""No input, however malformed, long or deep, gives more than diagnostics."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from fuzz_front import HEADER, SEED, fuzz

import ptxemu

KERNEL = ".visible .entry k(.param .u64 p)\n{\n    .reg .b32 %r<4>;\n    add.u32 %r1, %r2, %r3;\n    ret;\n}\n"


def test_fuzz() -> None:
    assert fuzz(SEED, 2000, seconds=5) > 0


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
    ],
    ids=lambda text: f"{len(text)} characters",
)
def test_extreme_texts(text: str) -> None:
    ptxemu.lint(text)
    ptxemu.lint(text, strict=True)


@pytest.mark.parametrize("read", [ptxemu.lint, lambda text: ptxemu.loads(text, strict=True)], ids=["lint", "loads"])
def test_a_process_may_read_modules_for_ever(read: Callable[[str], object]) -> None:
    """Old modules are garbage, and the collector finds it."""
    text = HEADER + KERNEL.replace("add.u32 %r1, %r2, %r3;", "add.u32 %r1, %r2, %r3;\n" * 40)
    gc.collect()

    def grown(times: int) -> int:
        before = len(gc.get_objects())
        for _ in range(times):
            read(text)
        return len(gc.get_objects()) - before

    once = grown(1)
    assert grown(600) < 300 * once
