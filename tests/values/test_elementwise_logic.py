"""Logic, shifts, permutation and bit fields against bit-by-bit models of the manual's pseudo code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elementwise_oracle import integer_edges, pairs, random_bits, signed, unsigned
from tests.values.elementwise_harness import check, run

LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
AMOUNTS = np.array([0, 1, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 65536, 1 << 31, 2**32 - 1], np.uint32)


def width(kind: str) -> int:
    return int(kind[1:])


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
def test_bitwise(kind: str) -> None:
    bits = width(kind)
    a, b = pairs(integer_edges(bits), random_bits(bits, 64))
    for name, model in LOGIC.items():
        check(f"{name}.{kind}", [model(int(x), int(y)) for x, y in zip(a, b, strict=True)], a, b)
    check(f"not.{kind}", [unsigned(~int(x), bits) for x in a], a)
    check(f"cnot.{kind}", [int(x == 0) for x in a], a)


def test_predicates() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for name, model in LOGIC.items():
        check(f"{name}.pred", [model(int(x), int(y)) for x, y in zip(a, b, strict=True)], a, b)
    check("not.pred", [1, 1, 0, 0], a)


@pytest.mark.parametrize("kind", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts_clamp_the_amount(kind: str) -> None:
    bits = width(kind)
    values = np.concatenate([integer_edges(bits), random_bits(bits, 8)])
    a, n = (x.ravel() for x in np.meshgrid(values, AMOUNTS))
    numbers = [signed(int(x), bits) if kind[0] == "s" else int(x) for x in a]
    check(f"shr.{kind}", [unsigned(x >> int(y), bits) for x, y in zip(numbers, n, strict=True)], a, n)
    if kind[0] == "b":
        check(f"shl.{kind}", [unsigned(x << min(int(y), 99), bits) for x, y in zip(numbers, n, strict=True)], a, n)
        check(f"shl.{kind}", [unsigned(x << 5, bits) for x in numbers], a, immediates={1: 5})


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shifts(mode: str) -> None:
    a, n = (x.ravel() for x in np.meshgrid(random_bits(32, 20), AMOUNTS))
    b = np.roll(a, 3)
    left, right = [], []
    for x, y, amount in zip(a, b, n, strict=True):
        pool, shift = int(y) << 32 | int(x), min(int(amount), 32) if mode == "clamp" else int(amount) & 31
        left.append(unsigned(pool << shift >> 32, 32))
        right.append(unsigned(pool >> shift, 32))
    check(f"shf.l.{mode}.b32", left, a, b, n)
    check(f"shf.r.{mode}.b32", right, a, b, n)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 256, 16))
def test_lop3_tables(first: int) -> None:
    a, b, c = random_bits(32, 32, 1), random_bits(32, 32, 2), random_bits(32, 32, 3)
    for table in range(first, first + 16):
        want = np.zeros(32, np.uint32)
        for k in range(8):
            if table >> k & 1:
                want |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
        check("lop3.b32", list(want), a, b, c, immediates={3: table})


@pytest.mark.parametrize("op", ["and", "or"])
def test_lop3_with_predicate(op: str) -> None:
    a = np.array([0, 0, 5, 5, 0xFFFFFFFF, 1], np.uint32)
    b, q = np.full(6, 4, np.uint32), np.array([0, 1, 0, 1, 1, 0], bool)
    d, p = run(f"lop3.{op}.b32", a, b, b, q, dsts=2, immediates={3: 0xC0})
    assert list(d) == [int(x) & 4 for x in a]
    assert list(p) == [LOGIC[op](int(x & 4 != 0), int(y)) for x, y in zip(a, q, strict=True)]


SPECIAL = {
    "f4e": ["3210", "4321", "5432", "6543"],
    "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"],
    "rc16": ["1010", "3232", "1010", "3232"],
}


def permuted(a: int, b: int, indices: list[int]) -> int:
    """Bytes of b:a by index, lowest first; an index of 8 and more replicates the sign of the byte."""
    data = (b << 32 | a).to_bytes(8, "little")
    chosen = [(255 if data[i & 7] & 128 else 0) if i & 8 else data[i & 7] for i in indices]
    return int.from_bytes(bytes(chosen), "little")


def test_prmt() -> None:
    a, b, c = random_bits(32, 1024, 1), random_bits(32, 1024, 2), random_bits(32, 1024, 3)
    c[:32] = np.arange(32)
    triples = [tuple(map(int, t)) for t in zip(a, b, c, strict=True)]
    check("prmt.b32", [permuted(x, y, [s >> 4 * i & 15 for i in range(4)]) for x, y, s in triples], a, b, c)
    for mode, table in SPECIAL.items():
        want = [permuted(x, y, [int(d) for d in reversed(table[s & 3])]) for x, y, s in triples]
        check(f"prmt.b32.{mode}", want, a, b, c)


SELECTORS = [
    0x3210,
    0x7654,
    0x5410,
    0x7632,
    0x7604,
    0x1054,
    0x0000,
    0xFFFF,
    0x8888,
    0xBB99,
    0xD410,
    0x0123,
    0x2301,
    0x4567,
    0x4440,
]


@pytest.mark.parametrize("selector", [*SELECTORS, *map(int, random_bits(16, 16, 4))])
def test_prmt_with_a_constant_selector(selector: int) -> None:
    a, b = random_bits(32, 64, 1), random_bits(32, 64, 2)
    nibbles = [selector >> 4 * i & 15 for i in range(4)]
    expected = [permuted(int(x), int(y), nibbles) for x, y in zip(a, b, strict=True)]
    check("prmt.b32", expected, a, b, immediates={2: 0xABCD0000 | selector})


# ---------------------------------------------------------------- bit fields


def find_leading(kind: str, x: int) -> int:
    bits = width(kind)
    if kind[0] == "s" and x >> (bits - 1):
        x = unsigned(~x, bits)
    return x.bit_length() - 1


@pytest.mark.parametrize("bits", [32, 64])
def test_counting_and_searching(bits: int) -> None:
    a = np.concatenate([integer_edges(bits), random_bits(bits, 200)])
    check(f"popc.b{bits}", [int(x).bit_count() for x in a], a)
    check(f"clz.b{bits}", [bits - int(x).bit_length() for x in a], a)
    check(f"brev.b{bits}", [int(f"{int(x):0{bits}b}"[::-1], 2) for x in a], a)
    for kind in (f"u{bits}", f"s{bits}"):
        found = [find_leading(kind, int(x)) for x in a]
        check(f"bfind.{kind}", [unsigned(x, 32) for x in found], a)
        check(f"bfind.shiftamt.{kind}", [0xFFFFFFFF if x < 0 else bits - 1 - x for x in found], a)


POSITIONS = np.array([0, 1, 5, 16, 30, 31, 32, 33, 62, 63, 64, 127, 200, 255, 256, 288, 2**32 - 1], np.uint32)


def place(x: int, bits: int) -> int:
    """A position or a length: the manual's low 8 bits, but in 64 bits hardware takes all (docs/semantics.md, "Bit fields")."""
    return x if bits == 64 else x & 255


