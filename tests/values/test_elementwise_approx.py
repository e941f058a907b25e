"""Approximate functions: special values exactly, everything else within the manual's maximum errors."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from tests.support.elementwise_oracle import F32, F64, float_edges, random_bits
from tests.values.elementwise_harness import run

INF, NINF, NAN, ZERO, NZERO, ONE = 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0, 0x80000000, 0x3F800000

# The tables of PTX ISA 9.7.3, by function: inputs and results.
SPECIAL: dict[str, dict[int, int]] = {
    "rcp": {NINF: NZERO, NZERO: NINF, ZERO: INF, INF: ZERO, NAN: NAN},
    "sqrt": {NINF: NAN, 0xBF800000: NAN, NZERO: NZERO, ZERO: ZERO, INF: INF, NAN: NAN},
    "rsqrt": {NINF: NAN, 0xBF800000: NAN, NZERO: NINF, ZERO: INF, INF: ZERO, NAN: NAN},
    "sin": {NINF: NAN, NZERO: NZERO, ZERO: ZERO, INF: NAN, NAN: NAN},
    "cos": {NINF: NAN, NZERO: ONE, ZERO: ONE, INF: NAN, NAN: NAN},
    "lg2": {NINF: NAN, 0xBF800000: NAN, NZERO: NINF, ZERO: NINF, INF: INF, NAN: NAN, ONE: ZERO},
    "ex2": {NINF: ZERO, NZERO: ONE, ZERO: ONE, INF: INF, NAN: NAN},
    "tanh": {NINF: 0xBF800000, NZERO: NZERO, ZERO: ZERO, INF: ONE, NAN: NAN},
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    a = np.array([*SPECIAL[name], 0xFFC12345, 0x7F800001], np.uint32)
    want = [*SPECIAL[name].values(), NAN, NAN]
    for ftz in ("", ".ftz") if name != "tanh" else ("",):
        assert [hex(x) for x in run(f"{name}.approx{ftz}.f32", a)] == [hex(x) for x in want]


def grid(low: float, high: float, count: int = 100_000) -> np.ndarray:
    return np.linspace(low, high, count).astype(np.float32).view(np.uint32)


def magnitudes(lowest: int = -149, highest: int = 128) -> np.ndarray:
    """Every exponent with many significands, both signs, subnormals too."""
    significands = np.concatenate([np.arange(0, 1 << 23, 40009), [(1 << 23) - 1]]).astype(np.uint32)
    fields = np.arange(max(lowest + 126, 0), highest + 127, dtype=np.uint32) << 23
    positive = (fields[:, None] | significands[None, :]).ravel()
    return np.concatenate([positive, positive | np.uint32(1 << 31)])


# Double precision has 29 bits more than needed to measure errors of f32 results.
REFERENCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


def ulp(x: np.ndarray) -> np.ndarray:
    """The spacing of f32 around x."""
    exponent = np.floor(np.log2(np.maximum(np.abs(x), 2.0**-149)))
    return 2.0 ** (np.maximum(exponent, -126) - 23)


def errors(name: str, bits: np.ndarray, kind: str, ftz: str = "") -> float:
    """The largest error over the inputs whose exact result is a finite f32 number."""
    x = bits.view(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        exact = REFERENCE[name](x)
        got = run(f"{name}.approx{ftz}.f32", bits).view(np.float32).astype(np.float64)
        used = np.isfinite(exact) & np.isfinite(x) & (np.abs(exact) <= float(np.finfo(np.float32).max))
        if ftz:
            used &= (np.abs(x) >= 2.0**-126) & (np.abs(exact) >= 2.0**-126)
        error = np.abs(got - exact)
        if kind == "ulp":
            error = error / ulp(exact)
        elif kind == "relative":
            error = np.where(exact == 0, np.where(got == 0, 0, np.inf), error / np.abs(exact))
    assert used.any() and np.isfinite(got[used]).all()
    return float(error[used].max())


BOUNDS = [
    # function, inputs, measure, manual's maximum
    ("rcp", magnitudes(-126, 126), "ulp", 1.0),
    ("rcp", magnitudes(-126, 126), "relative", 2.0**-23),
    ("sqrt", magnitudes(), "relative", 2.0**-23),
    ("rsqrt", magnitudes(), "relative", 2.0**-22.9),
    ("sin", grid(-2 * np.pi, 2 * np.pi), "absolute", 2.0**-20.5),
    ("cos", grid(-2 * np.pi, 2 * np.pi), "absolute", 2.0**-20.5),
    ("sin", grid(-100 * np.pi, 100 * np.pi), "absolute", 2.0**-14.7),
    ("cos", grid(-100 * np.pi, 100 * np.pi), "absolute", 2.0**-14.7),
    ("sin", magnitudes(-149, 0), "absolute", 2.0**-20.5),
    ("lg2", grid(0.5, 2.0), "absolute", 2.0**-22),
    ("lg2", magnitudes(-149, -2), "relative", 2.0**-22),
    ("lg2", magnitudes(1, 127), "relative", 2.0**-22),
    ("ex2", grid(-150, 128, 300_000), "ulp", 2.0),
    ("ex2", magnitudes(-149, 0), "ulp", 2.0),
    ("tanh", magnitudes(-149, 127), "relative", 2.0**-11),
    ("tanh", grid(-10, 10), "relative", 2.0**-11),
]


@pytest.mark.parametrize("case", range(len(BOUNDS)), ids=[f"{b[0]}-{b[2]}-{i}" for i, b in enumerate(BOUNDS)])
def test_maximum_errors(case: int, record_property: Callable[[str, object], None]) -> None:
    name, inputs, kind, bound = BOUNDS[case]
    for ftz in ("", ".ftz") if name != "tanh" else ("",):
        worst = errors(name, inputs, kind, ftz)
        record_property(f"{name}{ftz} {kind}", worst)
        print(f"{name}.approx{ftz}: largest {kind} error {worst:.4g} (manual {bound:.4g})")
        assert worst <= bound


@pytest.mark.parametrize("name", SPECIAL)
def test_flushing(name: str) -> None:
    """``.ftz`` treats subnormal inputs as zeros and gives no subnormal results."""
    if name == "tanh":
        return
    tiny = np.array([1, 0x7FFFFF, 0x80000001, 0x807FFFFF], np.uint32)
    zeros = tiny & np.uint32(1 << 31)
    np.testing.assert_array_equal(run(f"{name}.approx.ftz.f32", tiny), run(f"{name}.approx.ftz.f32", zeros))
    results = run(f"{name}.approx.ftz.f32", np.concatenate([magnitudes(), grid(-150, -126)]))
    assert all(F32.flush(int(x)) == int(x) for x in np.unique(results & np.uint32(0x7FFFFFFF))[:100])


def test_overflow_and_underflow_of_ex2() -> None:
    a = np.array([128, 127.99999, 1e30, -151, -150.5, -1e30, -149], np.float32).view(np.uint32)
    got = run("ex2.approx.f32", a)
    assert [int(got[i]) for i in (0, 2, 3, 4, 5, 6)] == [INF, INF, 0, 0, 0, 1]
    assert 0x7F7FFF00 < int(got[1]) < INF


def test_big_arguments_of_sine_stay_bounded() -> None:
    values = np.abs(run("sin.approx.f32", magnitudes(20, 128)).view(np.float32))
    assert (values[np.isfinite(values)] <= 1.0).all()


def test_quarter_turns_are_exact() -> None:
    """As on hardware, where the reduced argument is short: the extremes of sine and cosine are exactly 1 and -1."""
    quarter = np.array([np.pi / 2, -np.pi / 2, 1.5 * np.pi], np.float32)
    half = np.array([np.pi, -np.pi, 2 * np.pi, 3 * np.pi], np.float32)
    np.testing.assert_array_equal(run("sin.approx.f32", quarter.view(np.uint32)).view(np.float32), [1, -1, -1])
    np.testing.assert_array_equal(run("cos.approx.f32", half.view(np.uint32)).view(np.float32), [-1, -1, 1, -1])


# ---------------------------------------------------------------- f64

COARSE = {"rcp": lambda x: 1 / x, "rsqrt": lambda x: 1 / mpmath.sqrt(x)}


@pytest.mark.parametrize("name", COARSE)
def test_coarse_f64(name: str) -> None:
    """Only the upper words count; results are within 2**-20 of the exact ones."""
    a = np.concatenate([float_edges(F64), random_bits(64, 2000)])
    got = run(f"{name}.approx.ftz.f64", a)
    for whole, y in zip(map(int, a), map(int, got), strict=True):
        x = whole & ~0xFFFFFFFF
        top = x & F64.sign
        if F64.is_nan(x):
            assert y == 0x7FFFFFFF00000000
        elif F64.flush(x) == top:
            assert y == F64.infinity | top
        elif name == "rsqrt" and top:
            assert y == 0x7FFFFFFF00000000
        elif F64.is_infinite(x):
            assert y == top
        else:
            cut = F64.value(x)
            exact = COARSE[name](mpmath.mpf(cut.numerator) / cut.denominator)
            assert y & 0xFFFFFFFF == 0
            if abs(exact) < mpmath.mpf(2) ** -1022:
                assert y == top
            else:
                value = F64.value(y)
                assert abs(mpmath.mpf(value.numerator) / value.denominator - exact) <= abs(exact) * mpmath.mpf(2) ** -20


def test_rsqrt_f64() -> None:
    a = np.concatenate([float_edges(F64), random_bits(64, 2000)])
    got = run("rsqrt.approx.f64", a)
    specials = {0: F64.infinity, F64.sign: F64.infinity | F64.sign, F64.infinity: 0}
    for x, y in zip(map(int, a), map(int, got), strict=True):
        if F64.is_nan(x) or (F64.is_negative(x) and x != F64.sign):
            assert F64.is_nan(y)
        elif x in specials:
            assert y == specials[x]
        else:
            number = F64.value(x)
            exact = 1 / mpmath.sqrt(mpmath.mpf(number.numerator) / number.denominator)
            value = F64.value(y)
            assert abs(mpmath.mpf(value.numerator) / value.denominator - exact) <= exact * mpmath.mpf(2) ** -51
