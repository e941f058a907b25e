"""Libraries in the runtime's API: kernels and variables of images that a program loads by itself."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from ptxemu.process.cuda import library_path
from tests.support.driver_api import POINTER
from tests.support.places import TESTS

KERNELS = (TESTS / "cuda" / "data" / "kernels.ptx").read_bytes()
SUCCESS, INVALID_VALUE, INVALID_FUNCTION, INVALID_PTX, INVALID_HANDLE, NOT_FOUND = 0, 1, 98, 218, 400, 500
TO_DEVICE, TO_HOST = 1, 2


class Dim3(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in "xyz"]


@pytest.fixture(params=["12", "13"])
def runtime(request: pytest.FixtureRequest) -> ctypes.CDLL:
    return ctypes.CDLL(str(library_path() / f"libcudart.so.{request.param}"))


def load(runtime: ctypes.CDLL, image: bytes) -> tuple[int, POINTER]:
    library = POINTER()
    return runtime.cudaLibraryLoadData(ctypes.byref(library), image, None, None, 0, None, None, 0), library


@pytest.fixture
def library(runtime: ctypes.CDLL) -> Iterator[POINTER]:
    error, made = load(runtime, KERNELS)
    assert error == SUCCESS
    yield made
    assert runtime.cudaLibraryUnload(made) == SUCCESS


def kernel_of(runtime: ctypes.CDLL, library: POINTER, name: bytes) -> POINTER:
    kernel = POINTER()
    assert runtime.cudaLibraryGetKernel(ctypes.byref(kernel), library, name) == SUCCESS
    return kernel


def launch(runtime: ctypes.CDLL, kernel: POINTER, threads: int, *values: ctypes._SimpleCData) -> int:
    places = (POINTER * len(values))(*(ctypes.cast(ctypes.byref(value), POINTER) for value in values))
    return runtime.cudaLaunchKernel(kernel, Dim3(1, 1, 1), Dim3(threads, 1, 1), places, ctypes.c_size_t(0), None)


def test_a_kernel_is_launched_by_its_handle(runtime, library):
    given = np.arange(3 * 32, dtype="f4")
    memory, n = POINTER(), ctypes.c_int(32)
    assert runtime.cudaMalloc(ctypes.byref(memory), given.nbytes) == SUCCESS
    assert runtime.cudaMemcpy(memory, given.ctypes.data_as(POINTER), given.nbytes, TO_DEVICE) == SUCCESS
    places = [POINTER(memory.value + 128 * i) for i in range(3)]
    assert launch(runtime, kernel_of(runtime, library, b"add"), 32, *places, n) == SUCCESS
    assert runtime.cudaMemcpy(given.ctypes.data_as(POINTER), memory, given.nbytes, TO_HOST) == SUCCESS
    np.testing.assert_array_equal(given[64:], given[:32] + given[32:64])
    assert runtime.cudaFree(memory) == SUCCESS


def test_what_is_in_a_library(runtime, library):
    count, size, address = ctypes.c_uint(), ctypes.c_size_t(), POINTER()
    assert runtime.cudaLibraryGetKernelCount(ctypes.byref(count), library) == SUCCESS
    assert count.value == KERNELS.count(b".visible .entry ")
    all_of_them = (POINTER * count.value)()
    assert runtime.cudaLibraryEnumerateKernels(all_of_them, count, library) == SUCCESS
    assert kernel_of(runtime, library, b"scale").value in list(all_of_them)
    assert runtime.cudaLibraryGetGlobal(ctypes.byref(address), ctypes.byref(size), library, b"counter") == SUCCESS
    assert size.value == 4
    word = ctypes.c_uint(77)
    assert runtime.cudaMemcpy(address, ctypes.byref(word), 4, TO_DEVICE) == SUCCESS


def test_a_library_from_a_file(runtime, tmp_path):
    (tmp_path / "kernels.ptx").write_bytes(KERNELS)
    library, path = POINTER(), str(tmp_path / "kernels.ptx").encode()
    assert runtime.cudaLibraryLoadFromFile(ctypes.byref(library), path, None, None, 0, None, None, 0) == SUCCESS
    assert kernel_of(runtime, library, b"add")
    assert runtime.cudaLibraryUnload(library) == SUCCESS


def test_what_is_not_there_is_an_error(runtime, library, capfd):
    kernel = POINTER()
    assert runtime.cudaLibraryGetKernel(ctypes.byref(kernel), library, b"none") == NOT_FOUND
    assert runtime.cudaLibraryGetKernel(None, library, b"add") == INVALID_VALUE
    assert runtime.cudaLibraryGetKernel(ctypes.byref(kernel), ctypes.byref(kernel), b"add") == INVALID_HANDLE
    assert runtime.cudaLibraryUnload(ctypes.byref(kernel)) == INVALID_HANDLE
    assert load(runtime, b"not a program")[0] == INVALID_PTX
    assert launch(runtime, ctypes.cast(library, POINTER), 32) == INVALID_FUNCTION
    runtime.cudaGetLastError()
    capfd.readouterr()


def test_a_kernel_is_gone_with_its_library(runtime):
    _, library = load(runtime, KERNELS)
    kernel = kernel_of(runtime, library, b"add")
    assert runtime.cudaLibraryUnload(library) == SUCCESS
    assert launch(runtime, kernel, 32) == INVALID_FUNCTION
    runtime.cudaGetLastError()
