"""libcuda.so.1: what programs do with CUDA's driver API, results against NumPy."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from ptxemu.images.fatbin import PTX
from ptxemu.process.cuda import library_path
from tests.images.test_fatbin import fat
from tests.support.driver_api import (
    ADDRESS,
    POINTER,
    SIZE,
    DriverError,
    call,
    context,
    function,
    get,
    launch,
    load,
    result,
    to_device,
    to_host,
)
from tests.support.places import ROOT, TESTS

DATA = TESTS / "cuda" / "data"
KERNELS = DATA / "kernels.ptx"
N = 1000
WARP = (32, 1, 1)
ONE = (1, 1, 1)
CALLER, CALLED = ((DATA / f"{name}.ptx").read_text() for name in ("caller", "called"))


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


def fails(error: str):
    return pytest.raises(DriverError, match=f"^{error}$")


def names() -> list[str]:
    lines = (ROOT / "cuda" / "names" / "cuda.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if not line.startswith("#")]


def test_every_name_is_exported_and_nothing_else():
    listed = subprocess.check_output(["nm", "-D", "--defined-only", library_path() / "libcuda.so.1"], text=True)
    assert {line.split()[2] for line in listed.splitlines()} == {*names(), "ptxemu_last_fault"}


def test_what_is_not_there_says_so():
    with fails("NOT_SUPPORTED"):
        call("cuImportExternalMemory", None, None)


@pytest.mark.parametrize("image", ["text", "fat", "wrapped"])
def test_kernels_run(image):
    data = KERNELS.read_bytes()
    if image != "text":
        data = fat((PTX, 75, data))
    if image == "wrapped":
        kept = ctypes.create_string_buffer(data, len(data))
        data = (0x466243B1).to_bytes(4, "little") + bytes(4) + ctypes.addressof(kept).to_bytes(8, "little") + bytes(8)
    add = function(load(data), "add")
    a, b = np.arange(N, dtype="f4"), np.arange(N, dtype="f4") ** 2
    c = get(ADDRESS, "cuMemAlloc_v2", a.nbytes)
    launch(add, (8, 1, 1), (128, 1, 1), to_device(a), to_device(b), c, ctypes.c_int(N))
    assert np.array_equal(to_host(c, N, "f4"), a + b)


def test_arguments_in_a_buffer():
    add = function(load(KERNELS), "add")
    a = np.arange(N, dtype="f4")
    c = get(ADDRESS, "cuMemAlloc_v2", a.nbytes)
    buffer = np.array([(to_device(a), to_device(a), c, N)], "u8,u8,u8,i4")
    size = SIZE(buffer.nbytes)
    extra = (POINTER * 5)(1, buffer.ctypes.data, 2, ctypes.addressof(size), 0)
    call("cuLaunchKernel", add, 8, 1, 1, 128, 1, 1, 0, None, None, extra)
    assert np.array_equal(to_host(c, N, "f4"), 2 * a)
    size.value = 24
    with fails("INVALID_VALUE"):
        call("cuLaunchKernel", add, 8, 1, 1, 128, 1, 1, 0, None, None, extra)


@pytest.mark.parametrize("given", ["0", "1"])
def test_host_memory_is_the_environments_choice(given):
    command = [sys.executable, "-m", "tests.cuda.host_memory"]
    variables = {**os.environ, "PTXEMU_HOST_MEMORY": given}
    said = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    if given == "1":
        assert said == ["SUCCESS True", "1", "SUCCESS True", "SUCCESS True", "ILLEGAL_ADDRESS True"]
    else:
        assert said == ["INVALID_VALUE False", "0", "INVALID_VALUE False", "ILLEGAL_ADDRESS False"]


@pytest.mark.parametrize("given", ["0", "1"])
def test_the_environment_can_make_launches_wait(given):
    command = [sys.executable, "-m", "tests.cuda.blocking_launches"]
    variables = {**os.environ, "CUDA_LAUNCH_BLOCKING": given}
    said = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    if given == "1":
        assert said == ["SUCCESS SUCCESS", "True", "ILLEGAL_ADDRESS", "ILLEGAL_ADDRESS"]
    else:
        assert said == ["SUCCESS NOT_READY", "SUCCESS NOT_READY", "ILLEGAL_ADDRESS"]


def test_globals_and_sets():
    module = load(KERNELS)
    address, size = ADDRESS(), SIZE()
    call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), module, b"factors")
    assert size.value == 16
    call("cuMemsetD32_v2", address.value, 0x40400000, 4)  # 3.0
    out = get(ADDRESS, "cuMemAlloc_v2", 32 * 4)
    launch(function(module, "scale"), ONE, WARP, out)
    assert np.array_equal(to_host(out, 32, "f4"), 3 * np.arange(32))
    with fails("NOT_FOUND"):
        get(ADDRESS, "cuModuleGetGlobal_v2", None, module, b"missing")
    with fails("INVALID_VALUE"):
        call("cuMemsetD32_v2", out, 0, 33)
    call("cuMemsetD2D8_v2", out, 16, 7, 3, 8)
    assert np.array_equal(to_host(out, (8, 16), "u1")[:, :3], np.full((8, 3), 7))


def test_dynamic_shared_memory_and_attributes():
    reverse = function(load(DATA / "references.ptx"), "reverse")
    out = get(ADDRESS, "cuMemAlloc_v2", 32 * 4)
    launch(reverse, ONE, WARP, out, shared=128)
    assert np.array_equal(to_host(out, 32, "u4"), np.arange(32)[::-1])
    with fails("INVALID_VALUE"):
        launch(reverse, ONE, WARP, out, shared=100 << 10)
    call("cuFuncSetAttribute", reverse, 8, 100 << 10)
    launch(reverse, ONE, WARP, out, shared=100 << 10)
    assert get(ctypes.c_int, "cuFuncGetAttribute", 8, reverse) == 100 << 10
    limited = function(load(KERNELS), "limited")
    assert get(ctypes.c_int, "cuFuncGetAttribute", 0, limited) == 64
    grid, block = ctypes.c_int(), ctypes.c_int()
    call("cuOccupancyMaxPotentialBlockSize", ctypes.byref(grid), ctypes.byref(block), limited, None, 0, 0)
    assert block.value == 64


def test_boxes_between_host_device_and_array():
    data = np.arange(6 * 8, dtype="u4").reshape(6, 8)

    class Descriptor(ctypes.Structure):
        _fields_ = [("width", SIZE), ("height", SIZE), ("format", ctypes.c_int), ("channels", ctypes.c_uint)]

    class Side(ctypes.Structure):
        _fields_ = [
            *[("x", SIZE), ("y", SIZE), ("type", ctypes.c_int), ("host", POINTER)],
            *[("device", ADDRESS), ("array", POINTER), ("pitch", SIZE)],
        ]

    class Copy(ctypes.Structure):
        _fields_ = [("source", Side), ("target", Side), ("width", SIZE), ("height", SIZE)]

    array = get(POINTER, "cuArrayCreate_v2", ctypes.byref(Descriptor(8, 6, 3, 1)))
    device = get(ADDRESS, "cuMemAlloc_v2", 6 * 64)
    out = np.zeros((4, 5), "u4")
    host = Side(0, 0, 1, data.ctypes.data, 0, None, 32)
    call("cuMemcpy2D_v2", ctypes.byref(Copy(host, Side(0, 0, 3, None, 0, array, 0), 32, 6)))
    call("cuMemcpy2D_v2", ctypes.byref(Copy(Side(4, 1, 3, None, 0, array, 0), Side(8, 2, 2, None, device, None, 64), 20, 4)))
    back = Copy(Side(8, 2, 2, None, device, None, 64), Side(0, 0, 1, out.ctypes.data, 0, None, 20), 20, 4)
    call("cuMemcpy2D_v2", ctypes.byref(back))
    assert np.array_equal(out, data[1:5, 1:6])
    back.height = 5
    with fails("INVALID_VALUE"):
        call("cuMemcpy2D_v2", ctypes.byref(back))
    call("cuArrayDestroy", array)


class Format(ctypes.Structure):
    _fields_ = [
        *[("width", SIZE), ("height", SIZE), ("depth", SIZE)],
        *[("format", ctypes.c_int), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)],
    ]


def test_texture_references():
    module = load(DATA / "references.ptx")
    reference = get(POINTER, "cuModuleGetTexRef", module, b"image")
    out = get(ADDRESS, "cuMemAlloc_v2", 64 * 4)
    texels = np.arange(8, dtype="u1")
    array = get(POINTER, "cuArray3DCreate_v2", ctypes.byref(Format(8, 8, 0, 1, 1, 0)))
    call("cuMemcpyHtoA_v2", array, 0, POINTER(texels.ctypes.data), 8)
    call("cuTexRefSetArray", reference, array, 1)
    launch(function(module, "read_image"), ONE, (8, 1, 1), out)
    assert np.allclose(to_host(out, 8, "f4"), np.arange(8) / 255)
    rows = to_device(np.arange(8 * 128, dtype="f4"))
    call("cuTexRefSetFormat", reference, 32, 1)
    call("cuTexRefSetAddress2D_v3", reference, ctypes.byref(Format(8, 8, 32 | 1 << 32)), rows, 512)
    launch(function(module, "read_image"), ONE, (8, 8, 1), out)
    assert np.array_equal(to_host(out, (8, 8), "f4"), np.arange(8 * 128).reshape(8, 128)[:, :8])
    assert get(ADDRESS, "cuTexRefGetAddress_v2", reference) == rows
    with fails("NOT_FOUND"):
        get(POINTER, "cuModuleGetTexRef", module, b"canvas")


def test_surface_references():
    module = load(DATA / "references.ptx")
    reference = get(POINTER, "cuModuleGetSurfRef", module, b"canvas")
    plain = get(POINTER, "cuArray3DCreate_v2", ctypes.byref(Format(8, 4, 0, 3, 1, 0)))
    with fails("INVALID_VALUE"):
        call("cuSurfRefSetArray", reference, plain, 0)
    array = get(POINTER, "cuArray3DCreate_v2", ctypes.byref(Format(8, 4, 0, 3, 1, 2)))
    call("cuSurfRefSetArray", reference, array, 0)
    launch(function(module, "write_canvas"), ONE, (8, 4, 1))
    out = np.zeros(8, "u4")
    call("cuMemcpyAtoH_v2", POINTER(out.ctypes.data), array, 0, 32)
    assert np.array_equal(out, np.arange(8))
    assert get(POINTER, "cuSurfRefGetArray", reference) == array


def linked(*texts: str) -> bytes:
    """What the linker makes."""
    state = get_link()
    try:
        for text in texts:
            data = text.encode()
            call("cuLinkAddData_v2", state, 1, ctypes.c_char_p(data), len(data), b"input", 0, None, None)
        image, size = POINTER(), SIZE()
        call("cuLinkComplete", state, ctypes.byref(image), ctypes.byref(size))
        return ctypes.string_at(image, size.value)
    finally:
        call("cuLinkDestroy", state)


def get_link() -> int:
    state = POINTER()
    call("cuLinkCreate_v2", 0, None, None, ctypes.byref(state))
    assert state.value
    return state.value


def test_several_texts_are_linked():
    apply = function(load(linked(CALLER, CALLED)), "apply")
    at = to_device(np.array([21], "u4"))
    launch(apply, ONE, ONE, at)
    assert to_host(at, 1, "u4") == 42


def test_links_that_lack_something_are_errors(capfd):
    with fails("INVALID_PTX"):
        linked(CALLER, CALLED, CALLED)
    assert "twice" in capfd.readouterr().err


def test_too_many_inputs_are_an_error():
    state = get_link()
    for _ in range(1024):
        call("cuLinkAddData_v2", state, 1, b"x", 1, None, 0, None, None)
    with fails("OUT_OF_MEMORY"):
        call("cuLinkAddData_v2", state, 1, b"x", 1, None, 0, None, None)
    call("cuLinkDestroy", state)


def test_errors_of_loads_are_logged(capfd):
    log = ctypes.create_string_buffer(200)
    options = (ctypes.c_int * 2)(5, 6)
    values = (POINTER * 2)(ctypes.addressof(log), len(log))
    with fails("INVALID_PTX"):
        get(POINTER, "cuModuleLoadDataEx", b".version 7.0\n.target sm_75\nnonsense;\n", 2, options, values)
    assert log.value and log.value.decode()[:20] in capfd.readouterr().err
    assert values[1] == len(log.value) + 1


def test_wrong_calls_are_errors():
    module = load(KERNELS)
    with fails("NOT_FOUND"):
        function(module, "nothing")
    with fails("INVALID_VALUE"):
        launch(function(module, "empty"), ONE, (1025, 1, 1))
    with fails("INVALID_VALUE"):
        get(ADDRESS, "cuMemAlloc_v2", 0)
    with fails("OUT_OF_MEMORY"):
        get(ADDRESS, "cuMemAlloc_v2", 1 << 50)
    with fails("INVALID_VALUE"):
        call("cuMemFree_v2", 4096)
    with fails("INVALID_DEVICE"):
        get(ctypes.c_int, "cuDeviceGet", 1)
    with fails("NO_BINARY_FOR_GPU"):
        load(b"\x7fELF" + bytes(100))
    call("cuModuleUnload", module)
    with fails("INVALID_HANDLE"):
        call("cuModuleUnload", module)


def test_a_fault_stays_with_its_context(own_context, capfd):
    value = to_device(np.array([5], "i4"))
    with context() as other:
        store = function(load(KERNELS.read_bytes().replace(b"store", b"_ZN4math5storeEPi")), "_ZN4math5storeEPi")
        launch(store, ONE, ONE, 0x123000)
        with fails("ILLEGAL_ADDRESS"):
            call("cuCtxSynchronize")
        with fails("ILLEGAL_ADDRESS"):
            call("cuMemFree_v2", value)
        call("cuCtxPushCurrent_v2", own_context)
        launch(function(load(KERNELS), "store"), ONE, ONE, value)
        assert to_host(value, 1, "i4") == 7
        assert get(POINTER, "cuCtxPopCurrent_v2") == own_context
        assert get(POINTER, "cuCtxGetCurrent") == other
    assert capfd.readouterr().err.count("illegal address in kernel `math::store`") == 1
    call("cuCtxSynchronize")


def test_contexts():
    primary = get(POINTER, "cuDevicePrimaryCtxRetain", 0)
    call("cuCtxPushCurrent_v2", primary)
    assert get(POINTER, "cuCtxGetCurrent") == primary
    assert get(POINTER, "cuCtxPopCurrent_v2") == primary
    call("cuDevicePrimaryCtxRelease_v2", 0)
    with fails("INVALID_CONTEXT"):
        call("cuCtxPushCurrent_v2", primary)
    assert get(ctypes.c_int, "cuDeviceGetAttribute", 75, 0) == 8
    assert get(ctypes.c_int, "cuDeviceGetAttribute", 31, 0) == 1  # kernels of several streams run at once
    assert [get(ctypes.c_int, "cuDeviceGetAttribute", number, 0) for number in (15, 40)] == [1, 1]  # so do copies
    assert get(ctypes.c_int, "cuDriverGetVersion") == 13000


class ContextParameters(ctypes.Structure):
    """CUctxCreateParams: shares of the processors, how many, and a graphics API to work beside."""

    _fields_ = [("shares", ctypes.c_void_p), ("count", ctypes.c_int), ("graphics", ctypes.c_void_p)]


def test_contexts_with_parameters():
    made = get(POINTER, "cuCtxCreate_v4", ctypes.byref(ContextParameters()), 0, 0)
    assert get(POINTER, "cuCtxGetCurrent") == made
    call("cuCtxDestroy_v2", POINTER(made))
    for wish in (ContextParameters(shares=8, count=1), ContextParameters(graphics=8)):
        with fails("NOT_SUPPORTED"):
            get(POINTER, "cuCtxCreate_v4", ctypes.byref(wish), 0, 0)


def test_what_is_known_of_addresses():
    device, host = get(ADDRESS, "cuMemAlloc_v2", 100), get(POINTER, "cuMemHostAlloc", 100, 0)
    assert get(ctypes.c_uint, "cuPointerGetAttribute", 2, device + 9) == 2
    assert get(ctypes.c_uint, "cuPointerGetAttribute", 2, host) == 1
    assert get(ADDRESS, "cuPointerGetAttribute", 11, device + 9) == device
    start, size = ADDRESS(), SIZE()
    call("cuMemGetAddressRange_v2", ctypes.byref(start), ctypes.byref(size), device + 99)
    assert (start.value, size.value) == (device, 100)
    with fails("INVALID_VALUE"):
        get(ctypes.c_uint, "cuPointerGetAttribute", 2, 4096)


@pytest.mark.parametrize("advice", range(8))
@pytest.mark.parametrize("device", [-2, -1, 0, 1])
def test_hints_name_what_there_is(advice, device):
    memory = get(ADDRESS, "cuMemAllocManaged", 4096, 1)
    there, placed = device in (-1, 0), advice in (3, 5, 6)  # SET_PREFERRED_LOCATION, (UN)SET_ACCESSED_BY
    wanted = "INVALID_VALUE" if advice in (0, 7) else "SUCCESS" if there or not placed else "INVALID_DEVICE"
    assert result("cuMemAdvise", memory, 4096, advice, device) == wanted
    assert result("cuMemPrefetchAsync", memory, 4096, device, 0) == ("SUCCESS" if there else "INVALID_DEVICE")
    call("cuMemFree_v2", memory)


def test_every_attribute_of_a_device_has_a_value():
    last = 147  # of CUDA 13.0
    values = [get(ctypes.c_int, "cuDeviceGetAttribute", number, 0) for number in range(1, last + 1)]
    assert min(values) >= 0
    assert [values[number - 1] for number in (102, 103, 119)] == [1] * 3  # memory that other processes can have as files
    with fails("INVALID_VALUE"):
        get(ctypes.c_int, "cuDeviceGetAttribute", last + 1, 0)


def test_the_primary_context_is_detached_as_it_is_released():
    primary = get(POINTER, "cuDevicePrimaryCtxRetain", 0)
    call("cuCtxDetach", primary)
    with fails("INVALID_CONTEXT"):
        call("cuCtxDetach", primary)


def test_functions_are_found_by_version():
    def found(name: str, version: int) -> int | None:
        out = POINTER()
        call("cuGetProcAddress_v2", name.encode(), ctypes.byref(out), version, 0, None)
        return out.value

    def address(name: str) -> int | None:
        core = ctypes.CDLL(str(library_path() / "libptxemu_cuda.so"))  # which the library's own functions jump to
        return ctypes.cast(getattr(core, f"ptxemu_core_{name}"), POINTER).value

    assert found("cuCtxCreate", 3020) == address("cuCtxCreate_v2")
    assert found("cuCtxCreate", 12000) == address("cuCtxCreate_v3")
    assert found("cuMemcpyHtoD", 13000) == address("cuMemcpyHtoD_v2")
    with fails("NOT_FOUND"):
        found("cuCtxCreate", 1000)
    with fails("NOT_FOUND"):
        found("cuMem", 13000)


def test_streams_and_events():
    stream = get(POINTER, "cuStreamCreate", 1)
    first, last = get(POINTER, "cuEventCreate", 0), get(POINTER, "cuEventCreate", 0)
    call("cuEventRecord", first, stream)
    at = get(ADDRESS, "cuMemAllocAsync", 64, stream)
    call("cuMemsetD8Async", at, 9, 64, stream)
    call("cuEventRecord", last, stream)
    call("cuStreamSynchronize", stream)
    assert np.array_equal(to_host(at, 64, "u1"), np.full(64, 9))
    assert get(ctypes.c_float, "cuEventElapsedTime", first, last) >= 0
    call("cuMemFreeAsync", at, stream)
    for event in (first, last):
        call("cuEventDestroy_v2", event)
    call("cuStreamDestroy_v2", stream)
