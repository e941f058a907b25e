"""Textures and samplers: how texels of a surface's memory are read, and the table that gives them handles.

The semantics live in the C runtime (``csrc/texture*``) and in docs/semantics.md; this module creates what it works on.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ptxemu._runtime import ffi, lib
from ptxemu.device.handle_slots import Slots
from ptxemu.device.surface import Surface
from ptxemu.ir.geometry import GEOMETRIES
from ptxemu.process.locks import new_lock
from ptxemu.text.errors import InputError, shown

ADDRESS_MODES: dict[str, int] = {
    "wrap": lib.PE_ADDRESS_WRAP,
    "clamp": lib.PE_ADDRESS_CLAMP,
    "mirror": lib.PE_ADDRESS_MIRROR,
    "border": lib.PE_ADDRESS_BORDER,
}
FILTERS: dict[str, int] = {"point": lib.PE_FILTER_POINT, "linear": lib.PE_FILTER_LINEAR}
READ_MODES = ("element", "normalized_float")


class SamplerState(Struct, frozen=True):
    """How coordinates become texels (CUDA's ``cudaTextureDesc``).

    ``address`` is one mode for all axes or a sequence of up to three, of which the last one is that of the others, too; a
    texture's axes that are not there have ``clamp`` unless the sequence names them.  ``wrap`` and ``mirror`` need normalized
    coordinates and mean ``clamp`` without.  ``border`` is the colour outside in mode ``border``.  ``max_anisotropy`` is
    up to 16; fetches that depend on one above 1, those with gradients or of one of several levels, are faults.
    """

    filter: str = "point"
    address: str | Sequence[str] = "clamp"
    normalized: bool = False
    mip_filter: str = "point"
    mip_bias: float = 0.0
    min_level: float = 0.0
    max_level: float = 15.0
    border: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    seamless: bool = False
    max_anisotropy: int = 0

    def fill(self, target: Any, axes: int = 3) -> None:
        """Write the state into a ``pe_sampler`` for textures with so many axes."""
        target.address = self._addresses(axes)
        target.filter = _choice(FILTERS, self.filter, "filter")
        target.mip_filter = _choice(FILTERS, self.mip_filter, "mip filter")
        target.normalized, target.seamless = bool(self.normalized), bool(self.seamless)
        target.anisotropy = _anisotropy(self.max_anisotropy)
        target.bias = _finite("mip_bias", self.mip_bias)
        target.min_level, target.max_level = _finite("min_level", self.min_level), _finite("max_level", self.max_level)
        if len(self.border) != 4:
            raise InputError(f"border must be four numbers, not {shown(self.border)}")
        target.border = [float(value) for value in self.border]

    def _addresses(self, axes: int) -> list[int]:
        modes = [self.address] if isinstance(self.address, str) else list(self.address)
        if not 1 <= len(modes) <= 3:
            raise InputError(f"address must be one to three modes, not {shown(self.address)}")
        modes += modes[-1:] * (axes - len(modes))
        modes += ["clamp"] * (3 - len(modes))
        return [_choice(ADDRESS_MODES, mode, "address mode") for mode in modes]


class Texture:
    """A surface's memory read through a sampler.

    ``geometry`` is that of the surface unless ``samples`` tells a multi-sample texture (``2dms``, ``a2dms``).
    ``read_mode`` is ``element`` or ``normalized_float`` (8- and 16-bit integers scaled to [0, 1] or [-1, 1]); by
    default UNORM and SNORM formats are scaled, the others not.
    """

    def __init__(
        self,
        surface: Surface,
        state: SamplerState,
        *,
        geometry: str | None = None,
        samples: int = 1,
        read_mode: str | None = None,
        srgb: bool = False,
    ) -> None:
        self.surface, self.state = surface, state
        self.geometry = geometry or surface.geometry
        if self.geometry not in GEOMETRIES:
            raise InputError(f"no texture geometry is named {shown(self.geometry)}; there are {', '.join(GEOMETRIES)}")
        self.descriptor = ffi.new("pe_texture *")
        target = self.descriptor
        target.state = lib.PE_TEXTURE_IMAGE
        target.geom = getattr(lib, GEOMETRIES[self.geometry].constant)
        target.kind = getattr(lib, f"PE_KIND_{_kind_read(surface.format.kind, read_mode)}")
        target.srgb, target.samples = bool(srgb), samples
        target.memory = surface.descriptor[0]
        state.fill(target.sampler, GEOMETRIES[self.geometry].axes)
        if self.reads_integers and any(state.border):
            raise InputError("a border colour needs texels that read as floats")
        _check(lib.pe_texture_check(target), f"{self.geometry} texture of {surface.format}")

    @property
    def reads_integers(self) -> bool:
        """Whether texels read as the integers that they are, and not as fractions or floats."""
        return self.descriptor.kind in (lib.PE_KIND_UINT, lib.PE_KIND_SINT)


class Sampler:
    """A sampler alone, for modules with ``.target texmode_independent``."""

    def __init__(self, state: SamplerState) -> None:
        self.state = state
        self.descriptor = ffi.new("pe_texture *", {"state": lib.PE_TEXTURE_SAMPLER})
        state.fill(self.descriptor.sampler)
        _check(lib.pe_texture_check(self.descriptor), "sampler")


class TextureTable:
    """Handles of textures and samplers (:mod:`ptxemu.device.handle_slots`).  Change one only while no launch uses it."""

    def __init__(self) -> None:
        pointer = lib.pe_texture_table_new()
        if not pointer:
            raise InputError("out of memory for the texture table")
        self.pointer = pointer
        self._finalizer = weakref.finalize(self, lib.pe_texture_table_free, pointer)
        self._lock = new_lock()
        self._slots = Slots("texture", pointer)
        self._bound: dict[int, Texture | Sampler] = {}  # keeps the memory of live slots

    def add(self, item: Texture | Sampler) -> int:
        """A handle for a texture or sampler."""
        with self._lock:
            handle = self._slots.take(1)
        self.bind(handle, item)
        return handle

    def bind(self, handle: int, item: Texture | Sampler, index: int = 0) -> None:
        """Make element ``index`` of a handle refer to a texture or sampler."""
        if isinstance(item, Texture):
            item.surface.require_memory()
        with self._lock:
            slot = self._slots.slot(handle, index)
            self._set(slot, handle, item.descriptor)
            self._bound[slot] = item

    def remove(self, handle: int) -> None:
        """Retire a handle: further fetches through it fault."""
        with self._lock:
            for slot in self._slots.release(handle):
                self._bound.pop(slot, None)

    def _set(self, slot: int, handle: int, descriptor: Any) -> None:
        if lib.pe_texture_table_set(self.pointer, slot, handle >> 32, descriptor):
            raise InputError("out of memory for the texture table")


def with_options(state: SamplerState, options: Mapping[str, Any]) -> tuple[SamplerState, dict[str, Any]]:
    """The state with the fields among ``options``, and the other options."""
    names = SamplerState.__struct_fields__
    chosen = {key: value for key, value in options.items() if key in names}
    return replace(state, **chosen), {key: value for key, value in options.items() if key not in names}


def _kind_read(stored: str, read_mode: str | None) -> str:
    if read_mode is not None and read_mode not in READ_MODES:
        raise InputError(f"no read mode is named {shown(read_mode)}; there are {', '.join(READ_MODES)}")
    if read_mode is None:
        return stored
    if read_mode == "element":
        return stored.replace("UNORM", "UINT").replace("SNORM", "SINT")
    return {"UINT": "UNORM", "SINT": "SNORM"}.get(stored, stored)


def _choice(table: Mapping[str, int], name: str, what: str) -> int:
    try:
        return table[name]
    except (KeyError, TypeError):
        raise InputError(f"no {what} is named {shown(name)}; there are {', '.join(table)}") from None


def _finite(name: str, value: float) -> float:
    if not isinstance(value, int | float) or not abs(value) <= 1024:
        raise InputError(f"{name} {shown(value)} is out of range")
    return float(value)


def _anisotropy(value: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise InputError(f"max_anisotropy must be a whole number, not {shown(value)}")
    return value


def _check(message: Any, what: str) -> None:
    if message:
        raise InputError(f"{what}: {ffi.string(message).decode()}")
