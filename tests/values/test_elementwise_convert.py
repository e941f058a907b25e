"""``cvt`` for every pair of types and modifier, against exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from ptxemu.driver import compile
from tests.support.elementwise_oracle import (
    BF16,
    F16,
    F32,
    F64,
    FORMATS,
    Format,
    clamp,
    convert,
    float_edges,
    integer_edges,
    pairs,
    random_bits,
    round_integer,
    signed,
    unsigned,
)
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.values.elementwise_harness import check, run

INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FLOATS = ("f16", "f32", "f64", "bf16")
DIRECTIONS = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")


def bits_of(kind: str) -> int:
    return int(kind[1:])


def number(kind: str, x: int) -> int:
    return signed(x, bits_of(kind)) if kind[0] == "s" else x


@cache
def integers(kind: str) -> np.ndarray:
    bits = bits_of(kind)
    values = [integer_edges(bits), random_bits(bits, 200)]
    for power in (11, 12, 24, 25, 53, 54, 61, 63):  # ties and their neighbours in each format
        near = [(1 << power) + (offset << max(power - width, 0)) + low
                for width in (8, 11, 24, 53) for offset in (1, 2, 3) for low in (-1, 0, 1)]  # fmt: skip
        values.append(np.array([unsigned(x * s, bits) for x in near for s in (1, -1)], f"u{bits // 8}"))
    return np.unique(np.concatenate(values))


@cache
def floats(f: Format) -> np.ndarray:
    if f.bits == 16:
        return np.arange(65536, dtype=np.uint16)[::7]
    values = [float_edges(f), random_bits(f.bits, 300)]
    for other in FORMATS.values():  # every edge of the other formats, its neighbours and the ties between
        steps = [convert(other, f, int(x)) for x in float_edges(other)]
        values.append(np.array([unsigned(x + d, f.bits) for x in steps for d in (-1, 0, 1)], values[0].dtype))
    for power in range(-3, 70):
        near = [Fraction(2) ** power + Fraction(o, 4) for o in (-4, -3, -2, -1, 1, 2, 3, 4)]
        values.append(np.array([f.round(s * x) for x in near for s in (1, -1)], values[0].dtype))
    return np.unique(np.concatenate(values))


def contains(target: str, source: str) -> bool:
    if target[0] == source[0]:
        return bits_of(target) >= bits_of(source)
    return target[0] == "s" and bits_of(target) > bits_of(source)


@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_integer(source: str) -> None:
    a = integers(source)
    values = [number(source, int(x)) for x in a]
    for target in INTEGERS:
        bits = bits_of(target)
        check(f"cvt.{target}.{source}", [unsigned(x, bits) for x in values], a)
        if not contains(target, source):
            want = [unsigned(clamp(x, target[0] == "s", bits), bits) for x in values]
            check(f"cvt.sat.{target}.{source}", want, a)


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_float(source: str, target: str) -> None:
    if target == "bf16" and bits_of(source) == 8:
        with pytest.raises(AssertionError, match="Misfit"):
            run(f"cvt.rn.{target}.{source}", integers(source))
        return
    f = FORMATS[target]
    a = integers(source)
    values = [Fraction(number(source, int(x))) for x in a]
    for mode in DIRECTIONS:
        want = [f.round(x, mode) for x in values]
        check(f"cvt.{mode}.{target}.{source}", want, a)
        if target != "bf16":
            check(f"cvt.{mode}.sat.{target}.{source}", [f.saturate(x) for x in want], a)


def integral(f: Format, x: int, mode: str) -> int | None:
    """The number rounded to an integer, of infinities one beyond all types; None of NaN."""
    if f.is_nan(x):
        return None
    if f.is_infinite(x):
        return -(1 << 99) if f.is_negative(x) else 1 << 99
    return round_integer(f.value(x), mode)


def to_integer(f: Format, rounded: int | None, target: str) -> int:
    bits, is_signed = bits_of(target), target[0] == "s"
    if rounded is None:
        return 1 << (bits - 1) if f is F64 or bits == 64 else 0
    return unsigned(clamp(rounded, is_signed, bits), bits)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("mode", INTEGRAL)
def test_float_to_integer(source: str, mode: str) -> None:
    f = FORMATS[source]
    a = floats(f)
    rounded = [integral(f, int(x), mode) for x in a]
    flushed = [integral(f, f.flush(int(x)), mode) for x in a]
    for target in INTEGERS:
        if source == "bf16" and bits_of(target) == 8:
            continue
        want = [to_integer(f, x, target) for x in rounded]
        check(f"cvt.{mode}.{target}.{source}", want, a)
        if source != "bf16":
            check(f"cvt.{mode}.sat.{target}.{source}", want, a)
        if source == "f32":
            check(f"cvt.{mode}.ftz.{target}.{source}", [to_integer(f, x, target) for x in flushed], a)


def check_float(text: str, f: Format, want: list[int], a: np.ndarray) -> None:
    """f64 NaN payloads are not the manual's business: any NaN will do."""
    if f is F64:
        got = [F64.nan if F64.is_nan(int(x)) else int(x) for x in run(text, a)]
        assert got == want, text
    else:
        check(text, want, a)


