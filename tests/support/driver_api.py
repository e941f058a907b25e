"""CUDA's driver API by ctypes, as a program calls it: what returns an error raises DriverError."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ptxemu.process.cuda import library_path

POINTER, SIZE, ADDRESS = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64


class Access(ctypes.Structure):
    """CUmemAccessDesc: what a location may do with memory, of pools and mapped."""

    _fields_ = [("location", ctypes.c_int), ("device", ctypes.c_int), ("access", ctypes.c_int)]


class DriverError(Exception):
    """A call did not return CUDA_SUCCESS; the text is the error's name without ``CUDA_ERROR_``."""


@cache
def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(library_path() / "libcuda.so.1"))


def name_of(error: int) -> str:
    text = ctypes.c_char_p()
    library().cuGetErrorName(error, ctypes.byref(text))
    return (text.value or b"?").decode().removeprefix("CUDA_ERROR_")


def call(name: str, *arguments: Any) -> None:
    """Call a function; integers are passed as 64 bits, which also suits parameters of 32."""
    plain = [ctypes.c_uint64(one & 2**64 - 1) if isinstance(one, int) else one for one in arguments]
    error = getattr(library(), name)(*plain)
    if error:
        raise DriverError(name_of(error))


def result(name: str, *arguments: Any) -> str:
    """The error that a call of a function returns, or SUCCESS."""
    try:
        call(name, *arguments)
    except DriverError as error:
        return str(error)
    return "SUCCESS"


def get(kind: Any, name: str, *arguments: Any) -> Any:
    """What a function writes to its first argument."""
    out = kind()
    call(name, ctypes.byref(out), *arguments)
    return out.value


@contextmanager
def context() -> Iterator[int]:
    """A context of one's own."""
    call("cuInit", 0)
    made = get(POINTER, "cuCtxCreate_v2", 0, 0)
    try:
        yield made
    finally:
        call("cuCtxDestroy_v2", made)


def load(image: str | bytes | Path) -> int:
    data = image.read_bytes() if isinstance(image, Path) else image.encode() if isinstance(image, str) else image
    return get(POINTER, "cuModuleLoadData", ctypes.c_char_p(data))


def function(module: int, name: str) -> int:
    return get(POINTER, "cuModuleGetFunction", module, name.encode())


def to_device(array: NDArray[Any]) -> int:
    address = get(ADDRESS, "cuMemAlloc_v2", array.nbytes)
    call("cuMemcpyHtoD_v2", address, POINTER(array.ctypes.data), array.nbytes)
    return address


def to_host(address: int, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    out = np.empty(shape, dtype)
    call("cuMemcpyDtoH_v2", POINTER(out.ctypes.data), address, out.nbytes)
    return out


def launch(kernel: int, grid: tuple[int, int, int], block: tuple[int, int, int], *arguments: Any, shared: int = 0) -> None:
    """Arguments are ctypes values, or integers for addresses."""
    values = [ADDRESS(one) if isinstance(one, int) else one for one in arguments]
    places = (POINTER * max(1, len(values)))(*[ctypes.addressof(one) for one in values])
    call("cuLaunchKernel", kernel, *grid, *block, shared, None, places, None)
