"""Run NVIDIA PTX on the CPU.

>>> module = ptxemu.load("saxpy.ptx")
>>> module["saxpy"][grid, block](n, 2.0, x, y)
"""

from ptxemu.api import Kernel, Module, lint, load, loads
from ptxemu.buffer import Buffer
from ptxemu.device import Device, default_device
from ptxemu.errors import (
    Diagnostic,
    Error,
    Fault,
    InputError,
    InternalError,
    LaunchTimeout,
    PtxError,
    UnsupportedError,
)
from ptxemu.surface import SurfacePolicy
from ptxemu.surface_object import SurfaceObject

__version__ = "0.1.0"

__all__ = [
    "Buffer",
    "Device",
    "Diagnostic",
    "Error",
    "Fault",
    "InputError",
    "InternalError",
    "Kernel",
    "LaunchTimeout",
    "Module",
    "PtxError",
    "SurfaceObject",
    "SurfacePolicy",
    "UnsupportedError",
    "default_device",
    "lint",
    "load",
    "loads",
]
