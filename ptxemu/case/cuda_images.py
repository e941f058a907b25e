"""Surfaces and textures of a case on a GPU: CUDA arrays, and the objects and references over them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ptxemu.case.arrays import Array
from ptxemu.case.cuda_driver import Address, CudaDriver, Pointer
from ptxemu.device.handle import HandleObject
from ptxemu.device.surface import Surface
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.device.texture import ADDRESS_MODES, Texture
from ptxemu.device.texture_object import TextureObject
from ptxemu.ir.geometry import GEOMETRIES
from ptxemu.text.errors import InputError

LAYERED, SURFACE, CUBE = 1, 2, 4  # CUDA_ARRAY3D_*
HOST, ARRAY = 1, 3  # CUmemorytype
PLAIN, MIPMAPPED = 0, 1  # CUresourcetype
AS_INTEGERS, NORMALIZED, SRGB, SEAMLESS = 1, 2, 16, 64  # CU_TRSF_*
FORMAT_OF_ARRAY = 1  # CU_TRSA_OVERRIDE_FORMAT
FORMATS = {"u1": 1, "u2": 2, "u4": 3, "i1": 8, "i2": 9, "i4": 10, "f2": 16, "f4": 32}  # CUarray_format
ADDRESSES = {ADDRESS_MODES[name]: number for number, name in enumerate(("wrap", "clamp", "mirror", "border"))}  # CUaddress_mode
FLAGS = {"a1d": LAYERED, "a2d": LAYERED, "cube": CUBE, "acube": CUBE | LAYERED}
Size = ctypes.c_size_t


class ArrayDescription(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR"""

    _fields_ = (
        *(("width", Size), ("height", Size), ("depth", Size)),
        *(("format", ctypes.c_int), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)),
    )


def _side(side: str) -> list[tuple[str, Any]]:
    """Where a copy comes from or goes to, in CUDA_MEMCPY3D."""
    place = [("kind", ctypes.c_int), ("host", Pointer), ("device", Address), ("array", Pointer), ("reserved", Pointer)]
    fields = [*((name, Size) for name in ("x", "y", "z", "level")), *place, ("pitch", Size), ("rows", Size)]
    return [(f"{side}_{name}", kind) for name, kind in fields]


class Copy(ctypes.Structure):
    """CUDA_MEMCPY3D"""

    _fields_ = (*_side("src"), *_side("dst"), ("width", Size), ("height", Size), ("depth", Size))


class Resource(ctypes.Structure):
    """CUDA_RESOURCE_DESC of an array"""

    _fields_ = (("kind", ctypes.c_int), ("array", Pointer), ("rest", ctypes.c_uint64 * 15), ("flags", ctypes.c_uint))


class Reading(ctypes.Structure):
    """CUDA_TEXTURE_DESC"""

    _fields_ = (
        *(("address", ctypes.c_int * 3), ("filter", ctypes.c_int), ("flags", ctypes.c_uint), ("anisotropy", ctypes.c_uint)),
        *(("mip_filter", ctypes.c_int), ("bias", ctypes.c_float), ("least", ctypes.c_float), ("most", ctypes.c_float)),
        *(("border", ctypes.c_float * 4), ("reserved", ctypes.c_int * 12)),
    )


