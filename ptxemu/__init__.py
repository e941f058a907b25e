"""Run NVIDIA PTX on the CPU.

>>> module = ptxemu.load("saxpy.ptx")
>>> module["saxpy"][grid, block](n, 2.0, x, y)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptxemu.locks import importing

if TYPE_CHECKING:
    from ptxemu.api import Kernel, Module, load, loads
    from ptxemu.buffer import Buffer
    from ptxemu.device import Device, default_device
    from ptxemu.diagnose import lint
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
    from ptxemu.texture_object import SamplerObject, TextureObject

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
    "SamplerObject",
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
    "buffer": ("Buffer",),
    "device": ("Device", "default_device"),
    "diagnose": ("lint",),
    "errors": ("Diagnostic", "Error", "Fault", "InputError", "InternalError", "LaunchTimeout", "PtxError", "UnsupportedError"),
    "surface": ("SurfacePolicy",),
    "surface_object": ("SurfaceObject",),
    "texture_object": ("SamplerObject", "TextureObject"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: checking PTX needs neither LLVM nor NumPy, which take long to load."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'ptxemu' has no attribute {name!r}")
    with importing:
        value = getattr(import_module(f"ptxemu.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
