"""Directed rounding and conversions against exact rational arithmetic."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from ptxemu._runtime import ffi, lib

MODES = ["rn", "rz", "rm", "rp"]
OPS = ["add", "sub", "mul", "fma", "div", "sqrt", "rcp"]
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
INTEGERS = [kind + bits for kind in "us" for bits in ("8", "16", "32", "64")]
CODES = {name: getattr(lib, f"PE_TYPE_{name.upper()}") for name in (*FORMATS, *INTEGERS)}


@cache
def power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


@cache
def largest(name: str) -> Fraction:
    """The number that the format ends with."""
    precision, _, highest = FORMATS[name]
    return (2 - power(1 - precision)) * power(highest)


def bracket(value: Fraction, name: str) -> tuple[Fraction, Fraction]:
    """The neighbours of a value among the format's numbers of unbounded exponent (equal if it is one of them)."""
    precision, lowest, _ = FORMATS[name]
    if value == 0:
        return value, value
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if power(exponent) > magnitude:
        exponent -= 1
    unit = power(max(exponent, lowest) - precision + 1)
    below = math.floor(value / unit) * unit
    return below, below if below == value else below + unit


def rounded(value: Fraction, mode: str, name: str) -> float:
    """The value rounded by the definition of the mode; infinities where the format ends."""
    low, high = bracket(value, name)
    unit = high - low
    if mode == "rn" and unit:
        even = (low / unit).numerator % 2 == 0 if (low / unit).denominator == 1 else True
        result = low if value - low < high - value or (value - low == high - value and even) else high
    elif mode == "rz":
        result = high if value < 0 else low
    else:
        result = {"rn": low, "rm": low, "rp": high}[mode]
    if abs(result) > largest(name):
        to_infinity = mode == "rn" or ((mode == "rp") == (result > 0) and mode != "rz")
        size = math.inf if to_infinity else float(largest(name))
        return size if result > 0 else -size
    return float(result)


def interesting(dtype: type) -> list[float]:
    info = np.finfo(dtype)
    rng = np.random.default_rng(5)
    limits = [float(info.max), -float(info.max), float(info.tiny), float(info.smallest_subnormal)]
    fixed = [1.0, -1.0, 3.0, 1 / 3, -0.1, 1.5, *limits, 7.0, 1e-3]
    wide = rng.standard_normal(30) * 10.0 ** rng.integers(-30, 30, 30)
    return [float(dtype(value)) for value in (*fixed, *wide)]


def run(op: int, mode: int, dtype: type, *operands: list[float]) -> np.ndarray:
    arrays = [np.array(operand, dtype) for operand in operands]
    result = np.empty_like(arrays[0])
    pointers = [ffi.cast("void *", array.ctypes.data) for array in (result, *arrays)]
    pointers += [ffi.NULL] * (4 - len(pointers))
    lib.pe_round(op, mode, result.itemsize * 8, result.size, *pointers)
    return result


BINARY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


@pytest.mark.parametrize(("dtype", "name"), [(np.float32, "f32"), (np.float64, "f64")])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma", "rcp"])
def test_arithmetic(op: str, mode: str, dtype: type, name: str) -> None:
    values = interesting(dtype)
    count = len(values)
    a = [values[i] for i in range(count) for _ in range(count)]
    b = values * count
    c = [values[(i * 7 + j) % count] for i in range(count) for j in range(count)]
    operands = [a, b, c][: {"rcp": 1, "fma": 3}.get(op, 2)]
    actual = run(OPS.index(op), MODES.index(mode), dtype, *operands)
    for x, y, z, got in zip(a, b, c, actual.tolist(), strict=True):
        fx, fy, fz = Fraction(x), Fraction(y), Fraction(z)
        exact = 1 / fx if op == "rcp" else fx * fy + fz if op == "fma" else BINARY[op](fx, fy)
        assert got == rounded(exact, mode, name), (op, mode, x, y, z)


@pytest.mark.parametrize(("dtype", "name"), [(np.float32, "f32"), (np.float64, "f64")])
@pytest.mark.parametrize("mode", MODES)
def test_square_roots(mode: str, dtype: type, name: str) -> None:
    """A result r is right if its square and its neighbours' squares enclose the operand as the mode demands."""
    values = [abs(value) for value in interesting(dtype)] + [4.0, 2.0, 0.25]
    for x, got in zip(values, run(OPS.index("sqrt"), MODES.index(mode), dtype, values).tolist(), strict=True):
        exact = Fraction(math.isqrt(int(Fraction(x) * 4**600)), 2**600)  # to 600 bits, cut
        if exact * exact != Fraction(x):
            exact += Fraction(1, 2**601)
        assert got == rounded(exact, mode, name), (mode, x)


