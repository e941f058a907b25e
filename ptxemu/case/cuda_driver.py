"""NVIDIA's driver, to run a case on a GPU: its API by ctypes, with no other library of CUDA."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ptxemu.case.arrays import Array
from ptxemu.device.launch_limits import Shape
from ptxemu.text.errors import InputError, LaunchTimeout
from ptxemu.text.symbols import plain_name

LIBRARY = "libcuda.so.1"
MAX_LOG = 8192  # bytes of the assembler's messages
CAPABILITY = (75, 76)  # cuDeviceGetAttribute: major and minor
LOG, LOG_BYTES = 5, 6  # CUjit_option: CU_JIT_ERROR_LOG_BUFFER and its size
INPUT_PTX = 1
NOT_READY = 600  # CUresult: what was launched has not ended
LONGEST_PAUSE = 0.05  # seconds between two looks at whether it has
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
Pointer = ctypes.c_void_p
Address = ctypes.c_uint64


class CudaDriver:
    """A driver's first device, with memory, modules and launches. Every failure of the driver is an InputError."""

    def __init__(self, library: str | None = None) -> None:
        self._name = library or LIBRARY
        try:
            self._library = ctypes.CDLL(self._name)
        except OSError as error:
            raise InputError(f"no CUDA driver: {error}") from None
        self._at_exit: list[tuple[str, Any]] = []
        self._abandoned = False
        self._device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self._device), 0)
        context = Pointer()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self.call("cuCtxSetCurrent", context)

    def __enter__(self) -> CudaDriver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._abandoned:  # each of these would wait for the kernel; the driver frees what a process has when it ends
            return
        for function, handle in reversed(self._at_exit):
            getattr(self._library, function)(handle)
        self._library.cuDevicePrimaryCtxRelease_v2(self._device)

    def at_exit(self, function: str, handle: Any) -> None:
        """Have something undone at the end, before what was made earlier."""
        self._at_exit.append((function, handle))

    def about(self) -> dict[str, str]:
        """What the driver says of itself: the device's name and compute capability, and the driver's version of CUDA."""
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), self._device)
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = (self._attribute(number) for number in CAPABILITY)
        return {
            "device": name.value.decode(errors="replace"),
            "driver": f"CUDA {version.value // 1000}.{version.value % 1000 // 10}",
            "compute_capability": f"{major}.{minor}",
        }

    def to_device(self, array: Array) -> int:
        """The address of a copy of an array."""
        pointer = Address()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(1, array.nbytes)))
        self.at_exit("cuMemFree_v2", pointer)
        if array.nbytes:
            self.call("cuMemcpyHtoD_v2", pointer, Pointer(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return pointer.value

    def to_host(self, address: int, like: Array) -> Array:
        """The array at an address, of the shape and type of another."""
        found = np.empty_like(like, order="C")
        if found.nbytes:
            self.call("cuMemcpyDtoH_v2", Pointer(found.ctypes.data), Address(address), ctypes.c_size_t(found.nbytes))
        return found

    def load(self, texts: Sequence[tuple[Path, bytes]]) -> Pointer:
        """The module of a PTX text, or of several that are linked."""
        module = Pointer()
        log = ctypes.create_string_buffer(MAX_LOG)
        options = (ctypes.c_int * 2)(LOG, LOG_BYTES)
        values = (Pointer * 2)(ctypes.addressof(log), MAX_LOG)
        try:
            if len(texts) == 1:
                self.call("cuModuleLoadDataEx", ctypes.byref(module), texts[0][1] + b"\0", 2, options, values)
            else:
                self._link(module, texts, options, values)
        except InputError as error:
            said = log.value.decode(errors="replace").strip()
            raise InputError(f"{error}: {said}" if said else str(error)) from None
        self.at_exit("cuModuleUnload", module)
        return module

    def launch(
        self,
        module: Pointer,
        kernel: str,
        shape: Shape,
        shared: int,
        cooperative: bool,
        params: list[bytes],
        timeout: float | None = None,
    ) -> None:
        """Launch a kernel, with the bytes of each of its parameters, and wait for it, ``timeout`` in seconds.

        Raises LaunchTimeout; the kernel runs on then, until the process ends.
        """
        function = Pointer()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        if shared:
            self.call("cuFuncSetAttribute", function, DYNAMIC_SHARED, ctypes.c_int(shared))
        held = [ctypes.create_string_buffer(data, max(1, len(data))) for data in params]
        table = (Pointer * max(1, len(held)))(*map(ctypes.addressof, held))
        extents = [ctypes.c_uint(extent) for extent in (*shape.grid, *shape.block, shared)]
        if cooperative:
            self.call("cuLaunchCooperativeKernel", function, *extents, None, table)
        else:
            self.call("cuLaunchKernel", function, *extents, None, table, None)
        try:
            self._wait(kernel, None if timeout is None else time.monotonic() + timeout)
        except (LaunchTimeout, KeyboardInterrupt):
            self._abandoned = True
            raise
        self.call("cuCtxSynchronize")

    def _wait(self, kernel: str, deadline: float | None) -> None:
        pause = 0.0
        while self._function("cuStreamQuery")(None) == NOT_READY:
            if deadline is not None and time.monotonic() >= deadline:
                raise LaunchTimeout(f"kernel `{plain_name(kernel)}` did not end in time on the GPU")
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, pause + 0.001)

    def _link(self, module: Pointer, texts: Sequence[tuple[Path, bytes]], options: Any, values: Any) -> None:
        state, image, size = Pointer(), Pointer(), ctypes.c_size_t()
        self.call("cuLinkCreate_v2", 2, options, values, ctypes.byref(state))
        try:
            for path, text in texts:
                length = ctypes.c_size_t(len(text) + 1)
                self.call("cuLinkAddData_v2", state, INPUT_PTX, text + b"\0", length, path.name.encode(), 0, None, None)
            self.call("cuLinkComplete", state, ctypes.byref(image), ctypes.byref(size))
            self.call("cuModuleLoadData", ctypes.byref(module), image)
        finally:
            self._library.cuLinkDestroy(state)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def _function(self, name: str) -> Any:
        try:
            return getattr(self._library, name)
        except AttributeError:
            raise InputError(f"{self._name} has no {name}: it is no CUDA driver, or one that is too old") from None

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function of the API; its failure is an InputError."""
        code = self._function(function)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise InputError(f"the CUDA driver: {function}: {(text.value or b'unknown error').decode()} ({code})")
