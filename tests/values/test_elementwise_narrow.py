"""``cvt`` to and from eight bits and fewer: every pattern, against exact arithmetic and against ml_dtypes."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elementwise_oracle import BF16, F16, F32, float_edges, random_bits
from tests.support.narrow_oracles import (
    NARROW,
    QUARTERS,
    from_fixed,
    from_narrow,
    from_scale,
    random_quarter,
    stochastic_pair,
    stochastic_quad,
    to_fixed,
    to_narrow,
    to_scale,
)  # fmt: skip
from tests.values.elementwise_harness import check, run

DTYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn, "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
ALL = np.arange(65536, dtype=np.uint32)
RELU = ("", ".relu")


def fields(name: str, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper and the lower elements of pairs."""
    size = 4 if name == "e2m1" else 8
    return packed >> size, packed & ((1 << size) - 1)


def floats(name: str) -> np.ndarray:
    """Every value of the format, every point between two, their neighbours, edges and random numbers."""
    f = NARROW[name]
    numbers = [F32.round(f.value(pattern)) for pattern in range(f.patterns)]
    ties = [F32.round((f.value(a) + f.value(a + 1)) / 2) for a in range(f.patterns - 1)]
    near = np.array([max(x + d, 0) for x in numbers + ties for d in (-1, 0, 1)], np.uint32)
    return np.concatenate([near, near | np.uint32(1 << 31), float_edges(F32), random_bits(32, 2000)])


@pytest.mark.parametrize("name", DTYPES)
def test_from_f32(name: str) -> None:
    a = floats(name)
    b = np.roll(a, 7)
    for relu in RELU:
        packed = run(f"cvt.rn.satfinite{relu}.{name}x2.f32", a, b)
        for got, source in zip(fields(name, packed), (a, b), strict=True):
            assert got.tolist() == [to_narrow(name, F32, int(x), relu) for x in source]


@pytest.mark.parametrize("name", DTYPES)
def test_from_f32_as_ml_dtypes(name: str) -> None:
    """Where it saturates too, or the number is in range: NaN and overflow are the instruction's own."""
    a = np.concatenate([floats(name), random_bits(32, 20_000, 5)])
    values = a.view(np.float32)
    with np.errstate(all="ignore"):
        want = values.astype(DTYPES[name]).view(np.uint8)
    largest = float(NARROW[name].value(NARROW[name].patterns - 1))
    inside = np.abs(values) <= min(largest, float(ml_dtypes.finfo(DTYPES[name]).max))
    got = fields(name, run(f"cvt.rn.satfinite.{name}x2.f32", a, a))[0]
    mask = np.uint8(2 ** NARROW[name].bits - 1)
    np.testing.assert_array_equal(got[inside], want[inside] & mask)


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m1"])
def test_from_every_f16(name: str) -> None:
    pairs = ALL << 16 | np.roll(ALL, 77)
    for relu in RELU:
        want = [to_narrow(name, F16, x, relu) for x in range(65536)]
        upper, lower = fields(name, run(f"cvt.rn.satfinite{relu}.{name}x2.f16x2", pairs))
        assert upper.tolist() == want
        assert lower.tolist() == np.roll(want, 77).tolist()


@pytest.mark.parametrize("name", DTYPES)
def test_every_pattern_to_f16(name: str) -> None:
    size = 4 if name == "e2m1" else 8
    x = np.arange(1 << size)
    packed = (x << size | np.roll(x, 3)).astype(np.uint8 if size == 4 else np.uint16)
    for relu in RELU:
        want = [from_narrow(name, int(a), relu) << 16 | from_narrow(name, int(b), relu)
                for a, b in zip(x, np.roll(x, 3), strict=True)]  # fmt: skip
        check(f"cvt.rn{relu}.f16x2.{name}x2", want, packed)
    numbers = x.astype(np.uint8).view(DTYPES[name]) if size == 8 and NARROW[name].bits == 8 else None
    if numbers is not None:
        exact = numbers.astype(np.float16).view(np.uint16)
        got = run(f"cvt.rn.f16x2.{name}x2", packed) >> 16
        finite = ~np.isnan(exact.view(np.float16))
        np.testing.assert_array_equal(got[finite], exact[finite])


@pytest.mark.parametrize(("mode", "finite"), list(product(("rz", "rp"), ("", ".satfinite"))))
def test_scales(mode: str, finite: str) -> None:
    """ue8m0 from every bf16 and from many f32, and back."""
    words = [mode, finite[1:]]
    want = [to_scale(BF16, x, words) for x in range(65536)]
    both = [x << 8 | y for x, y in zip(want, np.roll(want, 5).tolist(), strict=True)]
    check(f"cvt.{mode}{finite}.ue8m0x2.bf16x2", both, ALL << 16 | np.roll(ALL, 5))
    powers = np.arange(256, dtype=np.uint32) << 23
    near = np.concatenate([powers + d for d in (0, 1, 0x400000, 0x400001, 0x7FFFFF)])
    a = np.concatenate([near, near | np.uint32(1 << 31), random_bits(32, 500)])
    want = [to_scale(F32, int(x), words) for x in a]
    check(f"cvt.{mode}{finite}.ue8m0x2.f32", [x << 8 | x for x in want], a, a)