class CudaImages:
    """The surfaces and textures of a case, each made when it is first asked for.

    Raises InputError for what CUDA has no form of: samplers by themselves, multisampled textures, formats that are no plain
    numbers, textures over buffers.
    """

    def __init__(self, driver: CudaDriver, items: dict[str, HandleObject]) -> None:
        self._driver, self._items = driver, items
        self._arrays: dict[int, Pointer] = {}
        self._handles: dict[str, int] = {}

    def handle(self, name: str) -> int:
        """The object that a kernel is given."""
        if name not in self._handles:
            item, handle = self._items[name], ctypes.c_uint64()
            resource = self._resource(name)
            if isinstance(item, TextureObject):
                reading = ctypes.byref(_reading(item.texture))
                self._driver.call("cuTexObjectCreate", ctypes.byref(handle), ctypes.byref(resource), reading, None)
                self._driver.at_exit("cuTexObjectDestroy", handle)
            else:
                self._driver.call("cuSurfObjectCreate", ctypes.byref(handle), ctypes.byref(resource))
                self._driver.at_exit("cuSurfObjectDestroy", handle)
            self._handles[name] = handle.value
        return self._handles[name]

    def bind(self, module: Pointer, variable: str, name: str) -> None:
        """Bind a variable of a module, a ``.surfref`` or ``.texref``."""
        resource, item, reference = self._resource(name), self._items[name], Pointer()
        if isinstance(item, SurfaceObject):
            self._driver.call("cuModuleGetSurfRef", ctypes.byref(reference), module, variable.encode())
            self._driver.call("cuSurfRefSetArray", reference, Pointer(resource.array), 0)
            return
        assert isinstance(item, TextureObject)
        if resource.kind == MIPMAPPED:
            raise InputError(f"{name}: has mip levels, which a .texref cannot be given here: pass it as an argument")
        self._driver.call("cuModuleGetTexRef", ctypes.byref(reference), module, variable.encode())
        self._driver.call("cuTexRefSetArray", reference, Pointer(resource.array), FORMAT_OF_ARRAY)
        reading = _reading(item.texture)
        for axis, mode in enumerate(reading.address):
            self._driver.call("cuTexRefSetAddressMode", reference, axis, mode)
        self._driver.call("cuTexRefSetFilterMode", reference, reading.filter)
        self._driver.call("cuTexRefSetBorderColor", reference, reading.border)
        self._driver.call("cuTexRefSetFlags", reference, reading.flags)

    def arrays(self) -> dict[str, Array]:
        """The texels of all surfaces now."""
        surfaces = {name: item for name, item in self._items.items() if isinstance(item, SurfaceObject)}
        return {name: self._texels(item) for name, item in surfaces.items()}

    def _texels(self, item: SurfaceObject) -> Array:
        array = self._arrays.get(id(item.surface))
        if array is None:
            return item.copy_to_host()
        found = np.empty(item.shape, item.dtype)
        self._copy(item.surface, array, found, to_array=False)
        return found

    def _resource(self, name: str) -> Resource:
        item = self._items[name]
        if not isinstance(item, SurfaceObject | TextureObject):
            raise InputError(f"{name}: is a sampler by itself, which CUDA does not have")
        surface = item.surface
        kind = MIPMAPPED if surface.levels > 1 else PLAIN
        if id(surface) not in self._arrays:
            description = _description(name, item)
            make = self._mipmapped if kind == MIPMAPPED else self._plain
            self._arrays[id(surface)] = make(surface, description)
        return Resource(kind=kind, array=self._arrays[id(surface)].value)

    def _plain(self, surface: Surface, description: ArrayDescription) -> Pointer:
        array = Pointer()
        self._driver.call("cuArray3DCreate_v2", ctypes.byref(array), ctypes.byref(description))
        self._driver.at_exit("cuArrayDestroy", array)
        self._copy(surface, array, np.ascontiguousarray(surface.download()), to_array=True)
        return array

    def _mipmapped(self, surface: Surface, description: ArrayDescription) -> Pointer:
        levels, array = Pointer(), Pointer()
        self._driver.call("cuMipmappedArrayCreate", ctypes.byref(levels), ctypes.byref(description), surface.levels)
        self._driver.at_exit("cuMipmappedArrayDestroy", levels)
        for level in range(surface.levels):
            self._driver.call("cuMipmappedArrayGetLevel", ctypes.byref(array), levels, level)
            self._copy(surface, array, np.ascontiguousarray(surface.download(level)), to_array=True)
        return levels

    def _copy(self, surface: Surface, array: Pointer, host: Array, *, to_array: bool) -> None:
        """Copy all texels of a level between a CUDA array and a NumPy array of its shape."""
        width, height, depth = (max(1, extent) for extent in _extents(surface.geometry, host.shape))
        pitch = width * surface.format.texel_bytes
        there, here = ("dst", "src") if to_array else ("src", "dst")
        fields: dict[str, Any] = {f"{there}_kind": ARRAY, f"{there}_array": array.value, f"{here}_kind": HOST}
        fields |= {f"{here}_host": host.ctypes.data, f"{here}_pitch": pitch, f"{here}_rows": height}
        self._driver.call("cuMemcpy3D_v2", ctypes.byref(Copy(width=pitch, height=height, depth=depth, **fields)))


def _extents(geometry: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Width, height and depth or layers as CUDA counts them: 0 where there is none."""
    known = dict(zip(GEOMETRIES[geometry].extents, shape, strict=False))
    return known["width"], known.get("height", 0), known.get("depth", known.get("layers", 0))


def _description(name: str, item: SurfaceObject | TextureObject) -> ArrayDescription:
    surface, texels = item.surface, item.surface.format
    geometry = item.texture.geometry if isinstance(item, TextureObject) else surface.geometry
    if surface.geometry == "1d_buffer" or GEOMETRIES[geometry].multisampled:
        raise InputError(f"{name}: is {geometry}, which cannot be given to a GPU")
    if texels.packed or texels.order not in ("R", "RG", "RGBA"):
        raise InputError(f"{name}: is {texels}, which arrays of CUDA do not have")
    width, height, depth = _extents(surface.geometry, surface.shape())
    flags = FLAGS.get(surface.geometry, 0) | SURFACE
    kind = f"{texels.dtype.kind}{texels.dtype.itemsize}"
    return ArrayDescription(width, height, depth, FORMATS[kind], texels.components, flags)


def _reading(texture: Texture) -> Reading:
    sampler, flags = texture.descriptor.sampler, 0
    if texture.reads_integers:
        flags |= AS_INTEGERS
    flags |= NORMALIZED * sampler.normalized | SRGB * texture.descriptor.srgb | SEAMLESS * sampler.seamless
    return Reading(
        address=tuple(ADDRESSES[mode] for mode in sampler.address),
        filter=sampler.filter,
        flags=flags,
        anisotropy=sampler.anisotropy,
        mip_filter=sampler.mip_filter,
        bias=sampler.bias,
        least=sampler.min_level,
        most=sampler.max_level,
        border=tuple(sampler.border),
    )
