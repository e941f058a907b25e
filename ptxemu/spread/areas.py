"""The memory that the launches of a case share, in areas: arrays, variables of the program, texels of surfaces and textures."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxemu._runtime import ffi, lib
from ptxemu.case.runner import CaseRun
from ptxemu.device.buffer import Buffer
from ptxemu.device.module_info import GLOBAL
from ptxemu.device.surface import Surface
from ptxemu.device.surface_object import TexelObject
from ptxemu.ir.geometry import SURFACES
from ptxemu.spread.updates import IN_MEMORY, IN_SIGNED_TEXELS, IN_TEXELS, NOWHERE, UPDATES

Bytes = NDArray[np.uint8]
LONGEST = max(update.dtype.itemsize for update in UPDATES)
COORDINATES = {"width": "x", "height": "y", "depth": "z", "layers": "layer"}


class Area(Struct, frozen=True):
    """``bytes`` are the memory itself, ``surface`` the texels that lie there. What is ``fixed`` kernels only read."""

    name: str
    bytes: Bytes
    surface: Surface | None = None
    fixed: bool = False

    @property
    def codes(self) -> Bytes:
        """What the codes of updates, as instructions state them, mean here."""
        if self.surface is None:
            return IN_MEMORY
        if self.surface.descriptor.pitch_align % LONGEST:
            return NOWHERE  # words may lie across others
        return IN_SIGNED_TEXELS if self.surface.format.kind == "SINT" else IN_TEXELS

    def place(self, at: int) -> str:
        """What lies at a byte, in words."""
        texel = None if self.surface is None else _texel_at(self.surface, at)
        return f"{texel or f'byte {at}'} of {self.name}"


def areas_of(run: CaseRun) -> dict[str, Area]:
    """The areas of a case, by name; variables of the program, which may be called as its arrays are, have names of their own."""
    resources, info = run.resources, run.module.info
    variables = [item.name for item in info.variables.values() if item.space == GLOBAL]
    found = [Area(name, _bytes_of(resources.buffer(name))) for name in resources.hosts]
    found += [Area(f".global {name}", _bytes_of(run.module.get_global(name))) for name in variables]
    known: set[Surface] = set()
    for name, item in resources.handles.items():
        if isinstance(item, TexelObject) and item.surface.owns_memory and item.surface not in known:
            texels = resources.device.arena.view(item.surface.address, item.surface.total_bytes)
            found.append(Area(name, texels, item.surface, fixed=name not in resources.surfaces))
            known.add(item.surface)
    return {area.name: area for area in found if area.bytes.size}


def _bytes_of(buffer: Buffer) -> Bytes:
    return buffer.array.reshape(-1).view(np.uint8)


def _texel_at(surface: Surface, at: int) -> str | None:
    """The texel at a byte of a surface's memory, None for padding: the one that is set if that byte alone is."""
    memory = np.zeros(surface.total_bytes, np.uint8)
    memory[at] = 1
    marked = ffi.new("pe_surface_desc *", surface.descriptor[0])
    marked.base = ffi.from_buffer("uint8_t[]", memory)
    axes = SURFACES[surface.geometry].extents
    for level in range(surface.levels):
        extents = surface.shape(level)[: len(axes)]
        texels = np.zeros((*extents, surface.format.texel_bytes), np.uint8)
        lib.pe_surface_download(marked, level, ffi.from_buffer(texels, require_writable=True))
        for *index, _ in np.argwhere(texels).tolist():
            return "texel " + _coordinates(axes, index) + (f", level={level}" if surface.levels > 1 else "")
    return None


def _coordinates(axes: tuple[str, ...], index: list[int]) -> str:
    named = {COORDINATES[axis]: value for axis, value in zip(axes, index, strict=True)}
    return ", ".join(f"{name}={named[name]}" for name in COORDINATES.values() if name in named)
