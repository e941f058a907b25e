"""Arrays described in words, files of arrays, and comparisons."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ptxemu import InputError
from ptxemu.case.array_files import load_npy, load_png, save_array
from ptxemu.case.arrays import arange, dtype_of, full, random, values, zeros
from ptxemu.case.compare import compare, ulp_distance
from ptxemu.case.tolerance import Tolerance

EXACT = Tolerance()


def test_dtypes():
    assert dtype_of("f32", "") == np.float32
    assert dtype_of("b64", "") == np.uint64
    assert dtype_of("s8", "") == np.int8
    assert dtype_of("float16", "") == np.float16
    assert dtype_of("bf16", "") == ml_dtypes.bfloat16
    assert dtype_of("e4m3", "") == ml_dtypes.float8_e4m3fn
    for wrong in ("object", "U8", "datetime64", "nothing", 4, None):
        with pytest.raises(InputError, match="here: unknown dtype"):
            dtype_of(wrong, "here")


def test_generators():
    assert zeros({"dtype": "u8", "shape": [2, 3]}, "").tolist() == [[0, 0, 0], [0, 0, 0]]
    assert full({"dtype": "f16", "shape": 2, "value": 1.5}, "").tolist() == [1.5, 1.5]
    assert arange({"dtype": "s32", "shape": [2, 2], "start": -1, "step": 2}, "").tolist() == [[-1, 1], [3, 5]]
    assert arange({"dtype": "u64", "shape": 2, "start": 2**64 - 2}, "").tolist() == [2**64 - 2, 2**64 - 1]
    assert arange({"dtype": "f64", "shape": 3, "step": 0.5}, "").tolist() == [0, 0.5, 1]
    assert arange({"dtype": "u8", "shape": 0}, "").size == 0
    assert values({"values": [[1, 2], [3, 4]], "dtype": "u16"}, "").dtype == np.uint16


@pytest.mark.parametrize("dtype", ["u8", "s16", "u64", "f16", "f32", "f64", "bf16", "bool"])
def test_random_is_reproducible_and_in_range(dtype):
    spec = {"dtype": dtype, "shape": 1000, "seed": 3}
    first, again = random(spec, ""), random(spec, "")
    assert first.dtype == dtype_of(dtype, "")
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, random({**spec, "seed": 4}, ""))
    if dtype not in ("bool", "u8", "u64"):
        bounded = random({**spec, "low": -3, "high": 5}, "").astype(np.float64)
        assert bounded.min() >= -3
        assert bounded.max() <= 5


@pytest.mark.parametrize(
    ("make", "spec", "message"),
    [
        (zeros, {"shape": 1}, "dtype is missing"),
        (zeros, {"dtype": "f32"}, "shape is missing"),
        (zeros, {"dtype": "f32", "shape": [10**9, 10**9]}, "too large"),
        (zeros, {"dtype": "f32", "shape": True}, "shape must be"),
        (full, {"dtype": "f32", "shape": 1}, "value is missing"),
        (full, {"dtype": "u8", "shape": 1, "value": 256}, "256 is not a value of type uint8"),
        (full, {"dtype": "u8", "shape": 1, "value": 0.5}, "0.5 is not a value of type uint8"),
        (arange, {"dtype": "s8", "shape": 200}, "199 is not a value of type int8"),
        (random, {"dtype": "u8", "shape": 1, "low": 5, "high": 5}, "low and high"),
        (random, {"dtype": "u8", "shape": 1, "high": 257}, "low and high"),
        (random, {"dtype": "f32", "shape": 1, "seed": -1}, "seed must be"),
        (random, {"dtype": "f32", "shape": 1, "low": "x"}, "low must be a number"),
        (values, {"values": [1.5], "dtype": "u8"}, "must be integers"),
        (values, {"values": [300], "dtype": "u8"}, "do not make an array"),
        (values, {"values": [[1], [1, 2]], "dtype": "u8"}, "do not make an array"),
    ],
)
def test_wrong_descriptions(make, spec, message):
    with pytest.raises(InputError, match=f"^here: .*{message}"):
        make(spec, "here")


def test_files(tmp_path):
    for name, array in {"a.npy": np.arange(5), "b.npy": np.zeros((2, 2), np.float16)}.items():
        save_array(tmp_path / name, array, "")
        loaded = load_npy(tmp_path / name, "")
        np.testing.assert_array_equal(loaded, array)
        assert loaded.dtype == array.dtype
    for shape in ((4, 5), (4, 5, 4)):
        picture = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
        save_array(tmp_path / "p.png", picture, "")
        np.testing.assert_array_equal(load_png(tmp_path / "p.png", ""), picture)


def test_wrong_files(tmp_path):
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00garbage")
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG")
    np.savez(tmp_path / "archive.npz", np.zeros(3))
    np.save(tmp_path / "pickle.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "cut.npy", np.zeros(100))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:-9])
    for name, message in {
        "missing.npy": "no such file",
        "broken.npy": "not a valid .npy",
        "empty.npy": "not a valid .npy",
        "pickle.npy": "not a valid .npy",
        "cut.npy": "not a valid .npy",
        "archive.npz": "archive of arrays",
    }.items():
        with pytest.raises(InputError, match=f"here: .*{name}: .*{message}"):
            load_npy(tmp_path / name, "here")
    with pytest.raises(InputError, match="Is a directory"):
        load_npy(tmp_path, "here")
    with pytest.raises(InputError, match="no such file"):
        load_png(tmp_path / "missing.png", "here")
    with pytest.raises(InputError, match="not a readable picture"):
        load_png(tmp_path / "broken.png", "here")
    with pytest.raises(InputError, match="a picture needs u8"):
        save_array(tmp_path / "x.png", np.zeros((3, 3)), "here")
    with pytest.raises(InputError, match=r"must end in .npy or .png"):
        save_array(tmp_path / "x.txt", np.zeros((3, 3)), "here")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_distance_counts_representable_numbers(dtype):
    start = dtype(0)
    steps = [dtype(-1e-5)]
    for _ in range(10):
        steps.append(np.nextafter(steps[-1], dtype(np.inf)))
    array = np.array(steps, dtype)
    assert ulp_distance(array, np.full(11, array[0])).tolist() == list(range(11))
    tiny = np.array([np.nextafter(start, dtype(-1)), -start, start, np.nextafter(start, dtype(1))], dtype)
    assert ulp_distance(tiny, np.zeros(4, dtype)).tolist() == [1, 0, 0, 1]
    infinity = np.array([np.inf], dtype)
    bits = 8 * infinity.itemsize
    exponent_bits = {16: 5, 32: 8, 64: 11}[bits]
    largest = (2**exponent_bits - 1) << (bits - 1 - exponent_bits)
    assert int(ulp_distance(infinity, -infinity)[0]) == 2 * largest


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 10), st.floats(0, 0.5))
def test_tolerance_is_as_documented(actual, expected, abs_limit, rel_limit):
    difference = abs(Fraction(actual) - Fraction(expected))
    limit = Fraction(abs_limit) + Fraction(rel_limit) * abs(Fraction(expected))
    assume(abs(difference - limit) > Fraction(1, 2**40) * (limit + difference))  # no tie up to rounding
    result = compare("x", np.array([actual]), np.array([expected]), Tolerance(abs_limit, rel_limit))
    assert result.passed == (difference <= limit)


def test_special_values():
    nan, inf = np.nan, np.inf
    assert compare("x", np.array([nan, inf, -inf, -0.0]), np.array([nan, inf, -inf, 0.0]), EXACT).passed
    loose = Tolerance(abs=1e300, rel=1e300)
    for actual, expected in ((nan, 1.0), (1.0, nan), (inf, 1.0), (1.0, inf), (inf, -inf)):
        assert not compare("x", np.array([actual]), np.array([expected]), loose).passed


def test_kinds_and_shapes_must_agree():
    assert compare("x", np.arange(3, dtype=np.uint8), np.arange(3), EXACT).passed
    assert compare("x", np.array([2**64 - 1], np.uint64), np.array([2**64 - 1], np.uint64), EXACT).passed
    assert not compare("x", np.array([2**64 - 1], np.uint64), np.array([-1]), EXACT).passed
    assert not compare("x", np.array([2**53 + 1]), np.array([2**53]), Tolerance(abs=5)).passed
    assert compare("x", np.zeros(3), np.zeros(4), EXACT).message == "shape (3,), expected (4,)"
    assert compare("x", np.zeros(3), np.zeros(3, int), EXACT).message == "dtype float64, expected int64"
    assert "expected object" in compare("x", np.zeros(1), np.array([None]), EXACT).message
    assert compare("x", np.ones(2, ml_dtypes.bfloat16), np.ones(2, np.float32), EXACT).passed
