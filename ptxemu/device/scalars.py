"""Python and NumPy values as kernel parameters: converted and range-checked by the parameter's PTX type."""

from __future__ import annotations

import ctypes
import math
import operator
import struct
from functools import cache
from typing import Any

from ptxemu.device.module_info import POINTER_USE, Parameter
from ptxemu.ir.types import TYPES
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

FLOAT_BITS = ("b16", "b32", "b64")
FLOAT_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


def pack_scalar(parameter: Parameter, value: object, where: str) -> bytes:
    """The bytes of ``value`` for a scalar parameter; InputError, beginning with ``where``, if it does not fit."""
    scalar = TYPES[parameter.type]
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if scalar.kind == "f":
        return _pack_float(parameter, value, where)
    if scalar.kind in ("b", "packed") and isinstance(value, np.generic):
        return _pack_bits(parameter, value, where)
    return _pack_integer(parameter, value, where)


def pack_struct(parameter: Parameter, value: object, where: str) -> bytes:
    """The bytes of a struct parameter (``.param .align N .b8 p[n]``), given as bytes, a NumPy record or an array."""
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        given: np.ndarray[Any, Any] | memoryview = np.asarray(value)
    elif isinstance(value, bytes | bytearray | memoryview | ctypes.Structure | ctypes.Union):
        given = memoryview(value)
    else:
        wanted = "bytes, a record of NumPy or ctypes, or its members"
        raise InputError(f"{where}: expects a struct of {parameter.size} bytes ({wanted}), not {_kind(value)}")
    if given.nbytes != parameter.size:
        raise InputError(f"{where}: expects {parameter.size} bytes, not {given.nbytes}")
    return given.tobytes()


def dtype_of_type(name: str) -> np.dtype[Any]:
    """The NumPy type of a variable's elements; bit types count as unsigned integers."""
    if name == "bf16":
        import ml_dtypes

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    scalar = TYPES[name]
    if scalar.bits == 128:
        return np.dtype("V16")
    letter = {"f": "f", "s": "i"}.get(scalar.kind, "u")
    return np.dtype(f"{letter}{scalar.bytes}")


def _pack_integer(parameter: Parameter, value: object, where: str) -> bytes:
    scalar = TYPES[parameter.type]
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        hint = f"; pass np.float{scalar.bits}(x) for its bits" if scalar.name in FLOAT_BITS and isinstance(value, float) else ""
        raise InputError(f"{where}: expects {_expected(parameter)}, not {_kind(value)}{hint}") from None
    low, high = _range(parameter.type)
    if not low <= number <= high:
        raise InputError(f"{where}: {shown(number)} is out of range ({low} to {high})")
    return number.to_bytes(scalar.bytes, "little", signed=number < 0)


@cache
def _range(type: str) -> tuple[int, int]:
    """What a parameter of integers takes: compilers declare those of int .u32 and .b32, too, so negative numbers as well."""
    scalar = TYPES[type]
    half = 1 << (scalar.bits - 1)
    return -half, half - 1 if scalar.is_signed else 2 * half - 1


def _expected(parameter: Parameter) -> str:
    """What a parameter of integers stands for."""
    if not parameter.uses:
        return "an integer"
    use = parameter.uses[0]
    return f"{'an array, a buffer or an address' if use.kind == POINTER_USE else f'a {use.kind}'} ({use})"


def _pack_float(parameter: Parameter, value: object, where: str) -> bytes:
    if not _is_number(value):
        raise InputError(f"{where}: expects a number, not {_kind(value)}")
    try:
        number = float(value)  # type: ignore[arg-type]
        return _bfloat16(number) if parameter.type == "bf16" else struct.pack(FLOAT_FORMATS[parameter.type], number)
    except OverflowError:
        raise InputError(f"{where}: {shown(value)} is out of range of {parameter.type}") from None


def _bfloat16(number: float) -> bytes:
    data: np.ndarray[Any, Any] = np.array(number, dtype_of_type("bf16"))
    if math.isfinite(number) and not math.isfinite(float(data)):
        raise OverflowError
    return data.tobytes()


def _pack_bits(parameter: Parameter, value: np.generic, where: str) -> bytes:
    data = value.tobytes()
    if len(data) == parameter.size:
        return data
    if isinstance(value, np.integer | np.bool_):
        return _pack_integer(parameter, int(value), where)
    raise InputError(f"{where}: expects {8 * parameter.size} bits, not {_kind(value)}")


def _is_number(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (int, float, np.integer, np.floating)):
        return True
    return isinstance(value, np.generic) and value.dtype.name == "bfloat16"


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype.name}"
    if isinstance(value, np.generic):
        return value.dtype.name
    return type(value).__name__
