"""Memory pools that programs make: what they count, how much they give, and what other processes have of them."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from tests.cuda.test_driver import fails
from tests.support.driver_api import ADDRESS, POINTER, Access, call, context, get, result, to_host
from tests.support.places import ROOT

DEVICE, POSIX_FILE = 1, 1
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


class Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("device", ctypes.c_int),
        ("security", POINTER), ("most", ctypes.c_size_t), ("rest", ctypes.c_char * 56),
    ]  # fmt: skip


def make(most: int = 0) -> int:
    return get(POINTER, "cuMemPoolCreate", ctypes.byref(Properties(1, POSIX_FILE, DEVICE, 0, None, most)))


def take(size: int, pool: int) -> int:
    return get(ADDRESS, "cuMemAllocFromPoolAsync", size, pool, None)


def attribute(pool: int, number: int) -> int:
    out = ctypes.c_uint64()
    call("cuMemPoolGetAttribute", pool, number, ctypes.byref(out))
    return out.value


def test_a_pool_counts_what_it_has_given():
    pool = make()
    first, second = take(1000, pool), take(500, pool)
    assert [attribute(pool, number) for number in (USED, USED_HIGH, RESERVED, RESERVED_HIGH)] == [1500] * 4
    assert get(POINTER, "cuPointerGetAttribute", 17, first) == pool
    call("cuMemFreeAsync", first, None)
    assert [attribute(pool, number) for number in (USED, USED_HIGH)] == [500, 1500]
    call("cuMemPoolSetAttribute", pool, USED_HIGH, ctypes.byref(ctypes.c_uint64(0)))
    assert attribute(pool, USED_HIGH) == 500
    with fails("INVALID_VALUE"):
        call("cuMemPoolSetAttribute", pool, USED_HIGH, ctypes.byref(ctypes.c_uint64(3)))
    call("cuMemPoolTrimTo", pool, 0)
    call("cuMemFree_v2", second)
    assert attribute(pool, USED) == 0
    call("cuMemPoolSetAttribute", pool, THRESHOLD, ctypes.byref(ctypes.c_uint64(2**64 - 1)))
    assert attribute(pool, THRESHOLD) == 2**64 - 1
    call("cuMemPoolDestroy", pool)
    assert result("cuMemPoolTrimTo", pool, 0) == "INVALID_VALUE"


def test_a_pool_has_a_greatest_size():
    pool = make(most=1 << 20)
    kept = take(1 << 19, pool)
    with fails("OUT_OF_MEMORY"):
        take((1 << 19) + 1, pool)
    take(1 << 19, pool)
    call("cuMemPoolDestroy", pool)  # what it has given lives on
    call("cuMemsetD8_v2", kept, 6, 1 << 19)
    assert (to_host(kept, 1 << 19, "u1") == 6).all()
    call("cuMemFreeAsync", kept, None)


def test_the_devices_pool_can_be_another():
    own, pool = get(POINTER, "cuDeviceGetDefaultMemPool", 0), make()
    assert get(POINTER, "cuDeviceGetMemPool", 0) == own
    call("cuDeviceSetMemPool", 0, pool)
    address = get(ADDRESS, "cuMemAllocAsync", 64, None)
    assert attribute(pool, USED) == 64 and attribute(own, USED) == 0
    assert get(POINTER, "cuDeviceGetMemPool", 0) == pool and get(POINTER, "cuDeviceGetDefaultMemPool", 0) == own
    call("cuMemPoolDestroy", pool)
    assert get(POINTER, "cuDeviceGetMemPool", 0) == own
    with fails("INVALID_VALUE"):
        call("cuMemPoolDestroy", own)
    call("cuMemFreeAsync", address, None)


def test_what_is_wrong_is_an_error():
    pool = make()
    made = ctypes.byref(POINTER())
    wrong = [
        ("cuMemPoolCreate", made, None),
        ("cuMemPoolCreate", made, ctypes.byref(Properties(2, 0, DEVICE, 0))),
        ("cuMemPoolCreate", made, ctypes.byref(Properties(1, 0, 9, 0))),
        ("cuMemAllocFromPoolAsync", made, 64, pool + 16, None),
        ("cuMemAllocFromPoolAsync", made, 64, None, None),
        ("cuMemPoolDestroy", pool + 16),
        ("cuDeviceSetMemPool", 0, pool + 16),
        ("cuMemPoolGetAttribute", pool, 9, made),
        ("cuMemPoolSetAttribute", pool, USED, made),
        ("cuMemPoolSetAccess", pool, ctypes.byref(Access(DEVICE, 0, 0)), 1),
        ("cuMemPoolExportPointer", ctypes.create_string_buffer(64), get(ADDRESS, "cuMemAlloc_v2", 64)),
        ("cuMemPoolImportPointer", made, pool, ctypes.create_string_buffer(64)),
        ("cuMemPoolImportFromShareableHandle", made, 1 << 20, POSIX_FILE, 0),
    ]
    assert [result(*one) for one in wrong] == ["INVALID_VALUE"] * len(wrong)
    assert result("cuMemPoolCreate", made, ctypes.byref(Properties(1, 0, DEVICE, 1))) == "INVALID_DEVICE"
    assert result("cuMemPoolCreate", made, ctypes.byref(Properties(1, 8, DEVICE, 0))) == "NOT_SUPPORTED"
    call("cuMemPoolSetAccess", pool, ctypes.byref(Access(DEVICE, 0, 3)), 1)
    assert get(ctypes.c_int, "cuMemPoolGetAccess", pool, ctypes.byref(Access(DEVICE, 0))) == 3
    call("cuMemPoolDestroy", pool)


IMPORTER = """
import ctypes, sys
from tests.cuda.test_pools import *
with context():
    pool = get(POINTER, "cuMemPoolImportFromShareableHandle", int(sys.argv[1]), POSIX_FILE, 0)
    data = ctypes.create_string_buffer(bytes.fromhex(sys.argv[2]), 64)
    first, second = (get(ADDRESS, "cuMemPoolImportPointer", pool, data) for _ in range(2))
    assert first == second
    print(to_host(first, 4, "u4").tolist())
    call("cuMemsetD32_v2", first, 9, 2)
    assert result("cuMemAllocFromPoolAsync", ctypes.byref(ADDRESS()), 64, pool, None) == "INVALID_VALUE"
    for _ in range(2):
        call("cuMemFreeAsync", first, None)
    assert result("cuMemFree_v2", first) == "INVALID_VALUE"
    call("cuMemPoolDestroy", pool)
"""


def test_another_process_has_memory_of_a_pool():
    pool = make()
    address = take(4096, pool)
    call("cuMemsetD32_v2", address, 3, 4)
    file = get(ctypes.c_int, "cuMemPoolExportToShareableHandle", pool, POSIX_FILE, 0)
    data = ctypes.create_string_buffer(64)
    call("cuMemPoolExportPointer", data, address)
    command = [sys.executable, "-c", IMPORTER, str(file), data.raw.hex()]
    said = subprocess.check_output(command, cwd=ROOT, pass_fds=[file], text=True)
    os.close(file)
    assert said.strip() == "[3, 3, 3, 3]"
    assert to_host(address, 4, "u4").tolist() == [9, 9, 3, 3]
    call("cuMemFreeAsync", address, None)
    call("cuMemPoolDestroy", pool)
