"""Comparison and selection."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.elementwise_oracle import FORMATS, Format, float_edges, integer_edges, pairs, random_bits, signed
from tests.values.elementwise_harness import check, run

ORDER: dict[str, Callable[[object, object], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
FLOAT_CMP = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
BOOL = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def integer_inputs(kind: str) -> tuple[np.ndarray, np.ndarray, list[bool], Callable[[str], list[int]]]:
    bits = int(kind[1:])
    a, b = pairs(integer_edges(bits)[::2], random_bits(bits, 64))
    values = [[signed(int(x), bits) if kind[0] == "s" else int(x) for x in column] for column in (a, b)]
    return a, b, [], lambda cmp: [int(ORDER[cmp](x, y)) for x, y in zip(*values, strict=True)]


def compare_floats(f: Format, cmp: str, a: int, b: int, ftz: bool) -> bool:
    if f.is_nan(a) or f.is_nan(b):
        return cmp == "nan" or (cmp != "num" and cmp.endswith("u"))
    if cmp in ("num", "nan"):
        return cmp == "num"

    def key(x: int) -> int:
        x = f.flush(x) if ftz else x
        magnitude = x & (f.sign - 1)
        return -magnitude if f.is_negative(x) else magnitude

    return ORDER[cmp[:2]](key(a), key(b))


@pytest.mark.parametrize("kind", [k + b for k in "bus" for b in ("16", "32", "64")])
def test_integer_comparisons(kind: str) -> None:
    a, b, _, want = integer_inputs(kind)
    names = {"b": ("eq", "ne"), "u": tuple(ORDER), "s": ("eq", "ne", "lt", "le", "gt", "ge")}[kind[0]]
    for cmp in names:
        check(f"setp.{cmp}.{kind}", want(cmp), a, b)
    check(f"set.eq.u32.{kind}", [0xFFFFFFFF * x for x in want("eq")], a, b)
    check(f"set.ne.f32.{kind}", [0x3F800000 * x for x in want("ne")], a, b)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("cmp", FLOAT_CMP)
def test_float_comparisons(kind: str, cmp: str) -> None:
    f = FORMATS[kind]
    a, b = pairs(float_edges(f)[::2], random_bits(f.bits, 64))
    ones = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f16": 0x3C00, "bf16": 0x3F80}
    ones |= {"u16": 0xFFFF, "s16": 0xFFFF} if "f16" in kind else {"f32": 0x3F800000}
    for ftz in (False, True) if kind in ("f16", "f32") else (False,):
        want = [int(compare_floats(f, cmp, int(x), int(y), ftz)) for x, y in zip(a, b, strict=True)]
        modifiers = f"{cmp}.ftz" if ftz else cmp
        check(f"setp.{modifiers}.{kind}", want, a, b)
        unavailable = {"f16"} if kind == "bf16" else {"bf16"} if ftz else set()
        for dtype, one in ones.items():
            if dtype in unavailable:
                continue
            check(f"set.{modifiers}.{dtype}.{kind}", [x * one for x in want], a, b)


@pytest.mark.parametrize("name", BOOL)
def test_boolean_operator_and_second_predicate(name: str) -> None:
    a, b, _, want = integer_inputs("s32")
    c = np.arange(len(a)) % 2 == 1
    p, q = run(f"setp.lt.{name}.s32", a, b, c, dsts=2)
    assert list(p) == [BOOL[name](t, int(x)) for t, x in zip(want("lt"), c, strict=True)]
    assert list(q) == [BOOL[name](1 - t, int(x)) for t, x in zip(want("lt"), c, strict=True)]
    check(f"set.lt.{name}.s32.s32", [0xFFFFFFFF * int(x) for x in p], a, b, c)
    p, q = run("setp.lt.s32", a, b, dsts=2)
    assert list(p) == want("lt") and list(q) == [1 - t for t in want("lt")]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_packed_comparisons(kind: str) -> None:
    f = FORMATS[kind]
    a, b = pairs(float_edges(f)[::2], random_bits(16, 64))
    a, b = a[: len(a) // 2 * 2], b[: len(b) // 2 * 2]
    want = np.array([compare_floats(f, "ltu", int(x), int(y), False) for x, y in zip(a, b, strict=True)], int)
    x, y = a.view(np.uint32), b.view(np.uint32)
    p, q = run(f"setp.ltu.{kind}x2", x, y, dsts=2)
    np.testing.assert_array_equal(p, want[::2])
    np.testing.assert_array_equal(q, want[1::2])
    c = np.arange(len(x)) % 3 == 0
    p, q = run(f"setp.ltu.xor.{kind}x2", x, y, c, dsts=2)
    np.testing.assert_array_equal(p, want[::2] ^ c)
    np.testing.assert_array_equal(q, want[1::2] ^ c)
    one = {"f16": 0x3C00, "bf16": 0x3F80}[kind]
    for dtype, value in ((f"{kind}x2", one), ("u32", 0xFFFF)):
        check(f"set.ltu.{dtype}.{kind}x2", [int(l * value | h * value << 16) for l, h in want.reshape(-1, 2)], x, y)  # noqa: E741


@pytest.mark.parametrize("kind", ["b16", "u32", "s64", "f32", "f64"])
def test_selp(kind: str) -> None:
    a, b = random_bits(int(kind[1:]), 40, 1), random_bits(int(kind[1:]), 40, 2)
    p = np.arange(40) % 3 == 0
    check(f"selp.{kind}", [int(x if c else y) for x, y, c in zip(a, b, p, strict=True)], a, b, p)


@pytest.mark.parametrize("kind", ["b16", "u32", "s64", "f32", "f64"])
def test_slct(kind: str) -> None:
    f = FORMATS["f32"]
    bits = int(kind[1:])
    c = float_edges(f)
    a, b = random_bits(bits, len(c), 1), random_bits(bits, len(c), 2)
    triples = [tuple(map(int, t)) for t in zip(a, b, c, strict=True)]
    check(f"slct.{kind}.s32", [x if z < 1 << 31 else y for x, y, z in triples], a, b, c)
    for ftz in (False, True):
        want = [x if compare_floats(f, "ge", z, 0, ftz) else y for x, y, z in triples]
        check(f"slct{'.ftz' if ftz else ''}.{kind}.f32", want, a, b, c)
