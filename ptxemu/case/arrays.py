"""Arrays that cases and the command line describe in words: generated data and literal values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxemu.device.device import machine_memory
from ptxemu.device.dtypes import SMALL_FLOATS, dtype_named
from ptxemu.text.errors import InputError, shown

Array = NDArray[Any]

MAX_AXES = 32


def dtype_of(name: object, where: str) -> np.dtype[Any]:
    """A PTX type name (``f32``, ``u8``, ``bf16`` ...) or a NumPy one as a dtype of numbers."""
    dtype = dtype_named(name) if isinstance(name, str) else None
    if dtype is not None and dtype.isnative and (dtype.kind in "biufc" or name in SMALL_FLOATS):
        return dtype
    raise InputError(f"{where}: unknown dtype {shown(name)} (try {', '.join(['f32', 'u32', 's32', 'u8', 'f64'])} ...)")


def shape_of(value: object, where: str) -> tuple[int, ...]:
    """An extent or a list of extents."""
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items):
        raise InputError(f"{where}: shape must be a non-negative integer or a list of them, not {shown(value)}")
    if len(items) > MAX_AXES:
        raise InputError(f"{where}: a shape has up to {MAX_AXES} axes, not {len(items)}")
    return tuple(items)


def zeros(spec: Mapping[str, Any], where: str) -> Array:
    return np.zeros(*_shape_and_dtype(spec, where))


def full(spec: Mapping[str, Any], where: str) -> Array:
    shape, dtype = _shape_and_dtype(spec, where)
    return np.full(shape, _fitting(_number(spec, "value", where), dtype, where), dtype)


def arange(spec: Mapping[str, Any], where: str) -> Array:
    """``start``, ``start + step`` ... in C order."""
    shape, dtype = _shape_and_dtype(spec, where)
    count = math.prod(shape)
    start, step = _number(spec, "start", where, 0), _number(spec, "step", where, 1)
    if dtype.kind not in "iu":
        start, step = float(_fitting(start, dtype, where)), float(_fitting(step, dtype, where))
    for number in (start, start + step * max(0, count - 1), start + step):
        _fitting(number if count > 1 else start, dtype, where)
    if count == 0:
        return np.zeros(shape, dtype)
    if dtype.kind in "iu":  # modulo 2**64, which is exact for results that fit
        whole: Array = np.arange(count, dtype=np.uint64) * np.uint64(step % 2**64) + np.uint64(start % 2**64)
    else:
        with np.errstate(all="ignore"):  # infinities have differences that are none
            whole = np.arange(count) * step + start
    made: Array = whole.astype(dtype).reshape(shape)
    return made


def random(spec: Mapping[str, Any], where: str) -> Array:
    """Uniform values in [``low``, ``high``) from NumPy's PCG64 with ``seed``: the same on every machine."""
    shape, dtype = _shape_and_dtype(spec, where)
    generator = np.random.Generator(np.random.PCG64(_seed(spec, where)))
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        low, high = _number(spec, "low", where, bounds.min), _number(spec, "high", where, int(bounds.max) + 1)
        if not (isinstance(low, int) and isinstance(high, int) and bounds.min <= low < high <= int(bounds.max) + 1):
            limits = f"{bounds.min} <= low < high <= {int(bounds.max) + 1}"
            raise InputError(f"{where}: low and high must be integers with {limits} for {dtype.name}")
        return generator.integers(low, high, shape, dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    low, high = (_finite(spec, key, where, default) for key, default in (("low", 0.0), ("high", 1.0)))
    _fitting(high - low, dtype, where)
    if dtype == np.float32:  # half the work, which counts for large arrays
        return generator.random(shape, np.float32) * np.float32(high - low) + np.float32(low)
    made: Array = (generator.random(shape) * (high - low) + low).astype(dtype)
    return made


def values(spec: Mapping[str, Any], where: str) -> Array:
    """Literal, maybe nested, lists of numbers."""
    dtype = dtype_of(spec.get("dtype"), where)
    failure = f"{where}: values do not make an array of {dtype.name}"
    kinds = "integers" if dtype.kind in "iu" else "numbers"
    wanted = int if kinds == "integers" else int | float
    try:
        exact = np.array(spec["values"], object)
    except (ValueError, RecursionError):
        exact = np.array(None)
    if exact.ndim > MAX_AXES or not all(isinstance(item, wanted) for item in exact.flat):
        raise InputError(f"{failure}: they must be {kinds}, in lists of equal length")
    if exact.size:
        extremes = [min(exact.flat), max(exact.flat)] if wanted is int else [max(exact.flat, key=_magnitude)]
        for item in extremes:
            _fitting(item, dtype, failure)
    converted: Array = exact.astype(dtype)
    return converted


GENERATORS: dict[str, tuple[Callable[[Mapping[str, Any], str], Array], tuple[str, ...]]] = {
    "zeros": (zeros, ("dtype", "shape")),
    "full": (full, ("dtype", "shape", "value")),
    "arange": (arange, ("dtype", "shape", "start", "step")),
    "random": (random, ("dtype", "shape", "seed", "low", "high")),
}
"""What makes arrays, and the keys of its table, in the order in which the command line gives their values."""


def _shape_and_dtype(spec: Mapping[str, Any], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    for key in ("dtype", "shape"):
        if key not in spec:
            raise InputError(f"{where}: {key} is missing")
    shape, dtype = shape_of(spec["shape"], where), dtype_of(spec["dtype"], where)
    if math.prod(extent for extent in shape if extent) * dtype.itemsize > machine_memory():
        raise InputError(f"{where}: shape {shown(list(shape))} is too large for the memory of this machine")
    return shape, dtype


def _number(spec: Mapping[str, Any], key: str, where: str, default: float | None = None) -> Any:
    value = spec.get(key, default)
    if value is None:
        raise InputError(f"{where}: {key} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: {key} must be a number, not {shown(value)}")
    return value


def _finite(spec: Mapping[str, Any], key: str, where: str, default: float) -> float:
    value = _number(spec, key, where, default)
    try:
        if math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InputError(f"{where}: {key} must be finite, not {shown(value)}")


def _seed(spec: Mapping[str, Any], where: str) -> int:
    seed = spec.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"{where}: seed must be a non-negative integer, not {shown(seed)}")
    return seed


def _fitting(value: Any, dtype: np.dtype[Any], where: str) -> Any:
    """The value, if the type has it or, of floats, one near it."""
    if dtype.kind in "iu":
        fits = isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    else:
        fits = _in_range(value, dtype)
    if not fits:
        raise InputError(f"{where}: {shown(value)} is not a value of type {dtype.name}")
    return value


def _in_range(value: Any, dtype: np.dtype[Any]) -> bool:
    try:
        number = float(value)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        return not math.isfinite(number) or bool(np.isfinite(np.asarray(number).astype(dtype)))


def _magnitude(value: Any) -> Any:
    """How large a number is; those that every float type has count least."""
    return abs(value) if abs(value) < math.inf else -1
