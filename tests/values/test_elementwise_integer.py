"""Integer arithmetic against Python's exact integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elementwise_oracle import clamp, integer_edges, pairs, random_bits, signed, unsigned
from tests.values.elementwise_harness import check, host, run

ALL = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED = ("s16", "s32", "s64")


def bits_of(kind: str) -> int:
    return int(kind[1:])


def inputs(bits: int) -> tuple[np.ndarray, np.ndarray]:
    return pairs(integer_edges(bits), random_bits(bits, 512))


def numbers(kind: str, a: np.ndarray) -> list[int]:
    bits = bits_of(kind)
    return [signed(int(x), bits) if kind[0] == "s" else int(x) for x in a]


def expect(text: str, kind: str, model: Callable[..., int], *arrays: np.ndarray, result: int = 0, cpu: str = "") -> None:
    """Check ``text`` against ``model`` on the exact values of ``kind``; ``result`` is the result's width."""
    columns = [numbers(kind, a) for a in arrays]
    check(text, [unsigned(model(*xs), result or bits_of(kind)) for xs in zip(*columns, strict=True)], *arrays, cpu=cpu)


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "div": lambda a, b: truncated(a, b) if b else -1,
    "rem": lambda a, b: a - b * truncated(a, b) if b else -1,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, kind: str) -> None:
    expect(f"{name}.{kind}", kind, BINARY[name], *inputs(bits_of(kind)))


@pytest.mark.parametrize("kind", ALL)
def test_products(kind: str) -> None:
    bits = bits_of(kind)
    a, b = inputs(bits)
    c = np.roll(b, 17)
    expect(f"mul.hi.{kind}", kind, lambda x, y: x * y >> bits, a, b)
    expect(f"mad.hi.{kind}", kind, lambda x, y, z: (x * y >> bits) + z, a, b, c)
    expect(f"mad.lo.{kind}", kind, lambda x, y, z: x * y + z, a, b, c)
    expect(f"sad.{kind}", kind, lambda x, y, z: z + abs(x - y), a, b, c)
    if bits < 64:
        expect(f"mul.wide.{kind}", kind, lambda x, y: x * y, a, b, result=2 * bits)
        wide = np.resize(integer_edges(2 * bits), len(a))
        want = [unsigned(x * y + int(z), 2 * bits) for x, y, z in zip(numbers(kind, a), numbers(kind, b), wide, strict=True)]
        check(f"mad.wide.{kind}", want, a, b, wide)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@settings(max_examples=200, deadline=None)
def test_high_product_and_division_of_any_64_bits(a: int, b: int) -> None:
    x, y = np.array([a], np.uint64), np.array([b], np.uint64)
    expect("mul.hi.u64", "u64", lambda p, q: p * q >> 64, x, y)
    expect("mul.hi.s64", "s64", lambda p, q: p * q >> 64, x, y)
    expect("div.s64", "s64", BINARY["div"], x, y)


