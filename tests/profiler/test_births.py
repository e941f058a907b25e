"""Where NaNs, infinities and subnormal numbers are made, against what IEEE 754 says of the operands."""

from __future__ import annotations

import pytest

import ptxemu
from ptxemu.interpreter.births import INFINITY, NAN, SUBNORMAL, classes
from ptxemu.interpreter.observer import observing
from ptxemu.profiler.counters import Profiler
from ptxemu.profiler.profile import Profile
from ptxemu.text.listings import Listings
from tests.support.kernel_tools import kernel

INF, ONE, TINY, BIG = "0f7F800000", "0f3F800000", "0f00800000", "0f7F7FFFFF"


def births(*instructions: str) -> list[tuple[str, str, int]]:
    """Kind, instruction and how often, in the order of the first."""
    with ptxemu.Device(memory="4 MiB", engine="interpreter") as device:
        profiler = Profiler(device.arena.describe, births=True)
        with observing(profiler):
            ptxemu.loads(kernel("\n".join(instructions), ""), device=device)["k"][1, 32]()
    return [(kind, text, first.times) for kind, _, text, first in Profile(profiler.launches[0]).births(Listings())]


def test_what_is_made_and_what_is_only_passed_on() -> None:
    made = births(
        f"mov.f32 %f1, {INF};",  # a constant makes nothing
        "sub.f32 %f2, %f1, %f1;",  # inf - inf
        "add.f32 %f3, %f2, %f1;",
        f"mul.f32 %f4, {BIG}, {BIG};",
        f"mul.f32 %f5, {TINY}, 0f3F000000;",
        "mul.f32 %f6, %f5, 0f3F000000;",
        f"mul.ftz.f32 %f7, {TINY}, 0f3F000000;",
        "ret;",
    )
    assert made == [
        (NAN, "sub.f32 %f2, %f1, %f1;", 32),
        (INFINITY, f"mul.f32 %f4, {BIG}, {BIG};", 32),
        (SUBNORMAL, f"mul.f32 %f5, {TINY}, 0f3F000000;", 32),
    ]


def test_guards_loops_and_other_types() -> None:
    made = births(
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; mov.f32 %f1, 0f00000000; mov.f64 %d1, 0d7FEFFFFFFFFFFFFF;",
        "mov.u32 %r2, 0; L:",
        "@%p1 div.rn.f32 %f2, %f1, %f1;",
        "add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 3; @%p2 bra L;",
        "cvt.rn.f32.f64 %f3, %d1;",
        "mov.b32 %r3, 0x00017BFF; add.f16x2 %r4, %r3, %r3;",
        "ret;",
    )
    assert made == [
        (NAN, "@%p1 div.rn.f32 %f2, %f1, %f1;", 15),
        (INFINITY, "cvt.rn.f32.f64 %f3, %d1;", 32),
        (INFINITY, "add.f16x2 %r4, %r3, %r3;", 32),
    ]


@pytest.mark.parametrize(
    ("bits", "type", "found"),
    [
        (0x7FC00000, "f32", {NAN}), (0xFF800000, "f32", {INFINITY}), (0x80000001, "f32", {SUBNORMAL}), (0x80000000, "f32", set()),
        (0x7C01, "f16", {NAN}), (0x7F80, "bf16", {INFINITY}), (0x7C000001, "f16x2", {INFINITY, SUBNORMAL}),
        (0x7FF0000000000001, "f64", {NAN}), (0x3FF0000000000000, "f64", set()),
    ],
)  # fmt: skip
def test_classes_of_numbers(bits: int, type: str, found: set[str]) -> None:
    assert classes(bits, type) == found