def float_forms() -> Iterator[tuple[str, str, str]]:
    """(modifiers, target, source)"""
    yield from (("", d, a) for d, a in (("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("f32", "bf16"), ("f64", "bf16"),
                                      ("bf16", "bf16")))  # fmt: skip
    yield from ((".sat", d, a) for d, a in (("f64", "f32"), ("f64", "f16"), ("f32", "f16"), ("f64", "f64"), ("f16", "f16")))
    yield from ((x, "f32", "f32") for x in (".ftz", ".sat", ".ftz.sat"))
    yield from ((".ftz", d, a) for d, a in (("f32", "f16"), ("f64", "f32"), ("f32", "bf16")))
    for mode, sat in product(DIRECTIONS, ("", ".sat")):
        yield from ((f".{mode}{sat}", d, a) for d, a in (("f32", "f64"), ("f16", "f32"), ("f16", "f64")))
        yield from ((f".{mode}.ftz{sat}", d, a) for d, a in (("f32", "f64"), ("f16", "f32")))
    for mode in DIRECTIONS:
        pairs_ = (("bf16", "f16"), ("bf16", "f64"), ("f16", "bf16"), ("f64", "bf16"), ("f32", "bf16"), ("bf16", "f32"))
        yield from ((f".{mode}", d, a) for d, a in pairs_)
        yield from ((f".{mode}.ftz", d, a) for d, a in (("f32", "bf16"), ("bf16", "f32")))
    for mode, limit, relu in list(product(("rn", "rz"), ("", ".satfinite"), ("", ".relu")))[1:]:
        yield from ((f".{mode}{relu}{limit}", d, "f32") for d in ("bf16", "f16"))


def expected_float(modifiers: list[str], target: Format, source: Format, x: int) -> int:
    if source is FORMATS["bf16"] and target is F32 and "ftz" not in modifiers:
        return x << 16  # by a shift, as in machine code, also for NaNs
    if "ftz" in modifiers and source is F32 and target is not FORMATS["f16"]:  # which hardware does not flush for
        x = source.flush(x)
    mode = next((m for m in modifiers if m in DIRECTIONS), "rn")
    y = convert(source, replace(target, flushes="ftz" in modifiers and target is F32), x, mode)
    if "sat" in modifiers:
        return target.saturate(y)
    if "satfinite" in modifiers and target.is_infinite(y):
        y = y - 1
    return 0 if "relu" in modifiers and target.is_negative(y) else y


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", list(float_forms()), ids="{0[0]}.{0[1]}.{0[2]}".format)
def test_float_to_float(form: tuple[str, str, str]) -> None:
    modifiers, target, source = form
    a = floats(FORMATS[source])
    words = modifiers.split(".")
    want = [expected_float(words, FORMATS[target], FORMATS[source], int(x)) for x in a]
    check_float(f"cvt{modifiers}.{target}.{source}", FORMATS[target], want, a)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("mode", INTEGRAL)
def test_rounding_to_integral_values(kind: str, mode: str) -> None:
    f = FORMATS[kind]
    a = floats(f)

    def expected(x: int) -> int:
        if f.is_nan(x):
            return f.nan
        if f.is_infinite(x):
            return x
        return f.round(Fraction(round_integer(f.value(x), mode)), "rn", f.is_negative(x))

    check_float(f"cvt.{mode}.{kind}.{kind}", f, [expected(int(x)) for x in a], a)
    if kind == "f32":
        check(f"cvt.{mode}.ftz.f32.f32", [expected(f.flush(int(x))) for x in a], a)
        check(f"cvt.{mode}.sat.f32.f32", [f.saturate(expected(int(x))) for x in a], a)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs(kind: str) -> None:
    f = FORMATS[kind]
    a = floats(F32)
    b = np.roll(a, 13)
    for mode, limit, relu in product(("rn", "rz"), ("", ".satfinite"), ("", ".relu")):
        words = [mode, limit[1:], relu[1:]]
        halves = [[expected_float(words, f, F32, int(x)) for x in column] for column in (a, b)]
        check(f"cvt.{mode}{relu}{limit}.{kind}x2.f32", [x << 16 | y for x, y in zip(*halves, strict=True)], a, b)


def test_tf32() -> None:
    tf32 = Format(8, 10, 0x3FFFF)
    a = np.concatenate([floats(F32), random_bits(32, 1000) & ~np.uint32(0xFFF)])

    def expected(x: int, mode: str, finite: bool, relu: bool) -> int:
        if F32.is_nan(x) and mode == "rna":  # NVIDIA's assembler composes it of integer instructions, which cut NaNs, too
            return (x & ~0x1FFF) - finite * 0x2000
        if F32.is_nan(x):
            return F32.nan & ~0x1FFF
        if mode == "rna" and not F32.is_infinite(x):
            up = tf32.round(abs(F32.value(x)), "rp")
            down = tf32.round(abs(F32.value(x)), "rz")
            # The tie in the exponent's own scale, overflow included.
            tie = (Fraction(down) + Fraction(1, 2)) == Fraction(x & ~F32.sign, 1 << 13)
            y = (up if tie else tf32.round(abs(F32.value(x)))) | (x & F32.sign) >> 13
        else:
            y = convert(F32, tf32, x, mode)
        if finite and tf32.is_infinite(y):
            y -= 1
        return 0 if relu and tf32.is_negative(y) else y << 13

    for mode, finite in product(("rna", "rn", "rz"), (False, True)):
        for relu in (False, True) if mode != "rna" else (False,):
            text = f"cvt.{mode}{'.satfinite' * finite}{'.relu' * relu}.tf32.f32"
            check(text, [expected(int(x), mode, finite, relu) for x in a], a)


def test_pack() -> None:
    a, b = pairs(integer_edges(32), random_bits(32, 100))
    c = np.roll(b, 9)
    for kind in ("u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"):
        bits = bits_of(kind)
        parts = [[unsigned(clamp(signed(int(x), 32), kind[0] == "s", bits), bits) for x in column] for column in (a, b)]
        pairs_ = [x << bits | y for x, y in zip(*parts, strict=True)]
        if bits == 16:
            check(f"cvt.pack.sat.{kind}.s32", pairs_, a, b)
        else:
            want = [unsigned(int(z) << 2 * bits, 32) | x for x, z in zip(pairs_, c, strict=True)]
            check(f"cvt.pack.sat.{kind}.s32.b32", want, a, b, c)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("kind", "register"), [("f32", "%f1"), ("f64", "%d1")])
