"""Arrays that cases and the command line describe in words: files, generated data, literal values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxemu.errors import InputError

Array = NDArray[Any]

PTX_DTYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "b8": "uint8", "b16": "uint16", "b32": "uint32", "b64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip
SMALL_FLOATS = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
MAX_BYTES = 1 << 36


def dtype_of(name: object, where: str) -> np.dtype[Any]:
    """A PTX type name (``f32``, ``u8``, ``bf16`` ...) or a NumPy one as a dtype of numbers."""
    if isinstance(name, str):
        if name in SMALL_FLOATS:
            import ml_dtypes

            small: np.dtype[Any] = np.dtype(getattr(ml_dtypes, SMALL_FLOATS[name]))
            return small
        try:
            dtype: np.dtype[Any] = np.dtype(PTX_DTYPES.get(name, name))
        except TypeError:
            dtype = np.dtype(object)
        if dtype.kind in "biufc":
            return dtype
    raise InputError(f"{where}: unknown dtype {name!r} (try {', '.join(['f32', 'u32', 's32', 'u8', 'f64'])} ...)")


def shape_of(value: object, where: str) -> tuple[int, ...]:
    """An extent or a list of extents."""
    items = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in items):
        raise InputError(f"{where}: shape must be a non-negative integer or a list of them, not {value!r}")
    return tuple(items)


def zeros(spec: Mapping[str, Any], where: str) -> Array:
    return np.zeros(*_shape_and_dtype(spec, where))


def full(spec: Mapping[str, Any], where: str) -> Array:
    shape, dtype = _shape_and_dtype(spec, where)
    return np.full(shape, _fitting(_number(spec, "value", where), dtype, where), dtype)


def arange(spec: Mapping[str, Any], where: str) -> Array:
    """``start``, ``start + step`` ... in C order."""
    shape, dtype = _shape_and_dtype(spec, where)
    count = int(np.prod(shape, dtype=object))
    start, step = _number(spec, "start", where, 0), _number(spec, "step", where, 1)
    for number in (start, start + step * max(0, count - 1), start + step):
        _fitting(number if count > 1 else start, dtype, where)
    if dtype.kind in "iu":  # modulo 2**64, which is exact for results that fit
        whole: Array = np.arange(count, dtype=np.uint64) * np.uint64(step % 2**64) + np.uint64(start % 2**64)
    else:
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
            raise InputError(f"{where}: low and high must be integers with {bounds.min} <= low < high of {dtype.name}")
        return generator.integers(low, high, shape, dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    low, high = _number(spec, "low", where, 0.0), _number(spec, "high", where, 1.0)
    if dtype == np.float32:  # half the work, which counts for large arrays
        return generator.random(shape, np.float32) * np.float32(high - low) + np.float32(low)
    made: Array = (generator.random(shape) * (high - low) + low).astype(dtype)
    return made


def values(spec: Mapping[str, Any], where: str) -> Array:
    """Literal, maybe nested, lists of numbers."""
    dtype = dtype_of(spec.get("dtype"), where)
    try:
        exact = np.array(spec["values"], object)
        converted: Array = np.array(spec["values"], dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{where}: values do not make an array of {dtype.name}: {error}") from None
    if dtype.kind in "iu" and not all(isinstance(item, int) for item in exact.flat):
        raise InputError(f"{where}: values must be integers for {dtype.name}")
    return converted


GENERATORS: dict[str, tuple[Callable[[Mapping[str, Any], str], Array], frozenset[str]]] = {
    "zeros": (zeros, frozenset({"dtype", "shape"})),
    "full": (full, frozenset({"dtype", "shape", "value"})),
    "arange": (arange, frozenset({"dtype", "shape", "start", "step"})),
    "random": (random, frozenset({"dtype", "shape", "seed", "low", "high"})),
}


def load_npy(path: Path, where: str) -> Array:
    """An array from a ``.npy`` file; pickled objects are refused."""
    try:
        loaded: Array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{where}: {path}: no such file") from None
    except OSError as error:
        raise InputError(f"{where}: {path}: {error.strerror or error}") from None
    except (ValueError, EOFError, SyntaxError) as error:
        raise InputError(f"{where}: {path}: not a valid .npy file ({_first_line(error)})") from None
    if not isinstance(loaded, np.ndarray):
        raise InputError(f"{where}: {path}: is an archive of arrays, not one .npy array")
    return loaded


def load_png(path: Path, where: str) -> Array:
    """A picture as bytes: (height, width) for grey, (height, width, 4) else."""
    image = _pillow(where)
    try:
        with image.open(path) as picture:
            return np.array(picture.convert("L" if picture.mode in ("1", "L") else "RGBA"))
    except FileNotFoundError:
        raise InputError(f"{where}: {path}: no such file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: {path}: not a readable picture ({_first_line(error)})") from None


def save_array(path: Path, array: Array, where: str) -> None:
    """Write a ``.npy`` or, for bytes of shape (height, width[, 3 or 4]), a ``.png`` file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            _save_png(path, array, where)
        elif path.suffix == ".npy":
            np.save(path, array, allow_pickle=False)
        else:
            raise InputError(f"{where}: {path}: must end in .npy or .png")
    except OSError as error:
        raise InputError(f"{where}: {path}: {error.strerror or error}") from None


def _save_png(path: Path, array: Array, where: str) -> None:
    image = _pillow(where)
    picture = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    colours = picture.ndim == 3 and picture.shape[2] in (3, 4)
    if picture.dtype != np.uint8 or not (picture.ndim == 2 or colours):
        raise InputError(f"{where}: a picture needs u8 of shape (height, width[, 3 or 4]), not {_describe(array)}")
    image.fromarray(np.ascontiguousarray(picture)).save(path)


def _pillow(where: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InputError(f"{where}: pictures need Pillow: pip install 'ptxemu[images]'") from None
    return Image


def _shape_and_dtype(spec: Mapping[str, Any], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    for key in ("dtype", "shape"):
        if key not in spec:
            raise InputError(f"{where}: {key} is missing")
    shape, dtype = shape_of(spec["shape"], where), dtype_of(spec["dtype"], where)
    if int(np.prod(shape, dtype=object)) * dtype.itemsize > MAX_BYTES:
        raise InputError(f"{where}: shape {list(shape)} is too large")
    return shape, dtype


def _number(spec: Mapping[str, Any], key: str, where: str, default: float | None = None) -> Any:
    value = spec.get(key, default)
    if value is None:
        raise InputError(f"{where}: {key} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: {key} must be a number, not {value!r}")
    return value


def _seed(spec: Mapping[str, Any], where: str) -> int:
    seed = spec.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"{where}: seed must be a non-negative integer, not {seed!r}")
    return seed


def _fitting(value: Any, dtype: np.dtype[Any], where: str) -> Any:
    if dtype.kind in "iu" and not (isinstance(value, int) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
        raise InputError(f"{where}: {value} is no {dtype.name}")
    return value


def _describe(array: Array) -> str:
    return f"{array.dtype.name} of shape {array.shape}"


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
