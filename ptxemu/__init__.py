"""Run NVIDIA PTX on the CPU.

>>> module = ptxemu.load("saxpy.ptx")
>>> module["saxpy"][grid, block](n, 2.0, x, y)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptxemu.process.gc_pause import importing_many
from ptxemu.text.version import VERSION

if TYPE_CHECKING:
    from ptxemu.api import Kernel, Module, load, loads
    from ptxemu.device.buffer import Buffer
    from ptxemu.device.device import Device, default_device
    from ptxemu.device.module_info import KernelInfo, ModuleInfo
    from ptxemu.device.stream import Event, Pending, Stream
    from ptxemu.device.surface import SurfacePolicy
    from ptxemu.device.surface_object import SurfaceObject
    from ptxemu.device.texture_object import SamplerObject, TextureObject
    from ptxemu.driver.front import lint
    from ptxemu.text.errors import (
        Diagnostic,
        DtypeWarning,
        Error,
        Fault,
        FaultRecord,
        InputError,
        InternalError,
        LaunchTimeout,
        PtxError,
        UnsupportedError,
    )
    from ptxemu.text.source import Location

__version__ = VERSION

__all__ = [
    "Buffer",
    "Device",
    "Diagnostic",
    "DtypeWarning",
    "Error",
    "Event",
    "Fault",
    "FaultRecord",
    "InputError",
    "InternalError",
    "Kernel",
    "KernelInfo",
    "LaunchTimeout",
    "Location",
    "Module",
    "ModuleInfo",
    "Pending",
    "PtxError",
    "SamplerObject",
    "Stream",
    "SurfaceObject",
    "SurfacePolicy",
    "TextureObject",
    "UnsupportedError",
    "default_device",
    "lint",
    "load",
    "loads",
]

_HOMES = {
    "api": ("Kernel", "Module", "load", "loads"),
    "device.buffer": ("Buffer",),
    "device.device": ("Device", "default_device"),
    "device.module_info": ("KernelInfo", "ModuleInfo"),
    "device.stream": ("Event", "Pending", "Stream"),
    "driver.front": ("lint",),
    "text.errors": (
        "Diagnostic",
        "DtypeWarning",
        "Error",
        "Fault",
        "FaultRecord",
        "InputError",
        "InternalError",
        "LaunchTimeout",
        "PtxError",
        "UnsupportedError",
    ),
    "text.source": ("Location",),
    "device.surface": ("SurfacePolicy",),
    "device.surface_object": ("SurfaceObject",),
    "device.texture_object": ("SamplerObject", "TextureObject"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: checking PTX needs neither LLVM nor NumPy, which take long to load."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ptxemu' has no attribute {name!r}")
    with importing_many():
        value = getattr(import_module(f"ptxemu.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext ptxemu`` in a notebook: the cell magics ``%%ptx`` and ``%%cuda``."""
    from ptxemu.notebook import Magics

    Magics(shell)
