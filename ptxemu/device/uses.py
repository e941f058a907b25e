"""What kernels do with their arguments, in words, and whether an argument is something else."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ptxemu.device.dtypes import SMALL_FLOATS
from ptxemu.device.module_info import POINTER_USE, Use
from ptxemu.ir.types import TYPES

C_NAMES = {
    "u8": "unsigned char", "s8": "signed char", "u16": "unsigned short", "s16": "short", "u32": "unsigned", "s32": "int",
    "u64": "unsigned long", "s64": "long", "f16": "half", "f32": "float", "f64": "double",
}  # fmt: skip
RAW = np.dtype(np.uint8)  # memory of any type
SHORT = 2  # bytes of floats that programs hold as integers, as NumPy lacks their types


def in_words(use: Use) -> str:
    """``float*, read``, ``surface 2d, written``, ``texture 2d, f32``."""
    if use.kind == POINTER_USE:
        what = f"{C_NAMES.get(use.element, use.element)}*" if use.element else POINTER_USE
    else:
        what = f"{use.kind} {use.geometry}".strip()
    if use.kind == "texture":
        return f"{what}, {use.element}" if use.element else what
    done = [word for word, is_so in (("read", use.reads), ("written", use.writes)) if is_so]
    return ", ".join([what, *([" and ".join(done)] if done else [])])


def mismatch(use: Use, kind: str, dtype: np.dtype[Any] | None = None) -> str:
    """Why an argument, an image of a kind or a pointer to elements of ``dtype``, is not what the kernel uses; or nothing."""
    if use.kind != kind:
        given = "an array" if kind == POINTER_USE else f"a {kind}"
        return f"the kernel uses it as {in_words(use)}, but it is {given}"
    if dtype is None or suits(use, dtype):
        return ""
    return f"the kernel uses it as {in_words(use)}, but the array has {dtype.name}"


@lru_cache(maxsize=1024)
def suits(use: Use, dtype: np.dtype[Any]) -> bool:
    """Whether elements of a NumPy type may be what a kernel takes them for.

    They are not if the kernel calculates with floats or integers, and they are of another kind or size.  Bytes and records may be
    anything, and short floats are often held as integers.
    """
    small = dtype.name in SMALL_FLOATS.values()
    if not use.element or dtype == RAW or (dtype.kind not in "biufc" and not small):
        return True
    scalar, size = TYPES[use.element], dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    if scalar.kind == "f":
        return size == scalar.bytes and (dtype.kind in "fc" or small or size <= SHORT)
    if scalar.kind not in "us" or not use.numeric:
        return True
    return size == scalar.bytes and (dtype.kind in "biu" or size <= SHORT)