def extracted(kind: str, a: int, position: int, length: int) -> int:
    """The manual's loop."""
    bits, top = width(kind), width(kind) - 1
    position, length = place(position, bits), place(length, bits)
    sign = 0 if kind[0] == "u" or length == 0 else a >> min(position + length - 1, top) & 1
    result = 0
    for i in range(bits):
        result |= (a >> (position + i) & 1 if i < length and position + i <= top else sign) << i
    return result


def inserted(bits: int, a: int, b: int, position: int, length: int) -> int:
    position, length = place(position, bits), place(length, bits)
    for i in range(max(0, min(length, bits - position))):
        b = b & ~(1 << position + i) | (a >> i & 1) << position + i
    return b


@pytest.mark.parametrize("bits", [32, 64])
def test_bit_fields(bits: int) -> None:
    values = np.concatenate([random_bits(bits, 2), np.array([0, 2**bits - 1, 1 << (bits - 1)], f"u{bits // 8}")])
    a, p, n = (x.ravel() for x in np.meshgrid(values, POSITIONS, POSITIONS))
    b = np.roll(a, 4)
    for kind in (f"u{bits}", f"s{bits}"):
        want = [extracted(kind, int(x), int(y), int(z)) for x, y, z in zip(a, p, n, strict=True)]
        check(f"bfe.{kind}", want, a, p, n)
    want = [inserted(bits, int(x), int(y), int(q), int(z)) for x, y, q, z in zip(a, b, p, n, strict=True)]
    check(f"bfi.b{bits}", want, a, b, p, n)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_extension_and_masks(mode: str) -> None:
    a, b = (x.ravel() for x in np.meshgrid(np.concatenate([integer_edges(32), AMOUNTS]), AMOUNTS))

    def count(x: int) -> int:
        return min(x, 32) if mode == "clamp" else x & 31

    fields = [(int(x) & ((1 << count(int(n))) - 1), count(int(n))) for x, n in zip(a, b, strict=True)]
    check(f"szext.{mode}.u32", [x for x, _ in fields], a, b)
    check(f"szext.{mode}.s32", [unsigned(signed(x, n), 32) if n else 0 for x, n in fields], a, b)
    masks = [unsigned(((1 << count(int(n))) - 1) << count(int(x)), 32) for x, n in zip(a, b, strict=True)]
    check(f"bmsk.{mode}.b32", masks, a, b)


def nth_set(mask: int, base: int, offset: int) -> int:
    """The manual's loop."""
    if base > 31:
        return 0xFFFFFFFF
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    order = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [i for i in order if mask >> i & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else 0xFFFFFFFF


@given(st.integers(0, 2**32 - 1), st.integers(0, 34), st.integers(-34, 34))
@settings(max_examples=500, deadline=None)
def test_fns(mask: int, base: int, offset: int) -> None:
    arrays = np.array([mask], np.uint32), np.array([base], np.uint32), np.array([offset], np.int32).view(np.uint32)
    check("fns.b32", [nth_set(mask, base, offset)], *arrays)


def test_fns_extremes() -> None:
    """The least offset gives what the machine code of NVIDIA's assembler does."""
    for offset, found in ((-(2**31), 0), (2**31 - 1, 0xFFFFFFFF)):
        arrays = np.array([2**32 - 1], np.uint32), np.array([31], np.uint32), np.array([offset], np.int32).view(np.uint32)
        check("fns.b32", [found], *arrays)
