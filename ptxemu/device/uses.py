"""Whether an argument is something else than what the kernel uses it as."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ptxemu.device.dtypes import SMALL_FLOATS
from ptxemu.device.module_info import POINTER_USE, Use
from ptxemu.ir.types import TYPES
from ptxemu.process.numpy import np

RAW = "uint8"  # memory of any type
SHORT = 2  # bytes of floats that programs hold as integers, as NumPy lacks their types


def mismatch(use: Use, kind: str, dtype: np.dtype[Any] | None = None) -> str:
    """Why an argument, an image of a kind or a pointer to elements of ``dtype``, is not what the kernel uses; or nothing."""
    if use.kind != kind:
        given = "an array" if kind == POINTER_USE else f"a {kind}"
        return f"the kernel uses it as {use}, but it is {given}"
    if dtype is None or suits(use, dtype):
        return ""
    return f"the kernel uses it as {use}, but the array has {dtype.name}"


@lru_cache(maxsize=1024)
def suits(use: Use, dtype: np.dtype[Any]) -> bool:
    """Whether elements of a NumPy type may be what a kernel takes them for.

    They are not if the kernel calculates with floats or integers, and they are of another kind or size.  Bytes and records may be
    anything, and short floats are often held as integers.
    """
    small = dtype.name in SMALL_FLOATS.values()
    if not use.element or dtype.name == RAW or (dtype.kind not in "biufc" and not small):
        return True
    scalar, size = TYPES[use.element], dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    if scalar.kind == "f":
        return size == scalar.bytes and (dtype.kind in "fc" or small or size <= SHORT)
    if scalar.kind not in "us" or not use.numeric:
        return True
    return size == scalar.bytes and (dtype.kind in "biu" or size <= SHORT)