def test_scales_to_bf16() -> None:
    x = np.arange(65536, dtype=np.uint16)
    check("cvt.rn.bf16x2.ue8m0x2", [from_scale(int(v) >> 8) << 16 | from_scale(int(v) & 255) for v in x], x)


@pytest.mark.parametrize("name", NARROW)
def test_cut_as_exact(name: str) -> None:
    """Toward zero, at every number and between every two."""
    a = floats(name)
    for words in ("", ".relu", ".pzo") if name in DTYPES else ("",):
        got = fields(name, run(f"cvt.rz.satfinite{words}.{name}x2.f32", a, a))[0]
        assert got.tolist() == [to_narrow(name, F32, int(x), ["rz", "satfinite", words[1:]]) for x in a]


@pytest.mark.parametrize("finite", ["", ".satfinite"])
def test_unsigned_scales(finite: str) -> None:
    """ue5m3, upward and to nearest, and all of its patterns as f16 and bf16."""
    a = floats("ue5m3")
    for mode in ("rn", "rp"):
        got = run(f"cvt.{mode}{finite}.ue5m3x2.f32", a, a) & 255
        assert got.tolist() == [to_narrow("ue5m3", F32, int(x), [mode, finite[1:]]) for x in a]
    x = np.arange(256, dtype=np.uint16)
    for packed, target in (("f16x2", F16), ("bf16x2", BF16)):
        check(f"cvt.rn.{packed}.ue5m3x2", [from_narrow("ue5m3", v, "", target) for v in range(256)], x)


@pytest.mark.parametrize("relu", RELU)
def test_fixed_point(relu: str) -> None:
    """s2f6 from a third of all bf16, and some of its patterns with every factor."""
    for mode, some in (("rn", ALL[::3]), ("rz", ALL[1::3])):
        want = [to_fixed(BF16, int(x), [mode, relu[1:]]) for x in some]
        check(f"cvt.{mode}.satfinite{relu}.s2f6x2.bf16x2", [x << 8 | x for x in want], some << 16 | some)
    scales = np.arange(256, dtype=np.uint16)
    for pattern in (0, 1, 3, 64, 127, 128, 129, 200, 255):
        want = [from_fixed(pattern, [relu[1:]], scale) for scale in range(256)]
        check(f"cvt.rn{relu}.scaled::n2::ue8m0.bf16x2.s2f6x2", want, np.full(256, pattern, np.uint16), 0x7F00 | scales)


@given(st.sampled_from(["f16x2", "bf16x2"]), *[st.integers(0, 2**32 - 1)] * 3, st.sampled_from(["", ".satfinite"]),
       st.sampled_from(RELU))  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_any_stochastic_rounding(kind: str, a: int, b: int, random: int, finite: str, relu: str) -> None:
    b = b & 0x807FFFFF | 100 + (b >> 23) % 48 << 23  # about the range of f16
    want = stochastic_pair(kind, [finite[1:], relu[1:]], a, b, random)
    check(f"cvt.rs{relu}{finite}.{kind}.f32", [want], *(np.array([x], np.uint32) for x in (a, b, random)))


@pytest.mark.parametrize(("kind", "width"), [("f16x2", 13), ("bf16x2", 16)])
def test_stochastic_rounding_is_fair(kind: str, width: int) -> None:
    """Over all random bits a number rounds up as often as its discarded part says."""
    random = np.arange(1 << width, dtype=np.uint32)
    for discarded in (0, 1, 5000, (1 << width) - 1):
        a = np.full(1 << width, 0x3F800000 | discarded, np.uint32)
        packed = run(f"cvt.rs.{kind}.f32", a, a, random << 16 | random[::-1])
        one = 0x3C00 if kind == "f16x2" else 0x3F80
        for half in (packed >> 16, packed & 0xFFFF):
            assert int((half - one).sum()) == discarded


@given(st.sampled_from(sorted(DTYPES)), *[st.integers(0, 2**32 - 1)] * 5, st.sampled_from(RELU))
@settings(max_examples=300, deadline=None)
def test_any_four_rounded_stochastically(name: str, a: int, b: int, c: int, d: int, random: int, relu: str) -> None:
    xs = [x & 0x807FFFFF | 105 + (x >> 23) % 36 << 23 for x in (a, b, c)]  # about the range of the formats
    want = stochastic_quad(f"{name}x4", [relu[1:]], *xs, d, random)
    check(f"cvt.rs{relu}.satfinite.{name}x4.f32", [want], *(np.array([x], np.uint32) for x in (*xs, d, random)))


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_random_bits_of_four(name: str) -> None:
    """As measured: an element rounds up if its part of a step and that of its sixteen random bits make one."""
    step, parts = 2.0 ** -int(name[3]), np.arange(1 << 16) / (1 << 16)
    x = (1 + step * parts).astype(np.float32).view(np.uint32)
    size, one = 4 if name == "e2m1" else 8, int(np.array(1, DTYPES[name]).view(np.uint8))
    for bit in range(32):
        packed = run(f"cvt.rs.satfinite.{name}x4.f32", x, x, x, x, np.full_like(x, 1 << bit))
        ups = [int((packed >> size * at & (1 << size) - 1 > one).sum()) for at in (3, 2, 1, 0)]
        assert ups == [random_quarter(ranges, 1 << bit) for ranges in QUARTERS.get(name, QUARTERS["others"])]
