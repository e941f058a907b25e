"""Texture and sampler objects: what CUDA calls ``cudaTextureObject_t``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ptxemu.device.buffer import Buffer, as_array
from ptxemu.device.handle import HandleObject
from ptxemu.device.surface import Surface, surface_format
from ptxemu.device.surface_object import SurfaceObject, TexelObject
from ptxemu.device.texture import Sampler, SamplerState, Texture, TextureTable, with_options
from ptxemu.ir.geometry import GEOMETRIES
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from ptxemu.process.numpy import Array


COMPONENTS = {1: "R", 2: "RG", 4: "RGBA"}


class TextureObject(TexelObject):
    """A texture that kernels reach by its 64-bit ``handle``, or through a ``.texref`` that it is bound to."""

    def __init__(self, texture: Texture, table: TextureTable, keeps: object = None) -> None:
        super().__init__(table, texture)
        self.texture = texture
        self._keeps = keeps

    @property
    def surface(self) -> Surface:
        """The texels' memory."""
        return self.texture.surface

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of level 0 as an array."""
        return self._shape(0)

    def copy_to_host(self, level: int = 0) -> Array:
        """The texels of a level, components in memory order."""
        return self.surface.download(level).reshape(self._shape(level))

    def copy_from_host(self, array: Array, level: int = 0) -> None:
        """Replace the texels of a level."""
        array = as_array(array)
        if array.shape == self._shape(level):
            array = array.reshape(self.surface.shape(level))
        self.surface.upload(array, level)

    def __repr__(self) -> str:
        state = self.texture.state
        return f"TextureObject({self.texture.geometry} {self.surface.format} {list(self.shape)}, {state.filter})"

    def _shape(self, level: int) -> tuple[int, ...]:
        shape, samples = self.surface.shape(level), int(self.texture.descriptor.samples)
        return (shape[0] // samples, samples, *shape[1:]) if self.texture.geometry == "a2dms" else shape


class SamplerObject(HandleObject):
    """A sampler that kernels reach by its 64-bit ``handle``, or through a ``.samplerref`` that it is bound to."""

    def __init__(self, state: SamplerState, table: TextureTable) -> None:
        self.sampler = Sampler(state)
        super().__init__(table, self.sampler)

    def __repr__(self) -> str:
        return f"SamplerObject({self.sampler.state})"


def make_texture_object(
    table: TextureTable, arena: Any, data: object, format: str | None, geometry: str | None, options: Mapping[str, Any]
) -> TextureObject:
    """A texture of an array (or several, one for each mip level), a shape, a buffer, or an existing surface."""
    state, rest = with_options(SamplerState(), options)
    reading = {key: rest.pop(key) for key in ("read_mode", "srgb") if key in rest}
    if isinstance(data, SurfaceObject):
        if format or rest:
            raise InputError("a texture of a surface has the surface's format and layout")
        return TextureObject(Texture(data.surface, state, geometry=geometry, **reading), table, data)
    geometry = geometry or "2d"
    mips = _mip_chain(data)
    if len(mips) > 1:
        rest.setdefault("levels", len(mips))
    surface, samples = _surface(arena, mips[0], format, geometry, rest)
    made = TextureObject(Texture(surface, state, geometry=geometry, samples=samples, **reading), table, data)
    for level, array in enumerate(mips):
        if isinstance(array, np.ndarray):
            made.copy_from_host(array, level)
    return made


def _surface(arena: Any, data: object, format: str | None, geometry: str, options: dict[str, Any]) -> tuple[Surface, int]:
    """Memory for an array or a shape, or that of a buffer; and how many samples a texel has."""
    known, shape = GEOMETRIES.get(geometry) if isinstance(geometry, str) else None, _shape(data)
    if known is None:
        raise InputError(f"no texture geometry is named {shown(geometry)}; there are {', '.join(GEOMETRIES)}")
    axes = known.extents
    if len(shape) not in (len(axes), len(axes) + 1):
        raise InputError(f"a {geometry} texture has the axes {', '.join(axes)} (and components), not shape {list(shape)}")
    extents: dict[str, Any] = dict(zip(axes, shape, strict=False))
    samples = extents.pop("samples", 1)
    if "samples" in axes:
        extents["layers"] = extents.get("layers", 1) * samples
        geometry = "a2d"
    if isinstance(data, Buffer):
        layout = "linear" if geometry in ("1d", "1d_buffer") else "pitch"
        options = {"layout": layout, "address": data.address, "size": data.nbytes, **options}
    chosen = surface_format(format or _format(data, shape[len(axes) :]))
    if len(shape) > len(axes) and shape[-1] != chosen.elements:
        raise InputError(f"a texture of {chosen} has {chosen.elements} components, not {shape[-1]}")
    return Surface(arena, chosen, **extents, geometry=geometry, **options), samples


def _mip_chain(data: object) -> list[object]:
    """Several arrays are mip levels."""
    items: list[object] = list(data) if isinstance(data, list | tuple) else []
    return items if items and all(isinstance(item, np.ndarray) for item in items) else [data]


def _shape(data: object) -> tuple[int, ...]:
    if isinstance(data, np.ndarray | Buffer):
        return data.shape
    items = tuple(data) if isinstance(data, tuple | list) else (data,)
    if not all(isinstance(item, int | np.integer) and item >= 1 for item in items):
        raise InputError(f"texture: expects NumPy arrays, a buffer, a surface or a shape of positive integers, not {shown(data)}")
    return tuple(int(item) for item in items)


def _format(data: object, components: tuple[int, ...]) -> str:
    """The format of an array's elements, read as they are."""
    if not isinstance(data, np.ndarray | Buffer):
        raise InputError("texture: a shape needs a format")
    count = components[0] if components else 1
    kind = {"u": "UINT", "i": "SINT", "f": "FLOAT"}.get(data.dtype.kind)
    if kind is None or count not in COMPONENTS:
        raise InputError(f"texture: no format has {count} components of {data.dtype}")
    return "".join(f"{letter}{data.dtype.itemsize * 8}" for letter in COMPONENTS[count]) + f"_{kind}"
