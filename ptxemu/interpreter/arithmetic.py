"""Arithmetic on bit patterns: what one LLVM instruction or intrinsic does to scalars.

Values are non-negative Python integers.  Floats are computed in binary64, which rounds once more without harm for one sum,
product, quotient or root of narrower operands; what that does not serve is exact integer arithmetic or the C library.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from ptxemu._runtime import ffi, lib
from ptxemu.device.launch import SYMBOLS

FMA: dict[str, Callable[..., float]] = {
    "float": ffi.cast("float (*)(float, float, float)", SYMBOLS["fmaf"]),
    "double": ffi.cast("double (*)(double, double, double)", SYMBOLS["fma"]),
}
CODES = {"half": ("<e", "<H"), "float": ("<f", "<I"), "double": ("<d", "<Q")}
EXPONENT = {"half": 0x7C00, "float": 0x7F800000, "double": 0x7FF0000000000000}
FRACTION_BITS = {"half": 10, "float": 23, "double": 52}
INVALID = struct.unpack("<Q", struct.pack("<d", math.inf * 0.0))[0] >> 63
"""The sign of the NaN that the host makes."""


def decode(t: str, bits: int) -> float:
    """The value of a pattern of LLVM type ``t``."""
    number, integer = CODES[t]
    return float(struct.unpack(number, struct.pack(integer, bits))[0])


def encode(t: str, value: float) -> int:
    """The pattern nearest to a value."""
    number, integer = CODES[t]
    try:
        return int(struct.unpack(integer, struct.pack(number, value))[0])
    except OverflowError:
        return infinity(t, value < 0)


def sign_bit(t: str) -> int:
    return EXPONENT[t] + (1 << FRACTION_BITS[t])


def infinity(t: str, negative: bool) -> int:
    return EXPONENT[t] | (sign_bit(t) if negative else 0)


def is_nan(t: str, bits: int) -> bool:
    return bits & (sign_bit(t) - 1) > EXPONENT[t]


def quiet(t: str, bits: int) -> int:
    return bits | 1 << (FRACTION_BITS[t] - 1)


def made_nan(t: str) -> int:
    """What an invalid operation gives on the host."""
    return quiet(t, infinity(t, bool(INVALID)))


def binary(t: str, a: int, b: int, compute: Callable[[float, float], float]) -> int:
    """One operation on two floats; a NaN is handed on."""
    if is_nan(t, a):
        return quiet(t, a)
    if is_nan(t, b):
        return quiet(t, b)
    result = compute(decode(t, a), decode(t, b))
    return made_nan(t) if result != result else encode(t, result)


def fadd(t: str, a: int, b: int) -> int:
    return binary(t, a, b, float.__add__)


def fsub(t: str, a: int, b: int) -> int:
    return binary(t, a, b, float.__sub__)


def fmul(t: str, a: int, b: int) -> int:
    return binary(t, a, b, float.__mul__)


def fdiv(t: str, a: int, b: int) -> int:
    return binary(t, a, b, _quotient)


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    if not a or a != a:
        return math.nan
    return math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))


def fma(t: str, a: int, b: int, c: int) -> int:
    for x in (a, b, c):
        if is_nan(t, x):
            return quiet(t, x)
    result = FMA[t](decode(t, a), decode(t, b), decode(t, c))
    return made_nan(t) if result != result else encode(t, result)


def sqrt(t: str, a: int) -> int:
    if is_nan(t, a):
        return quiet(t, a)
    value = decode(t, a)
    return made_nan(t) if value < 0 else encode(t, math.copysign(math.sqrt(value), value))


def rounded(t: str, a: int, how: Callable[[float], int]) -> int:
    """To an integral value."""
    if is_nan(t, a):
        return quiet(t, a)
    value = decode(t, a)
    return a if math.isinf(value) else encode(t, math.copysign(float(how(value)), value))


def compare(t: str, condition: str, a: int, b: int) -> int:
    """fcmp: the first letter says what becomes of NaNs (``o``: false, ``u``: true)."""
    if is_nan(t, a) or is_nan(t, b):
        return int(condition[0] == "u")
    if condition in ("ord", "uno"):
        return int(condition == "ord")
    return int(ORDERS[condition[1:]](decode(t, a), decode(t, b)))


ORDERS: dict[str, Callable[[float, float], bool]] = {
    "eq": float.__eq__, "ne": float.__ne__, "lt": float.__lt__, "le": float.__le__, "gt": float.__gt__, "ge": float.__ge__,
}  # fmt: skip


def convert(source: str, bits: int, target: str) -> int:
    """fptrunc, fpext."""
    if not is_nan(source, bits):
        return encode(target, decode(source, bits))
    fraction = bits & ((1 << FRACTION_BITS[source]) - 1)
    shift = FRACTION_BITS[target] - FRACTION_BITS[source]
    fraction = fraction << shift if shift > 0 else fraction >> -shift
    return quiet(target, infinity(target, bits >= sign_bit(source)) | fraction)


def to_integer(t: str, a: int, low: int, high: int) -> int:
    """Rounded toward zero and clamped; 0 of a NaN."""
    if is_nan(t, a):
        return 0
    value = decode(t, a)
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


def from_integer(value: int, t: str) -> int:
    """The nearest float; large numbers are cut to odd first, so that nothing rounds twice."""
    excess = abs(value).bit_length() - 60
    if excess <= 0 and t == "double":
        return encode(t, float(value))
    if excess > 0:
        kept = abs(value) >> excess
        kept |= kept << excess != abs(value)
        value = (kept << excess) * (1 if value > 0 else -1)
    if t == "double":
        return encode(t, float(value))
    spare = abs(value).bit_length() - 53
    if spare > 0:
        kept = abs(value) >> spare
        kept |= kept << spare != abs(value)
        value = (kept << spare) * (1 if value > 0 else -1)
    return encode(t, float(value))


def signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value ^ half) - half


def divide(a: int, b: int) -> int:
    """Rounded toward zero; 0 where LLVM leaves it open."""
    return 0 if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def leading_zeros(value: int, bits: int) -> int:
    return bits - value.bit_length()


def trailing_zeros(value: int, bits: int) -> int:
    return (value & -value).bit_length() - 1 if value else bits


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def call(name: str, leading: tuple[int, ...], width: int, values: tuple[int, ...], trailing: int) -> int:
    """A function of the runtime on values in memory, with NULL for the last ``trailing`` arguments."""
    cells = [ffi.new("uint64_t *", value) for value in values]
    result = ffi.new("uint64_t *")
    getattr(lib, name)(*leading, result, *cells, *[ffi.NULL] * trailing)
    return int(result[0]) & ((1 << width) - 1)