def test_special_operands() -> None:
    inf = math.inf
    assert np.isnan(run(0, 1, np.float32, [inf], [-inf])[0])
    assert run(4, 2, np.float32, [1.0, -1.0, 0.0], [0.0, 0.0, 5.0]).tolist() == [inf, -inf, 0.0]
    assert np.signbit(run(0, 2, np.float64, [1.0], [-1.0])[0])
    assert not np.signbit(run(0, 1, np.float64, [1.0], [-1.0])[0])
    assert np.isnan(run(5, 3, np.float64, [-1.0])[0])


def test_the_mode_is_restored() -> None:
    run(0, 3, np.float32, [1.0], [1e-10])
    assert 1.0 + 2.0**-60 == 1.0
    assert -1.0 - 2.0**-60 == -1.0


# ---------------------------------------------------------------- conversions


def encode(name: str, value: float | int) -> bytes:
    if name == "bf16":
        return struct.pack("<f", value)[2:]
    if name in FORMATS:
        return struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[name], value)
    return int(value).to_bytes(int(name[1:]) // 8, "little", signed=name[0] == "s")


def decode(name: str, data: bytes) -> float | int:
    if name == "bf16":
        return float(struct.unpack("<f", b"\0\0" + data)[0])
    if name in FORMATS:
        return float(struct.unpack({"f16": "<e", "f32": "<f", "f64": "<d"}[name], data)[0])
    return int.from_bytes(data, "little", signed=name[0] == "s")


def convert(source: str, target: str, mode: str, values: list[float] | list[int]) -> list[float | int]:
    data = b"".join(encode(source, value) for value in values)
    width = len(encode(target, 0))
    out = ffi.new("char[]", width * len(values))
    lib.pe_round_convert(CODES[source], CODES[target], MODES.index(mode), len(values), out, ffi.from_buffer(data))
    raw = ffi.buffer(out)[:]
    return [decode(target, raw[i : i + width]) for i in range(0, len(raw), width)]


@cache
def integers(name: str) -> list[int]:
    bits, signed = int(name[1:]), name[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    rng = np.random.default_rng(6)
    spread = [int(rng.integers(0, 1 << 62)) >> int(rng.integers(0, 62)) for _ in range(60)]
    near = [(1 << k) + d for k in (8, 11, 12, 24, 25, 53, 54, 63) for d in (-1, 0, 1, 2, 3)]
    values = [low, high, low + 1, high - 1, 0, 1, *spread, *near, *(-v for v in spread + near)]
    return [v for v in values if low <= v <= high]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", list(FORMATS))
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_float(source: str, target: str, mode: str) -> None:
    values = integers(source)
    assert convert(source, target, mode, values) == [rounded(Fraction(value), mode, target) for value in values]


@cache
def floats(name: str) -> list[float]:
    rng = np.random.default_rng(7)
    precision, lowest, highest = FORMATS[name]
    simple = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 127.5, 255.5, 1.0, -1.0]
    values = [rounded(Fraction(value), "rz", name) for value in simple]
    for _ in range(400):
        mantissa = int(rng.integers(1 << precision - 1, 1 << precision))
        exponent = int(rng.integers(lowest - precision + 2, highest - precision + 2))
        close = int(rng.integers(-30, 72)) - precision
        for e in (exponent, close):
            value = float(mantissa * power(e)) * (1 if rng.random() < 0.5 else -1)
            values.append(rounded(Fraction(value), "rz", name))
    return values


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", list(FORMATS))
@pytest.mark.parametrize("source", list(FORMATS))
def test_float_to_float(source: str, target: str, mode: str) -> None:
    values = floats(source)
    assert convert(source, target, mode, values) == [rounded(Fraction(value), mode, target) for value in values]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", list(FORMATS))
def test_float_to_integer(source: str, target: str, mode: str) -> None:
    bits, signed = int(target[1:]), target[0] == "s"
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    step = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode]
    values = floats(source)
    expected = [min(max(step(Fraction(value)), low), high) for value in values]
    assert convert(source, target, mode, values) == expected
    assert convert(source, target, mode, [math.inf, -math.inf]) == [high, low]
    nan = -(1 << bits - 1) if signed else 1 << bits - 1
    assert convert(source, target, mode, [math.nan]) == [nan if source == "f64" or bits == 64 else 0]


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_special_values_of_small_floats(target: str) -> None:
    for mode in MODES:
        assert convert("f64", target, mode, [math.inf, -math.inf]) == [math.inf, -math.inf]
        assert math.isnan(convert("f64", target, mode, [math.nan])[0])
        assert math.copysign(1, convert("f32", target, mode, [-0.0])[0]) == -1


def test_every_half_widens_exactly() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = values[np.isfinite(values)].tolist()
    assert convert("f16", "f64", "rn", finite) == finite