@given(st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(-2, 2))
@settings(max_examples=300, deadline=None)
def test_quotients_next_to_integers(divisor: int, factor: int, offset: int) -> None:
    dividend = divisor * (factor % (2**32 // divisor + 1)) + offset
    a, b = np.array([dividend % 2**32], np.uint32), np.array([divisor], np.uint32)
    expect("div.u32", "u32", BINARY["div"], a, b)
    expect("rem.s32", "s32", BINARY["rem"], a, b)


def test_division_by_zero_and_overflow() -> None:
    for kind in ALL:
        top = 1 << (bits_of(kind) - 1)
        ones = 2 * top - 1
        a, b = np.array([0, 5, top, top], f"u{top.bit_length() // 8}"), np.array([0, 0, 0, ones], f"u{top.bit_length() // 8}")
        signed_kind = kind[0] == "s"
        assert list(run(f"div.{kind}", a, b)) == [ones, ones, ones, top if signed_kind else 0]
        assert list(run(f"rem.{kind}", a, b)) == [ones, ones, ones, 0 if signed_kind else top]


def test_saturating_and_24_bit_forms() -> None:
    a, b = inputs(32)
    c = np.roll(b, 5)
    expect("add.sat.s32", "s32", lambda x, y: clamp(x + y, True, 32), a, b)
    expect("sub.sat.s32", "s32", lambda x, y: clamp(x - y, True, 32), a, b)
    expect("mad.hi.sat.s32", "s32", lambda x, y, z: clamp((x * y >> 32) + z, True, 32), a, b, c)
    for kind, narrow in (("u32", lambda x: unsigned(x, 24)), ("s32", lambda x: signed(x, 24))):
        expect(f"mul24.lo.{kind}", kind, lambda x, y, n=narrow: n(x) * n(y), a, b)
        expect(f"mul24.hi.{kind}", kind, lambda x, y, n=narrow: n(x) * n(y) >> 16, a, b)
        expect(f"mad24.lo.{kind}", kind, lambda x, y, z, n=narrow: n(x) * n(y) + z, a, b, c)
        expect(f"mad24.hi.{kind}", kind, lambda x, y, z, n=narrow: (n(x) * n(y) >> 16) + z, a, b, c)
    sat = lambda x, y, z: clamp(signed(signed(x, 24) * signed(y, 24) >> 16, 32) + z, True, 32)  # noqa: E731
    expect("mad24.hi.sat.s32", "s32", sat, a, b, c)


@pytest.mark.parametrize("kind", SIGNED)
def test_absolute_and_negative(kind: str) -> None:
    a = integer_edges(bits_of(kind))
    expect(f"abs.{kind}", kind, abs, a)
    expect(f"neg.{kind}", kind, lambda x: -x, a)


def test_relu() -> None:
    a, b = inputs(32)
    expect("min.relu.s32", "s32", lambda x, y: max(0, min(x, y)), a, b)
    expect("max.relu.s32", "s32", lambda x, y: max(0, x, y), a, b)


PACKED = {
    "add.u16x2": ("u16", lambda x, y: x + y),
    "add.s16x2": ("s16", lambda x, y: x + y),
    "min.u16x2": ("u16", min),
    "max.u16x2": ("u16", max),
    "min.s16x2": ("s16", min),
    "max.s16x2": ("s16", max),
    "min.relu.s16x2": ("s16", lambda x, y: max(0, min(x, y))),
    "max.relu.s16x2": ("s16", lambda x, y: max(0, x, y)),
}


@pytest.mark.parametrize("text", PACKED)
def test_packed(text: str) -> None:
    kind, model = PACKED[text]
    a, b = inputs(16)
    a, b = a[: len(a) // 2 * 2], b[: len(b) // 2 * 2]
    halves = [unsigned(model(x, y), 16) for x, y in zip(numbers(kind, a), numbers(kind, b), strict=True)]
    want = np.array(halves, np.uint16).view(np.uint32)
    check(text, [int(x) for x in want], a.view(np.uint32), b.view(np.uint32))


NEEDS = {"": "", "x86-64-v2": "ssse3", "x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}
CPUS = [cpu for cpu, feature in NEEDS.items() if f"+{feature}" in host()[1]]
"""This one, and those whose code it runs."""


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("atype", ["u32", "s32"])
@pytest.mark.parametrize("btype", ["u32", "s32"])
def test_dot_products(atype: str, btype: str, cpu: str) -> None:
    a, b = inputs(32)
    c = np.roll(a, 11)

    def fields(kind: str, x: int, bits: int) -> list[int]:
        return [(signed if kind[0] == "s" else unsigned)(x >> i, bits) for i in range(0, 32, bits)]

    def dot4(x: int, y: int, z: int) -> int:
        return z + sum(p * q for p, q in zip(fields(atype, x, 8), fields(btype, y, 8), strict=True))

    def dot2(half: int, x: int, y: int, z: int) -> int:
        return z + sum(p * q for p, q in zip(fields(atype, x, 16), fields(btype, y, 8)[2 * half :][:2], strict=True))

    expect(f"dp4a.{atype}.{btype}", "u32", dot4, a, b, c, cpu=cpu)
    expect(f"dp2a.lo.{atype}.{btype}", "u32", lambda x, y, z: dot2(0, x, y, z), a, b, c, cpu=cpu)
    expect(f"dp2a.hi.{atype}.{btype}", "u32", lambda x, y, z: dot2(1, x, y, z), a, b, c, cpu=cpu)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_carry_chains(kind: str) -> None:
    bits = bits_of(kind)
    a, b = inputs(bits)
    c, d = np.roll(a, 7), np.roll(b, 13)
    low, carry = run(f"add.cc.{kind}", a, b)
    middle, carry2 = run(f"addc.cc.{kind}", c, d, carry)
    high = run(f"addc.{kind}", np.zeros_like(a), np.zeros_like(a), carry2)
    for i in range(len(a)):
        total = int(a[i]) + int(b[i]) + ((int(c[i]) + int(d[i])) << bits)
        assert int(low[i]) | int(middle[i]) << bits | int(high[i]) << 2 * bits == total
    low, borrow = run(f"sub.cc.{kind}", a, b)
    middle, borrow2 = run(f"subc.cc.{kind}", c, d, borrow)
    high = run(f"subc.{kind}", np.zeros_like(a), np.zeros_like(a), borrow2)
    for i in range(len(a)):
        total = int(a[i]) - int(b[i]) + ((int(c[i]) - int(d[i])) << bits)
        assert int(low[i]) | int(middle[i]) << bits | int(high[i]) << 2 * bits == unsigned(total, 3 * bits)


@pytest.mark.parametrize("kind", ["u32", "u64"])
def test_multiply_add_chain_makes_the_double_width_product(kind: str) -> None:
    bits = bits_of(kind)
    a, b = inputs(bits)
    c, d = np.roll(a, 3), np.roll(b, 5)
    low, carry = run(f"mad.lo.cc.{kind}", a, b, c)
    middle, carry2 = run(f"madc.hi.cc.{kind}", a, b, d, carry)
    high = run(f"madc.lo.{kind}", np.zeros_like(a), a, np.zeros_like(a), carry2)
    for i in range(len(a)):
        total = int(a[i]) * int(b[i]) + int(c[i]) + (int(d[i]) << bits)
        assert int(low[i]) | int(middle[i]) << bits | int(high[i]) << 2 * bits == total
