"""The device memory of a case: its buffers, surfaces, textures and samplers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from ptxemu.case.arguments import Name, StructSpec
from ptxemu.case.arrays import Array
from ptxemu.case.images import ConstantSpec, RegisterSpec, SamplerSpec, SurfaceSpec, TextureSpec
from ptxemu.case.sources import Source
from ptxemu.device.buffer import Buffer
from ptxemu.device.device import Device
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.device.texture_object import SamplerObject, TextureObject
from ptxemu.dialects.registers import constants_of, surface_of
from ptxemu.ir.geometry import GEOMETRIES
from ptxemu.text.errors import InputError
from ptxemu.text.suggestions import closest


class Described(Protocol):
    """The arrays and images of a case, by name."""

    @property
    def buffers(self) -> Mapping[str, Source]: ...
    @property
    def surfaces(self) -> Mapping[str, SurfaceSpec | RegisterSpec]: ...
    @property
    def textures(self) -> Mapping[str, TextureSpec]: ...
    @property
    def samplers(self) -> Mapping[str, SamplerSpec]: ...


class Resources:
    """What the launches of a case work on. ``inputs`` holds the first contents by name, for a reference to see."""

    def __init__(self, case: Described, device: Device) -> None:
        self.device = device
        self.inputs: dict[str, Any] = {}
        self.hosts = {name: spec.make() for name, spec in case.buffers.items()}
        self.buffers: dict[str, Buffer] = {}
        self.surfaces = {name: self._surface(name, spec) for name, spec in case.surfaces.items()}
        textures = {name: self._texture(name, spec) for name, spec in case.textures.items()}
        samplers = {name: self._sampler(spec) for name, spec in case.samplers.items()}
        self.handles: dict[str, SurfaceObject | TextureObject | SamplerObject] = {**self.surfaces, **textures, **samplers}
        self.inputs.update(self.hosts)

    def value(self, argument: Name | StructSpec | bytes | int | float, by_value: bool) -> object:
        """What a kernel gets: for a name a handle, a buffer, or ``by_value`` the array itself."""
        if isinstance(argument, StructSpec):
            return argument.resolved(self._referred)
        if not isinstance(argument, Name):
            return argument
        return self.hosts[argument.name] if by_value and argument.name in self.hosts else self._referred(argument.name)

    def _referred(self, name: str) -> object:
        """The handle or the buffer that is called so."""
        return self.handles[name] if name in self.handles else self.buffer(name)

    def buffer(self, name: str) -> Buffer:
        """The device's copy of an array."""
        if name not in self.buffers:
            self.buffers[name] = self.device.to_device(self.hosts[name], name)
        return self.buffers[name]

    def arrays(self) -> dict[str, Array]:
        """The contents of every buffer and surface now."""
        found = {name: buffer.copy_to_host() for name, buffer in self.buffers.items()}
        found.update({name: surface.copy_to_host() for name, surface in self.surfaces.items()})
        return {**self.hosts, **found}

    def _surface(self, name: str, spec: SurfaceSpec | RegisterSpec) -> SurfaceObject:
        surface = self._described(spec) if isinstance(spec, RegisterSpec) else self._own(name, spec)
        self.inputs[name] = surface.copy_to_host()
        return surface

    def constants(self, spec: ConstantSpec) -> Buffer:
        """The constants that registers describe in a buffer."""
        with _placed(spec.where):
            return constants_of(self._memory(spec.memory), *spec.words, kind=spec.kind)

    def _described(self, spec: RegisterSpec) -> SurfaceObject:
        with _placed(spec.where):
            base, format, height = spec.words
            return surface_of(self.device, self._memory(spec.memory), base, format, height, **spec.options)

    def _memory(self, name: str) -> Buffer:
        if name not in self.hosts:
            raise InputError(f"there is no array '{name}'{closest(name, self.hosts)}")
        return self.buffer(name)

    def _own(self, name: str, spec: SurfaceSpec) -> SurfaceObject:
        data: object = spec.data.make() if spec.data is not None else _shape(spec, "surface", _extents(spec.geometry))
        with _placed(spec.where):
            return self.device.surface(
                data, format=spec.format, geometry=spec.geometry, layout=spec.layout, name=name, **spec.options
            )

    def _texture(self, name: str, spec: TextureSpec) -> TextureObject:
        with _placed(spec.where):
            texture = self.device.texture(self._texels(spec), format=spec.format, geometry=spec.geometry, **spec.options)
        levels = [texture.copy_to_host(level) for level in range(texture.surface.descriptor.levels)]
        self.inputs[name] = levels if len(levels) > 1 else levels[0]
        return texture

    def _texels(self, spec: TextureSpec) -> object:
        if isinstance(spec.data, str):
            return self.surfaces[spec.data] if spec.data in self.surfaces else self._memory(spec.data)
        made = [item.make() for item in spec.data]
        if made:
            return made if len(made) > 1 else made[0]
        return _shape(spec, "texture", _extents(spec.geometry or "2d"))

    def _sampler(self, spec: SamplerSpec) -> SamplerObject:
        with _placed(spec.where):
            return self.device.sampler(**spec.options)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Say where in the case an error of input is."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _extents(geometry: str) -> tuple[str, ...]:
    """The axes of an array of texels; none for an unknown geometry, which is reported elsewhere."""
    return GEOMETRIES[geometry].extents if geometry in GEOMETRIES else ()


def _shape(spec: SurfaceSpec | TextureSpec, kind: str, axes: tuple[str, ...]) -> tuple[int, ...]:
    for key in spec.extents:
        if axes and key not in axes:
            raise InputError(f"{spec.where}: {key}: a {spec.geometry or '2d'} {kind} has {', '.join(axes)} only")
    return tuple(spec.extents.get(axis, 1) for axis in axes)
