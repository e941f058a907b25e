"""A program that launches kernels, right and wrong, for test_driver.py: what the driver API says at once, and when asked to wait.

Work of the program stands before the launches in their stream. It ends when they are there, unless they are waited for.
"""

import ctypes
import os
import threading

import numpy as np

from tests.support.driver_api import DriverError, context, function, launch, library, load, result, to_device, to_host
from tests.support.places import TESTS

KERNELS = TESTS / "cuda" / "data" / "kernels.ptx"
N, WILD = 1000, 1 << 40
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def main() -> None:
    add, there = function(load(KERNELS), "add"), threading.Event()
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        there.set()
    before = FUNCTION(lambda data: there.wait() and None)
    a, b, c = (to_device(np.full(N, value, "f4")) for value in (1, 2, 0))
    library().cuLaunchHostFunc(None, before, None)
    for address in (c, WILD):
        try:
            launch(add, (8, 1, 1), (128, 1, 1), a, b, address, ctypes.c_int(N))
            print("SUCCESS", result("cuStreamQuery", None))
        except DriverError as error:
            print(error)
        if address == c and there.is_set():
            print(bool((to_host(c, N, "f4") == 3).all()))
    there.set()
    print(result("cuCtxSynchronize"))


with context():
    main()
