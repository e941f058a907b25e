"""A program that gives kernels memory of NumPy, for test_driver.py: what the driver API says to that."""

import ctypes

import numpy as np

from tests.support.driver_api import context, function, get, launch, load, result
from tests.support.places import TESTS

KERNELS = TESTS / "cuda" / "data" / "kernels.ptx"
DEVICE_POINTER, PAGEABLE = 3, 88
N = 1000
WILD = 1 << 40


def main() -> None:
    add = function(load(KERNELS), "add")
    a, b, c = np.arange(N, dtype="f4"), np.ones(N, "f4"), np.zeros(N, "f4")
    out, address = ctypes.c_uint64(), c.ctypes.data
    print(result("cuPointerGetAttribute", ctypes.byref(out), DEVICE_POINTER, address), out.value == address)
    print(get(ctypes.c_int, "cuDeviceGetAttribute", PAGEABLE, 0))
    print(result("cuMemsetD32_v2", address, 0x40000000, N), bool((c == 2).all()))
    for place in (address, WILD):
        launch(add, (8, 1, 1), (128, 1, 1), a.ctypes.data, b.ctypes.data, place, ctypes.c_int(N))
        print(result("cuCtxSynchronize"), np.array_equal(c, a + b))


with context():
    main()
