"""The names of element types: those of PTX and CUDA C++, and NumPy's for all others."""

from __future__ import annotations

import warnings
from typing import Any

from ptxemu.process.locks import importing
from ptxemu.process.numpy import np

# In CUDA C++ ``float`` and ``int`` have 32 bits.
DTYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "b8": "uint8", "b16": "uint16", "b32": "uint32", "b64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64",
    "char": "int8", "uchar": "uint8", "short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32",
    "unsigned": "uint32", "long": "int64", "ulong": "uint64", "half": "float16", "float": "float32", "double": "float64",
}  # fmt: skip
SMALL_FLOATS = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
SMALL_FLOATS.update({name: name for name in SMALL_FLOATS.values()})


def dtype_named(name: str) -> np.dtype[Any] | None:
    """The dtype of a name; None if there is none."""
    if name in SMALL_FLOATS:
        with importing:
            import ml_dtypes

        small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, SMALL_FLOATS[name]))
        return small
    try:
        with warnings.catch_warnings(action="ignore"):  # of names that NumPy will give up
            found: np.dtype[Any] = np.dtype(DTYPES.get(name, name))
    except (TypeError, ValueError, SyntaxError):
        return None
    return found
