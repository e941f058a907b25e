"""cuMemAddressReserve, cuMemCreate and cuMemMap: memory at addresses that the program chooses, shared by files."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.cuda.test_driver import fails
from tests.support.driver_api import ADDRESS, POINTER, SIZE, Access, call, context, function, get, launch, load, result, to_host
from tests.support.places import ROOT, TESTS

KERNELS = TESTS / "cuda" / "data" / "kernels.ptx"
UNIT = 2 << 20
DEVICE, POSIX_FILE = 1, 1
NONE, READ, READ_WRITE = 0, 1, 3


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


class Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("device", ctypes.c_int),
        ("meta", POINTER), ("flags", ctypes.c_uint64),
    ]  # fmt: skip


PINNED = Properties(1, POSIX_FILE, DEVICE, 0)


def create(size: int = UNIT) -> int:
    return get(ADDRESS, "cuMemCreate", size, ctypes.byref(PINNED), 0)


def reserve(size: int) -> int:
    return get(ADDRESS, "cuMemAddressReserve", size, 0, 0, 0)


def allow(address: int, size: int, access: int = READ_WRITE) -> None:
    call("cuMemSetAccess", address, size, ctypes.byref(Access(DEVICE, 0, access)), 1)


def mapped(size: int = UNIT) -> tuple[int, int]:
    """An address and the handle of the memory there."""
    address, handle = reserve(size), create(size)
    call("cuMemMap", address, size, 0, handle, 0)
    allow(address, size)
    return address, handle


def end(address: int, size: int, *handles: int) -> None:
    call("cuMemUnmap", address, size)
    call("cuMemAddressFree", address, size)
    for handle in handles:
        call("cuMemRelease", handle)


def free_bytes() -> int:
    free, total = SIZE(), SIZE()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value


def test_the_device_says_that_it_has_them():
    assert [get(ctypes.c_int, "cuDeviceGetAttribute", number, 0) for number in (102, 103)] == [1, 1]
    for option in (0, 1):
        assert get(SIZE, "cuMemGetAllocationGranularity", ctypes.byref(PINNED), option) == UNIT


def test_a_range_grows_in_place():
    """What vectors that grow do: addresses for all, memory piece by piece, one copy and one kernel over all of it."""
    add = function(load(KERNELS), "add")
    before = free_bytes()
    address = reserve(4 * UNIT)
    assert address % UNIT == 0 and free_bytes() == before
    handles = []
    for piece in range(3):
        handles.append(create())
        call("cuMemMap", address + piece * UNIT, UNIT, 0, handles[-1], 0)
        allow(address + piece * UNIT, UNIT)
    assert free_bytes() == before - 3 * UNIT
    data = np.arange(3 * UNIT // 4, dtype="f4")
    call("cuMemcpyHtoD_v2", address, POINTER(data.ctypes.data), data.nbytes)
    count = data.size
    launch(add, (-(-count // 256), 1, 1), (256, 1, 1), address, address, address, ctypes.c_int(count))
    assert np.array_equal(to_host(address, count, "f4"), data + data)
    with fails("INVALID_VALUE"):
        to_host(address, count + 1, "f4")  # the last byte lies where nothing is mapped
    call("cuMemUnmap", address, 3 * UNIT)
    with fails("INVALID_VALUE"):
        call("cuMemAddressFree", address, 3 * UNIT)
    call("cuMemAddressFree", address, 4 * UNIT)
    for handle in handles:
        call("cuMemRelease", handle)
    assert free_bytes() == before


def test_memory_is_that_of_the_handle():
    address, handle = mapped()
    other = reserve(2 * UNIT)
    call("cuMemMap", other + UNIT, UNIT, 0, handle, 0)
    allow(other + UNIT, UNIT)
    call("cuMemsetD32_v2", address, 7, UNIT // 4)
    assert (to_host(other + UNIT, UNIT // 4, "u4") == 7).all()
    call("cuMemRelease", handle)  # mappings keep it
    call("cuMemUnmap", address, UNIT)
    again = get(ADDRESS, "cuMemRetainAllocationHandle", other + UNIT + 100)
    assert again == handle
    call("cuMemMap", address, UNIT, 0, again, 0)
    allow(address, UNIT)
    assert (to_host(address, UNIT // 4, "u4") == 7).all()
    end(address, UNIT)
    call("cuMemUnmap", other + UNIT, UNIT)
    call("cuMemAddressFree", other, 2 * UNIT)
    found = Properties()
    call("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(found), handle)
    assert bytes(found) == bytes(PINNED)
    call("cuMemRelease", handle)
    with fails("INVALID_VALUE"):
        call("cuMemRelease", handle)


def test_what_may_be_done_there():
    address, handle = reserve(UNIT), create()
    call("cuMemMap", address, UNIT, 0, handle, 0)
    where = Access(DEVICE, 0)
    for access in (NONE, READ_WRITE, READ):
        if access != NONE:
            allow(address, UNIT, access)
        assert get(ctypes.c_uint64, "cuMemGetAccess", ctypes.byref(where), address) == access
        may_read, may_write = access & 1, access & 2
        assert (result("cuMemcpyDtoH_v2", ctypes.create_string_buffer(4), address, 4) == "SUCCESS") == bool(may_read)
        assert (result("cuMemsetD32_v2", address, 1, 1) == "SUCCESS") == bool(may_write)
    assert get(ctypes.c_uint, "cuPointerGetAttribute", 2, address) == 2  # device memory
    end(address, UNIT, handle)


@pytest.mark.parametrize("access", [None, NONE, READ], ids=["not mapped", "none", "read"])
def test_kernels_fault_where_they_may_not_write(access, capfd):
    address, handle = reserve(UNIT), create()
    if access is not None:
        call("cuMemMap", address, UNIT, 0, handle, 0)
        allow(address, UNIT, access)
    launch(function(load(KERNELS), "scale"), (1, 1, 1), (32, 1, 1), address)
    assert result("cuCtxSynchronize") == "ILLEGAL_ADDRESS"
    assert ("mapped memory" if access is not None else "reserved addresses") in capfd.readouterr().err


def test_what_is_wrong_is_an_error():
    address, handle = mapped()
    wrong = [
        ("cuMemAddressReserve", ctypes.byref(ADDRESS()), UNIT + 1, 0, 0, 0),
        ("cuMemAddressReserve", ctypes.byref(ADDRESS()), 0, 0, 0, 0),
        ("cuMemAddressReserve", ctypes.byref(ADDRESS()), UNIT, 3 * UNIT, 0, 0),
        ("cuMemAddressFree", address, UNIT),  # something is mapped
        ("cuMemAddressFree", address + UNIT, UNIT),
        ("cuMemCreate", ctypes.byref(ADDRESS()), 4096, ctypes.byref(PINNED), 0),
        ("cuMemCreate", ctypes.byref(ADDRESS()), UNIT, ctypes.byref(Properties(9, 0, DEVICE, 0)), 0),
        ("cuMemCreate", ctypes.byref(ADDRESS()), UNIT, None, 0),
        ("cuMemMap", address, UNIT, 0, handle, 0),  # taken
        ("cuMemMap", address + UNIT, UNIT, 0, handle, 0),
        ("cuMemMap", address, UNIT, 0, handle + 16, 0),
        ("cuMemMap", 2**64 - UNIT, 2 * UNIT, 0, handle, 0),
        ("cuMemUnmap", address, 2 * UNIT),
        ("cuMemUnmap", address + UNIT // 2, UNIT),
        ("cuMemUnmap", 0, UNIT),
        ("cuMemSetAccess", address, 2 * UNIT, ctypes.byref(Access(DEVICE, 0, 3)), 1),
        ("cuMemSetAccess", address, UNIT, ctypes.byref(Access(DEVICE, 0, 2)), 1),
        ("cuMemSetAccess", address, UNIT, None, 1),
        ("cuMemFree_v2", address),
    ]
    assert [result(*one) for one in wrong] == ["INVALID_VALUE"] * len(wrong)
    assert result("cuMemCreate", ctypes.byref(ADDRESS()), UNIT, ctypes.byref(Properties(1, 0, DEVICE, 1)), 0) == "INVALID_DEVICE"
    assert result("cuMemCreate", ctypes.byref(ADDRESS()), UNIT, ctypes.byref(Properties(1, 8, DEVICE, 0)), 0) == "NOT_SUPPORTED"
    for name, *arguments in [("cuMemCreate", ctypes.byref(PINNED), 0), ("cuMemAddressReserve", 0, 0, 0)]:
        assert result(name, ctypes.byref(ADDRESS()), 1 << 62, *arguments) == "OUT_OF_MEMORY"
    small = reserve(3 * UNIT)
    call("cuMemMap", small, UNIT, 0, handle, 0)
    assert result("cuMemMap", small + UNIT, UNIT, UNIT, handle, 0) == "INVALID_VALUE"  # behind the end of the handle
    assert result("cuMemUnmap", small, 3 * UNIT) == "INVALID_VALUE"
    call("cuMemUnmap", small, UNIT)
    call("cuMemAddressFree", small, 3 * UNIT)
    end(address, UNIT, handle)


def test_files_of_handles_in_this_process():
    address, handle = mapped()
    call("cuMemsetD8_v2", address, 5, UNIT)
    file = get(ctypes.c_int, "cuMemExportToShareableHandle", handle, POSIX_FILE, 0)
    end(address, UNIT, handle)
    imported = get(ADDRESS, "cuMemImportFromShareableHandle", file, POSIX_FILE)
    os.close(file)
    address = reserve(UNIT)
    call("cuMemMap", address, UNIT, 0, imported, 0)
    allow(address, UNIT)
    assert (to_host(address, UNIT, "u1") == 5).all()
    end(address, UNIT, imported)


def test_files_that_are_no_memory(tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(UNIT))
    with plain.open("r+b") as file:
        assert result("cuMemImportFromShareableHandle", ctypes.byref(ADDRESS()), file.fileno(), POSIX_FILE) == "INVALID_VALUE"
    assert result("cuMemImportFromShareableHandle", ctypes.byref(ADDRESS()), 1 << 20, POSIX_FILE) == "INVALID_VALUE"


IMPORTER = """
import ctypes, sys
from tests.cuda.test_virtual_memory import *
with context():
    handle = get(ADDRESS, "cuMemImportFromShareableHandle", int(sys.argv[1]), POSIX_FILE)
    address = reserve(UNIT)
    call("cuMemMap", address, UNIT, 0, handle, 0)
    allow(address, UNIT)
    found = to_host(address, 4, "u4").tolist()
    call("cuMemsetD32_v2", address, 9, 2)
    print(found)
