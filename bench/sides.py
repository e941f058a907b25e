"""Who runs the cases of the bench: ptxemu, and the same kernels in C."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cases import Array, Case, Surface, Texture, kernel_of

import ptxemu

KERNELS = Path(__file__).resolve().parent / "kernels"
CC = os.environ.get("CC", "gcc")
FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp"]
RELAXED = [
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math", "-ffinite-math-only",
]  # fmt: skip
"""What -ffast-math means for code. That flag itself makes the library change how the thread that loads it takes subnormals."""
PRECISE = {"mandelbrot"}
"""Kernels whose C must round as written: their results are compared bit by bit."""
FORMATS = {"f": "R32_FLOAT", "u": "R32_UINT"}


class Side(Protocol):
    """A case, ready to run: inputs copied, code compiled."""

    def run(self) -> None: ...

    def result(self, index: int) -> Array:
        """The contents of an argument."""
        ...


class Emulated:
    """The case on ptxemu."""

    def __init__(self, name: str, case: Case, device: ptxemu.Device) -> None:
        self._items = [self._item(device, argument) for argument in case.arguments]
        kernel = kernel_of(name)
        module = ptxemu.load(KERNELS / f"{kernel}.ptx", device=device, tier="best")
        self._launcher = module[kernel][case.grid, case.block]
        self._shared = case.shared

    @staticmethod
    def _item(device: ptxemu.Device, argument: Any) -> Any:
        if isinstance(argument, Texture):
            return device.texture(argument.array, format="R32_FLOAT", filter="linear", address="clamp", normalized=False)
        if isinstance(argument, Surface):
            array = argument.array
            return device.surface(array, format=FORMATS[array.dtype.kind], geometry=f"{array.ndim}d")
        return device.to_device(argument) if isinstance(argument, np.ndarray) else argument

    def run(self) -> None:
        self._launcher(*self._items, shared=self._shared)

    def result(self, index: int) -> Array:
        found: Array = self._items[index].copy_to_host()
        return found


class Native:
    """The case in C, with a thread for each CPU."""

    def __init__(self, name: str, case: Case, folder: Path) -> None:
        kernel = kernel_of(name)
        library = folder / f"{kernel}.so"
        rounding = ["-ffp-contract=off"] if kernel in PRECISE else RELAXED
        source = str(KERNELS / f"{kernel}.c")
        subprocess.run([CC, *FLAGS, *rounding, "-shared", "-fPIC", source, "-o", str(library), "-lm"], check=True)
        self._function = getattr(ctypes.CDLL(str(library)), kernel)
        self._function.restype = None
        self._arrays = [self._array(argument) for argument in case.arguments]
        own = [
            argument if array is None else array.ctypes.data_as(ctypes.c_void_p)
            for argument, array in zip(case.arguments, self._arrays, strict=True)
        ]
        self._values = [ctypes.c_float(value) if isinstance(value, float) else value for value in [*case.extent, *own]]

    @staticmethod
    def _array(argument: Any) -> Array | None:
        """A copy of its contents, which the function may write."""
        array = argument.array if isinstance(argument, Surface) else argument
        return array.copy() if isinstance(array, np.ndarray) else None

    def run(self) -> None:
        self._function(*self._values)

    def result(self, index: int) -> Array:
        found = self._arrays[index]
        assert found is not None
        return found
