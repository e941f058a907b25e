"""How results are compared: every kind of limit, and what messages say of the elements that are off."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxemu.case.compare import Comparison, compare
from ptxemu.case.tolerance import Tolerance

EXACT = Tolerance()


def picture(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(math.prod(shape)) % 251).astype(np.uint8).reshape(shape)


def test_the_worst_element_is_told() -> None:
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    actual = expected.copy()
    actual[0, 1] += 0.5
    actual[2, 3] -= 4
    found = compare("x", actual, expected, EXACT)
    assert found.message == (
        "2 of 12 differ; first at [0, 1]: 1.5, expected 1.0; worst at [2, 3]: 7.0, expected 11.0, largest error 4"
    )
    assert found == Comparison("x", False, found.message, 12, 2, 4.0, (2, 3))


def test_what_is_not_finite_is_worst() -> None:
    found = compare("x", np.array([1.0, 5.0, np.nan]), np.array([1.0, 2.0, 3.0]), EXACT)
    assert found.worst == (2,) and found.largest == math.inf
    assert found.message.endswith("worst at [2]: nan, expected 3.0, largest error inf")


def test_steps_are_told_where_they_count() -> None:
    one = np.ones(3, np.float32)
    off = np.nextafter(np.nextafter(one, np.float32(2)), np.float32(2))
    assert compare("x", off, one, Tolerance(ulp=2)).message == "largest error 2.38e-07 (2 ulp)"
    assert compare("x", off, one, Tolerance(ulp=1)).message.endswith("largest error 2.38e-07 (2 ulp)")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_steps_of_small_floats(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = np.dtype(f"u{dtype.itemsize}")
    ones = np.ones(4, dtype)
    off = (ones.view(bits) + bits.type(2)).view(dtype)
    assert compare("x", off, ones, Tolerance(ulp=2)).passed
    assert not compare("x", off, ones, Tolerance(ulp=1)).passed
    assert compare("x", off, ones.astype(np.float64), Tolerance(ulp=2)).passed


INTEGERS = st.sampled_from([np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])


@given(st.data(), INTEGERS, INTEGERS, st.integers(0, 2**65))
def test_integers_are_off_by_exactly_that_much(data: st.DataObject, left: type, right: type, allowed: int) -> None:
    numbers = [data.draw(st.integers(int(np.iinfo(kind).min), int(np.iinfo(kind).max))) for kind in (left, right)]
    if data.draw(st.booleans()) and np.iinfo(right).min <= numbers[0] - 1:  # neighbours, which doubles may not tell apart
        numbers[1] = min(numbers[0] - 1, int(np.iinfo(right).max))
    a, b = np.array([numbers[0]], left), np.array([numbers[1]], right)
    difference = abs(numbers[0] - numbers[1])
    if difference < 2**53 or allowed < 2**53:  # beyond that the error is rounded
        assert compare("x", a, b, Tolerance(integers=allowed)).passed == (difference <= allowed)
    assert compare("x", a, b, EXACT).passed == (difference == 0)
    if difference:
        assert f"largest error {difference}" in compare("x", a, b, EXACT).message


def test_a_share_of_elements_may_be_wrong() -> None:
    expected = np.zeros(100, np.float32)
    actual = expected.copy()
    actual[[3, 50]] = 1, 2
    assert compare("x", actual, expected, Tolerance(fraction=0.02)).passed
    found = compare("x", actual, expected, Tolerance(fraction=0.019))
    assert not found.passed and found.message.startswith("2 of 100 differ, 1.9 % may; first at [3]: 1.0, expected 0.0; worst")
    told = compare("x", actual, expected, Tolerance(fraction=0.5)).message
    assert told.startswith("2 of 100 differ, 50 % may; first at [3]") and told.endswith("largest error 2")
    assert compare("x", actual, expected, Tolerance(abs=1, fraction=0.01)).passed, "those that are near count as right"


def test_a_pixel_is_wrong_once_however_many_components_are() -> None:
    expected = picture(10, 10, 4)
    actual = expected.copy()
    actual[0, 0, :] += 1
    actual[5, 5, 2] += 1
    assert compare("x", actual, expected, Tolerance(pixels=0.02)).passed
    found = compare("x", actual, expected, Tolerance(pixels=0.01))
    assert not found.passed and found.message.startswith("2 of 100 pixels differ, 1 % may; first at [0, 0, 0]")
    assert not compare("x", actual, expected, Tolerance(fraction=0.01)).passed, "5 of 400 elements"
    grey = compare("x", actual[..., 2], expected[..., 2], Tolerance(pixels=0.01))
    assert grey.message.startswith("2 of 100 pixels differ")
    assert compare("x", actual, expected, Tolerance(pixels=1e-9, integers=1)).passed


def test_psnr_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(5)
    expected = picture(16, 16, 3)
    actual = np.clip(expected.astype(int) + rng.integers(-3, 4, expected.shape), 0, 255).astype(np.uint8)
    noise = Fraction(int(((actual.astype(int) - expected.astype(int)) ** 2).sum()), expected.size)
    exact = 10 * math.log10(Fraction(255**2) / noise)
    found = compare("x", actual, expected, Tolerance(psnr=exact - 0.01))
    assert found.passed and found.psnr == pytest.approx(exact, abs=1e-9)
    assert found.message.startswith(f"PSNR {exact:.1f} dB; first at [")
    found = compare("x", actual, expected, Tolerance(psnr=exact + 0.01))
    assert not found.passed and f"PSNR {exact:.1f} dB, less than {exact + 0.01:g} dB" in found.message
    assert compare("x", expected, expected, Tolerance(psnr=99)).passed


def test_psnr_and_limits_of_elements_must_both_hold() -> None:
    expected = np.full(1000, 0.5, np.float32)
    actual = expected.copy()
    actual[7] = 0.6
    assert compare("x", actual, expected, Tolerance(psnr=40)).passed
    assert not compare("x", actual, expected, Tolerance(psnr=40, abs=0.01)).passed
    assert compare("x", actual, expected, Tolerance(psnr=40, abs=0.01, fraction=0.001)).passed
    actual[7] = np.inf
    assert not compare("x", actual, expected, Tolerance(psnr=1)).passed
    assert not compare("x", np.ones(4), np.zeros(4), Tolerance(psnr=1)).passed, "noise, and no peak"


def test_arrays_without_axes_and_without_elements() -> None:
    assert compare("x", np.array(1.5), 1.5, EXACT).passed
    assert compare("x", np.array(1.5), 2.0, EXACT).message == "1 of 1 differ; first at []: 1.5, expected 2.0, largest error 0.5"
    for dtype in ("f4", "u1"):
        empty = np.zeros((0, 3), dtype)
        assert compare("x", empty, empty, Tolerance(psnr=10, pixels=0.5)).passed
