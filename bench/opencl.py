"""The cases of the bench on the OpenCL platforms of this machine. Needs pyopencl."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from cases import Array, Case, Surface, kernel_of
from sides import KERNELS

os.environ.setdefault("PYOPENCL_NO_CACHE", "1")

import pyopencl as cl

CHANNELS = {"f": cl.channel_type.FLOAT, "u": cl.channel_type.UNSIGNED_INT32}
SCALARS = {int: np.int32, float: np.float32}
CALLED = {"Portable Computing Language": "PoCL", "Intel(R) OpenCL": "Intel OpenCL"}
AS_BUFFER = {"surface_add"}
"""Kernels whose surface is a buffer, as OpenCL has no such instruction on images."""


def platforms() -> dict[str, cl.Device]:
    """The first CPU of each platform, by what the platform is called. Empty where there is none."""
    try:
        found = cl.get_platforms()
    except cl.LogicError:
        return {}
    cpus = ((platform.name, platform.get_devices(cl.device_type.CPU)) for platform in found)
    return {CALLED.get(name, name): devices[0] for name, devices in cpus if devices}


class OpenCL:
    """The case on one device."""

    def __init__(self, name: str, case: Case, device: cl.Device) -> None:
        self._context = cl.Context([device])
        self._queue = cl.CommandQueue(self._context)
        self._case = case
        self._memory = [self._copied(name, argument) for argument in case.arguments]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)
            program = cl.Program(self._context, (KERNELS / f"{kernel_of(name)}.cl").read_text()).build()
        self._kernel = getattr(program, kernel_of(name))
        shared = [cl.LocalMemory(case.shared)] if case.shared else []
        self._kernel.set_args(*self._memory, *shared)
        self._threads = tuple(blocks * size for blocks, size in zip(case.grid, (*case.block, 1, 1)))

    def _copied(self, name: str, argument: Any) -> Any:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        if isinstance(argument, Surface) and name not in AS_BUFFER:
            array = argument.array
            format = cl.ImageFormat(cl.channel_order.R, CHANNELS[array.dtype.kind])
            return cl.Image(self._context, flags, format, shape=array.shape[::-1], hostbuf=np.ascontiguousarray(array))
        array = argument.array if isinstance(argument, Surface) else argument
        if isinstance(array, np.ndarray):
            return cl.Buffer(self._context, flags, hostbuf=np.ascontiguousarray(array))
        return SCALARS[type(array)](array)

    def run(self) -> None:
        block = (*self._case.block, 1, 1)[: len(self._threads)]
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, self._threads, block)
        self._queue.finish()

    def result(self, index: int) -> Array:
        argument, memory = self._case.arguments[index], self._memory[index]
        array = argument.array if isinstance(argument, Surface) else argument
        found = np.empty_like(array)
        where = {"origin": (0,) * array.ndim, "region": array.shape[::-1]} if isinstance(memory, cl.Image) else {}
        cl.enqueue_copy(self._queue, found, memory, **where)
        return found
