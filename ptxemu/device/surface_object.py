"""Surface objects: what CUDA calls ``cudaSurfaceObject_t``, a surface together with its handle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ptxemu.device.handle import HandleObject
from ptxemu.device.picture import png_of
from ptxemu.device.surface import Surface, SurfaceTable
from ptxemu.ir.geometry import SURFACES
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ptxemu.process.numpy import Array


def extents_of(shape: tuple[int, ...], geometry: str) -> dict[str, int]:
    """The extents that an array shape gives a surface; a last axis beyond those of the geometry holds components."""
    known = SURFACES.get(geometry) if isinstance(geometry, str) else None
    if known is None:
        raise InputError(f"no surface geometry is named {shown(geometry)}; there are {', '.join(SURFACES)}")
    axes = known.extents
    if len(shape) not in (len(axes), len(axes) + 1):
        wanted = f"{', '.join(axes)} (and components)"
        raise InputError(f"a {geometry} surface has the axes {wanted}, not shape {list(shape)}")
    return dict(zip(axes, shape, strict=False))


class TexelObject(HandleObject, ABC):
    """An object over the memory of a surface, whose texels NumPy can have as an array."""

    @property
    @abstractmethod
    def surface(self) -> Surface:
        """The texels' memory."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.surface.format.dtype

    @abstractmethod
    def copy_to_host(self, level: int = 0) -> Array:
        """The texels of a level as an array, components in memory order."""

    def _repr_png_(self) -> bytes | None:
        """The picture that a notebook shows: level 0, if it has two dimensions and is not closed."""
        surface = self.surface
        if surface.geometry != "2d" or surface.format.packed:
            return None
        try:
            return png_of(self.copy_to_host(), swapped=surface.format.order == "BGRA")
        except InputError:
            return None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """For NumPy: a copy of the texels of level 0, since their memory is not in the order of an array."""
        if copy is False:
            raise ValueError("the texels cannot be an array without a copy")
        return np.asarray(self.copy_to_host(), dtype)


class SurfaceObject(TexelObject):
    """A surface that kernels reach by its 64-bit ``handle``, or through a ``.surfref`` that it is bound to.

    Its memory is freed with the last reference to it.
    """

    def __init__(self, surface: Surface, table: SurfaceTable) -> None:
        super().__init__(table, surface)
        self._surface = surface

    @property
    def surface(self) -> Surface:
        return self._surface

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array form: layers, depth, height, width, components, of those that the surface has."""
        return self.surface.shape()

    def copy_to_host(self, level: int = 0) -> Array:
        """The texels as an array, components in memory order."""
        return self.surface.download(level)

    def copy_from_host(self, array: Array, level: int = 0) -> None:
        """Replace the texels."""
        self.surface.upload(array, level)

    def close(self) -> None:
        """Retire the handle and free the memory."""
        super().close()
        self.surface.close()

    def __repr__(self) -> str:
        return f"SurfaceObject({self.surface.geometry} {self.surface.format} {list(self.shape)}, {self.surface.layout})"


def make_surface_object(
    table: SurfaceTable, arena: Any, data: object, format: str, geometry: str, layout: str, options: Mapping[str, Any]
) -> SurfaceObject:
    """A surface of an array's extents and contents, or of a shape and zeros."""
    array = data if isinstance(data, np.ndarray) else None
    shape = _shape(data) if array is None else array.shape
    extents: dict[str, Any] = extents_of(shape, geometry)
    surface = Surface(arena, format, **extents, geometry=geometry, layout=layout, **options)
    if array is not None:
        surface.upload(array)
    elif len(shape) > len(SURFACES[geometry].extents) and shape != surface.shape():
        raise InputError(f"a surface of {surface.format} has {surface.format.elements} components, not {shape[-1]}")
    return SurfaceObject(surface, table)


def _shape(data: object) -> tuple[int, ...]:
    items = tuple(data) if isinstance(data, tuple | list) else (data,)
    if not all(isinstance(item, int | np.integer) and item >= 1 for item in items):
        raise InputError(f"surface: expects a NumPy array or a shape of positive integers, not {shown(data)}")
    return tuple(int(item) for item in items)
