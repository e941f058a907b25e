"""Arrays in files: ``.npy``, and pictures as ``.png``."""

from __future__ import annotations

import math
import os
import stat
import warnings
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from ptxemu.case.arrays import Array, dtype_of
from ptxemu.device.picture import flat
from ptxemu.process.locks import importing
from ptxemu.text.errors import InputError
from ptxemu.text.files import named, reason, unreadable

SUFFIXES = (".npy", ".png")  # of files that arrays are saved in
MAX_PIXELS = 1 << 27  # of a picture; a small file can claim to have any number


def load_array(path: Path, where: str) -> Array:
    """An array from a ``.npy`` file, or from a ``.png`` file."""
    return load_png(path, where) if path.suffix == ".png" else load_npy(path, where)


def load_npy(path: Path, where: str) -> Array:
    """An array from a ``.npy`` file; pickled objects are refused."""
    try:
        with path.open("rb") as file:
            return _read_npy(file)
    except MemoryError:
        raise
    except OSError as error:
        raise InputError(f"{named(path, where)}: {unreadable(error)}") from None
    except Exception as error:  # a damaged header is evaluated, and raises almost anything
        raise InputError(f"{named(path, where)}: not a valid .npy file ({_first_line(error)})") from None


def _read_npy(file: BufferedReader) -> Array:
    if file.peek(4)[:4] == b"PK\x03\x04":
        raise ValueError("an archive of arrays, not one .npy array")
    version = np.lib.format.read_magic(file)
    if version > (3, 0):
        raise ValueError("of an unknown version")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    status = os.fstat(file.fileno())
    if dtype.hasobject:
        raise ValueError("it has Python objects, not numbers")
    if stat.S_ISREG(status.st_mode) and math.prod(shape) * dtype.itemsize > status.st_size - file.tell():
        raise ValueError("it is shorter than its header says")
    file.seek(0)
    loaded: Array = np.lib.format.read_array(file, allow_pickle=False)
    return loaded


def of_type(array: Array, name: str, where: str) -> Array:
    """An array whose elements are those of a type, or as many bytes: .npy files have no bf16, e4m3 or e5m2."""
    dtype = dtype_of(name, where)
    if array.dtype.type is np.void and array.dtype.names is None and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    if array.dtype != dtype:
        raise InputError(f"{where}: the file has elements of {array.dtype.name}, not {dtype.name}")
    return array


def load_png(path: Path, where: str) -> Array:
    """A picture as bytes: (height, width) for grey, (height, width, 4) else."""
    image = _pillow(where)
    try:
        with warnings.catch_warnings(action="ignore"), path.open("rb") as file, image.open(file, formats=["PNG"]) as picture:
            if (pixels := picture.width * picture.height) > MAX_PIXELS:
                raise ValueError(f"it has {pixels} pixels, more than {MAX_PIXELS}")
            return np.array(picture.convert("L" if picture.mode in ("1", "L") else "RGBA"))
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders have no exception of their own
        if isinstance(error, OSError) and error.errno:
            raise InputError(f"{named(path, where)}: {unreadable(error)}") from None
        raise InputError(f"{named(path, where)}: not a readable picture ({_first_line(error)})") from None


def save_array(path: Path, array: Array, where: str) -> None:
    """Write a ``.npy`` or, for bytes of shape (height, width[, 3 or 4]), a ``.png`` file."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{where}: {path}: must end in {' or '.join(SUFFIXES)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise InputError(f"{where}: {path}: exists but is not a file")
        if path.suffix == ".png":
            _save_png(path, array, where)
        else:
            np.save(path, array, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: {path}: {reason(error)}") from None


def _save_png(path: Path, array: Array, where: str) -> None:
    image = _pillow(where)
    picture = flat(array)
    if picture is None or picture.dtype != np.uint8 or not picture.size:
        described = f"{array.dtype.name} of shape {array.shape}"
        raise InputError(f"{where}: a picture needs u8 of shape (height, width[, 3 or 4]), not {described}")
    image.fromarray(np.ascontiguousarray(picture)).save(path)


def _pillow(where: str) -> Any:
    try:
        with importing:
            from PIL import Image
    except ImportError:
        raise InputError(f"{where}: pictures need Pillow: pip install 'ptxemu[images]'") from None
    return Image


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
