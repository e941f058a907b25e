"""f32 and f64 arithmetic in every rounding mode against exact rational arithmetic."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elementwise_oracle import (
    F32,
    F64,
    FORMATS,
    Format,
    arithmetic,
    convert,
    extreme,
    float_edges,
    pairs,
    random_bits,
)
from tests.values.elementwise_harness import check, run

MODES = ("rn", "rz", "rm", "rp")
SOURCES = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "mad": 3, "sqrt": 1, "rcp": 1}
FTZ = ("", ".ftz")


def near_one(f: Format, count: int) -> np.ndarray:
    """Random numbers whose exponents are close, so that sums and products interact."""
    raw = random_bits(f.bits, count, 7)
    low = (1 << f.mantissa) - 1
    exponents = (f.bias - 8 + np.arange(count) % 16).astype(raw.dtype)
    return raw & np.array(f.sign | low, raw.dtype) | exponents << np.array(f.mantissa, raw.dtype)


def inputs(f: Format, count: int) -> list[np.ndarray]:
    extra = np.concatenate([random_bits(f.bits, 300), near_one(f, 300)])
    edges = float_edges(f)
    if count == 1:
        return [np.concatenate([edges, extra])]
    if count == 2:
        return list(pairs(edges[::3], extra))
    few = edges[:: len(edges) // 11]
    mesh = [x.ravel() for x in np.meshgrid(few, few, few)]
    return [np.concatenate([m, np.roll(extra, 91 * i)]) for i, m in enumerate(mesh)]


def without_nan_payload(f: Format, values: np.ndarray) -> list[int]:
    return [f.nan if f.is_nan(int(x)) else int(x) for x in values]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SOURCES)
def test_f32(name: str, mode: str) -> None:
    arrays = inputs(F32, SOURCES[name])
    rows = [tuple(map(int, xs)) for xs in zip(*arrays, strict=True)]
    saturations = ("",) if name in ("div", "sqrt", "rcp") else ("", ".sat")
    for ftz, sat in product(FTZ, saturations):
        want = [arithmetic(name, F32, xs, mode, bool(ftz), bool(sat)) for xs in rows]
        check(f"{name}.{mode}{ftz}{sat}.f32", want, *arrays)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SOURCES)
def test_f64(name: str, mode: str) -> None:
    arrays = inputs(F64, SOURCES[name])
    want = [arithmetic(name, F64, tuple(map(int, xs)), mode) for xs in zip(*arrays, strict=True)]
    got = run(f"{name}.{mode}.f64", *arrays)
    assert without_nan_payload(F64, got) == want


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.sampled_from(MODES))
@settings(max_examples=300, deadline=None)
def test_any_f32(a: int, b: int, c: int, mode: str) -> None:
    arrays = [np.array([x], np.uint32) for x in (a, b, c)]
    for name, count in SOURCES.items():
        check(f"{name}.{mode}.f32", [arithmetic(name, F32, (a, b, c)[:count], mode)], *arrays[:count])


@given(st.integers(0, 2**24 - 1), st.integers(-60, 60), st.integers(0, 2**24 - 1), st.sampled_from(MODES))
@settings(max_examples=300, deadline=None)
def test_sums_of_unlike_magnitudes(a: int, shift: int, b: int, mode: str) -> None:
    """The sum that double cannot hold: its error decides."""
    x, y = np.float32(a * 2.0**shift).view(np.uint32), np.float32(-b).view(np.uint32)
    one = np.float32(1).view(np.uint32)
    check(f"add.{mode}.f32", [arithmetic("add", F32, (int(x), int(y)), mode)], x[None], y[None])
    check(f"fma.{mode}.f32", [arithmetic("fma", F32, (int(x), int(one), int(y)), mode)], x[None], one[None], y[None])


def test_default_rounding_is_nearest_and_never_fused() -> None:
    a, b = inputs(F32, 2)
    for name in ("add", "sub", "mul"):
        np.testing.assert_array_equal(run(f"{name}.f32", a, b), run(f"{name}.rn.f32", a, b))
        np.testing.assert_array_equal(run(f"{name}.f64", *inputs(F64, 2)), run(f"{name}.rn.f64", *inputs(F64, 2)))


def test_packed_f32() -> None:
    arrays = [x[: len(x) // 2 * 2] for x in inputs(F32, 3)]
    for name in ("add", "mul", "fma"):
        for mode, ftz in product(("rn", "rm"), FTZ):
            used = arrays[: SOURCES[name]]
            one = run(f"{name}.{mode}{ftz}.f32", *used)
            two = run(f"{name}.{mode}{ftz}.f32x2", *(x.view(np.uint64) for x in used))
            np.testing.assert_array_equal(two.view(np.uint32), one)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_mixed_precision(kind: str) -> None:
    f = FORMATS[kind]
    a, b = pairs(float_edges(f)[::4], random_bits(16, 200))
    c = np.resize(float_edges(F32), len(a))
    rows = [(convert(f, F32, int(x)), convert(f, F32, int(y)), int(z)) for x, y, z in zip(a, b, c, strict=True)]
    for mode in MODES:
        check(f"add.{mode}.f32.{kind}", [arithmetic("add", F32, (x, z), mode) for x, _, z in rows], a, c)
        check(f"sub.{mode}.sat.f32.{kind}", [arithmetic("sub", F32, (x, z), mode, sat=True) for x, _, z in rows], a, c)
        check(f"fma.{mode}.f32.{kind}", [arithmetic("fma", F32, xs, mode) for xs in rows], a, b, c)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_signs_and_properties(kind: str) -> None:
    f = FORMATS[kind]
    a, b = pairs(float_edges(f), random_bits(f.bits, 100))
    for ftz in FTZ[: 2 if kind == "f32" else 1]:
        flushed = [f.flush(int(x)) if ftz else int(x) for x in a]
        added = [kind == "f32" and f.is_nan(x) for x in flushed]  # which NaN is unspecified; hardware adds -0
        check(f"abs{ftz}.{kind}", [f.nan if nan else x & ~f.sign for x, nan in zip(flushed, added, strict=True)], a)
        check(f"neg{ftz}.{kind}", [f.nan if nan else x ^ f.sign for x, nan in zip(flushed, added, strict=True)], a)
    check(f"copysign.{kind}", [int(x) & f.sign | int(y) & ~f.sign for x, y in zip(a, b, strict=True)], a, b)
    subnormal = [f.flush(int(x)) != int(x) for x in a]
    finite = [not f.is_nan(int(x)) and not f.is_infinite(int(x)) for x in a]
    want = {
        "finite": finite,
        "infinite": [f.is_infinite(int(x)) for x in a],
        "number": [not f.is_nan(int(x)) for x in a],
        "notanumber": [f.is_nan(int(x)) for x in a],
        "normal": [p and not q for p, q in zip(finite, subnormal, strict=True)],
        "subnormal": subnormal,
    }
    for name, expected in want.items():
        check(f"testp.{name}.{kind}", [int(x) for x in expected], a)


@pytest.mark.parametrize("name", ["min", "max"])
def test_minimum_and_maximum(name: str) -> None:
    a, b = pairs(float_edges(F32), random_bits(32, 200))
    rows = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    for ftz, nan in product(FTZ, ("", ".NaN")):
        seen = [tuple(F32.flush(x) for x in xs) if ftz else xs for xs in rows]
        check(f"{name}{ftz}{nan}.f32", [extreme(name, F32, x, y, bool(nan)) for x, y in seen], a, b)
        want = []
        for x, y in seen:
            magnitude = extreme(name, F32, x & ~F32.sign, y & ~F32.sign, bool(nan))
            want.append(magnitude if F32.is_nan(magnitude) else magnitude | (x ^ y) & F32.sign)
        check(f"{name}{ftz}{nan}.xorsign.abs.f32", want, a, b)
        c = np.roll(b, 31)
        third = [F32.flush(int(z)) if ftz else int(z) for z in c]
        want = [extreme(name, F32, extreme(name, F32, x, y, bool(nan)), z, bool(nan))
                for (x, y), z in zip(seen, third, strict=True)]  # fmt: skip
        check(f"{name}{ftz}{nan}.f32", want, a, b, c)
    a, b = pairs(float_edges(F64), random_bits(64, 200))
    want = [extreme(name, F64, int(x), int(y), nan=False) for x, y in zip(a, b, strict=True)]
    assert without_nan_payload(F64, run(f"{name}.f64", a, b)) == [F64.nan if F64.is_nan(x) else x for x in want]


def test_approximate_division() -> None:
    """Correct rounding meets the 2 ulp; the manual's rule for huge divisors is exact."""
    a, b = inputs(F32, 2)
    limit = F32.round(2**126 * F32.value(F32.one))
    for ftz in FTZ:
        want, full = [], []
        for x, y in zip(map(int, a), map(int, b), strict=True):
            result = arithmetic("div", F32, (x, y), "rn", bool(ftz))
            full.append(result)
            if limit < y & ~F32.sign < F32.infinity and not F32.is_nan(x):
                result = F32.nan if F32.is_infinite(x) else (x ^ y) & F32.sign
            want.append(result)
        check(f"div.approx{ftz}.f32", want, a, b)
        check(f"div.full{ftz}.f32", full, a, b)