def test_floats_become_words_in_vectors(kind: str, register: str, cpu: str) -> None:
    """And bytes, which are made of them; not lane by lane."""
    loaded = f"ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r0, 8, %rd1; ld.global.{kind} {register}, [%rd1];"
    made = "".join(f"cvt.rzi.{to}.{kind} %r{at}, {register};" for at, to in enumerate(("s32", "u32", "s8", "u16"), 1))
    stored = "".join(f"st.global.u32 [%rd1], %r{at};" for at in range(1, 5))
    code = str(compile.emit(compile.front(kernel(GLOBAL_INDEX + loaded + made + stored)), "k", compile.Options(cpu=cpu), "asm"))
    assert "cvtt" in code
    assert "2si" not in code


def test_formats_of_the_oracle() -> None:
    """The oracle itself against NumPy."""
    with np.errstate(all="ignore"):
        a = floats(F64)
        single = a.view(np.float64).astype(np.float32).view(np.uint32)
        half = a.view(np.float64).astype(np.float16).view(np.uint16)
    for x, s, h in zip(map(int, a), map(int, single), map(int, half), strict=True):
        if not F64.is_nan(x):
            assert convert(F64, F32, x) == s
            assert convert(F64, F16, x) == h
    assert BF16.round(Fraction(1)) == 0x3F80