"""


def test_another_process_has_the_same_memory():
    address, handle = mapped()
    call("cuMemsetD32_v2", address, 3, 4)
    file = get(ctypes.c_int, "cuMemExportToShareableHandle", handle, POSIX_FILE, 0)
    said = subprocess.check_output([sys.executable, "-c", IMPORTER, str(file)], cwd=ROOT, pass_fds=[file], text=True)
    os.close(file)
    assert said.strip() == "[3, 3, 3, 3]"
    assert to_host(address, 4, "u4").tolist() == [9, 9, 3, 3]
    end(address, UNIT, handle)


OUTLIVES = """
from tests.cuda.test_virtual_memory import *
with context():
    address, handle = mapped()
    call("cuMemsetD8_v2", address, 5, UNIT)
with context():
    print((to_host(address, UNIT, "u1") == 5).all())
call("cuMemUnmap", address, UNIT)
call("cuMemAddressFree", address, UNIT)
call("cuMemRelease", handle)
with context():
    print(result("cuMemUnmap", address, UNIT), result("cuMemRelease", handle))
"""


def test_it_outlives_contexts():
    """No context owns it: the last one may be destroyed before, as in cuda-samples' memMapIPCDrv."""
    said = subprocess.check_output([sys.executable, "-c", OUTLIVES], cwd=ROOT, text=True)
    assert said.split() == ["True", "INVALID_VALUE", "INVALID_VALUE"]


def test_many_times_without_growth():
    before = free_bytes()
    for _ in range(200):
        address, handle = mapped()
        end(address, UNIT, handle)
    assert free_bytes() == before
