"""Surfaces, textures and samplers in words, as options give them: ``@in.png:R8G8B8A8_UNORM``, ``zeros:64x64:R32_FLOAT:3d``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ptxemu.case.array_files import load_array
from ptxemu.case.arrays import Array
from ptxemu.case.images import SAMPLER_OPTIONS, SURFACE_OPTIONS, TEXTURE_OPTIONS, SamplerSpec, SurfaceSpec, TextureSpec
from ptxemu.cli.extents import parse_shape
from ptxemu.cli.values import parse_number
from ptxemu.device.surface import LAYOUTS
from ptxemu.device.surface_format import FORMATS
from ptxemu.device.texture import ADDRESS_MODES, FILTERS, READ_MODES
from ptxemu.ir.geometry import GEOMETRIES, SURFACES
from ptxemu.text.errors import InputError, shown
from ptxemu.text.suggestions import closest

Words = Mapping[str, tuple[str, Any]]
"""What single words mean: an option and its value."""


class Given(Struct, frozen=True):
    """An array that is there already."""

    array: Array

    def make(self) -> Array:
        return self.array


def _choices(option: str, names: Sequence[str] | Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    return {name.lower(): (option, name) for name in names}


SAMPLER_WORDS: Words = {
    **_choices("filter", FILTERS),
    **_choices("address", ADDRESS_MODES),
    "normalized": ("normalized", True),
    "seamless": ("seamless", True),
}
SURFACE_WORDS: Words = {**_choices("format", FORMATS), **_choices("geometry", SURFACES), **_choices("layout", LAYOUTS)}
TEXTURE_WORDS: Words = {
    **_choices("layout", LAYOUTS),
    **_choices("format", FORMATS),
    **_choices("geometry", GEOMETRIES),
    **_choices("read_mode", READ_MODES),
    "srgb": ("srgb", True),
    **SAMPLER_WORDS,  # so that "linear" is the filter
}
NAMED: dict[str, type] = {"format": str, "geometry": str, "layout": str}
SAMPLER_NAMED: dict[str, type] = {**SAMPLER_OPTIONS, "address": list, "border": tuple}
"""Options that are given by name, and what their values are: a list is one of texts, a tuple one of numbers."""


def parse_surface(name: str, text: str) -> SurfaceSpec:
    """The surface that ``--surface NAME=TEXT`` describes."""
    where = f"--surface {name}"
    array, shape, rest = _texels(text, where)
    options = _options(rest, SURFACE_WORDS, {**NAMED, **SURFACE_OPTIONS}, where)
    if "format" not in options:
        raise InputError(f"{where}: a texel format such as R8G8B8A8_UNORM or R32_FLOAT is missing")
    format, geometry, layout = options.pop("format"), options.pop("geometry", "2d"), options.pop("layout", "pitch")
    extents = _extents(shape, geometry, where)
    return SurfaceSpec(geometry, format, layout, extents, None if array is None else Given(array), options, where)


def parse_texture(name: str, text: str) -> TextureSpec:
    """The texture that ``--texture NAME=TEXT`` describes; ``of:NAME`` is over the memory of a surface or an array."""
    where = f"--texture {name}"
    source, _, others = text.partition(":")
    memory, _, rest = others.partition(":") if source == "of" else ("", "", "")
    array, shape, rest = (None, None, rest) if memory else _texels(text, where)
    options = _options(rest, TEXTURE_WORDS, {**NAMED, **TEXTURE_OPTIONS, **SAMPLER_NAMED}, where)
    format, geometry = options.pop("format", None), options.pop("geometry", None)
    extents = {} if memory else _extents(shape, geometry or "2d", where)
    return TextureSpec(geometry, format, extents, memory or ([] if array is None else [Given(array)]), options, where)


def parse_sampler(name: str, text: str) -> SamplerSpec:
    """The sampler that ``--sampler NAME=TEXT`` describes."""
    where = f"--sampler {name}"
    return SamplerSpec(_options(text, SAMPLER_WORDS, SAMPLER_NAMED, where), where)


def _texels(text: str, where: str) -> tuple[Array | None, tuple[int, ...] | None, str]:
    """The array in a file or the extents of zeros, width first, and what follows them."""
    source, _, rest = text.partition(":")
    if source.startswith("@"):
        return load_array(Path(source[1:]), where), None, rest
    if source != "zeros":
        raise InputError(f"{where}: {shown(source)} is no source of texels: give @file.png, @file.npy or zeros:WIDTHxHEIGHT")
    extents, _, rest = rest.partition(":")
    return None, tuple(parse_shape(extents, where)), rest


def _extents(shape: tuple[int, ...] | None, geometry: str, where: str) -> dict[str, int]:
    """Extents by the names of the axes; those of an array speak for themselves."""
    if shape is None or geometry not in GEOMETRIES:  # which is reported where the image is made
        return {}
    axes = GEOMETRIES[geometry].extents[::-1]
    if len(shape) != len(axes):
        raise InputError(f"{where}: the extents of {geometry} texels are {'x'.join(axes)}, not {'x'.join(map(str, shape))}")
    return dict(zip(axes, shape, strict=True))


def _options(text: str, words: Words, named: Mapping[str, type], where: str) -> dict[str, Any]:
    """The options that words, and names with values, give."""
    found: dict[str, Any] = {}
    for part in text.split(":") if text else ():
        name, equals, value = part.partition("=")
        if equals and name in named:
            option, chosen = name, _value(value, named[name], f"{where}: {name}")
        elif not equals and part.lower() in words:
            option, chosen = words[part.lower()]
        else:
            known = named if equals else (text for word, (_, value) in words.items() for text in (word, str(value)))
            raise InputError(f"{where}: no word or option is called {shown(name)}{closest(name, known)}")
        if option in found:
            raise InputError(f"{where}: {option} is given twice")
        found[option] = chosen
    return found


def _value(text: str, kind: type, where: str) -> Any:
    if kind is str:
        return text
    if kind is list:
        return text.split(",")
    if kind is tuple:
        return [_value(item, float, where) for item in text.split(",")]
    if kind is bool:
        if text not in ("true", "false"):
            raise InputError(f"{where}: must be true or false, not {shown(text)}")
        return text == "true"
    number = parse_number(text)
    if number is None or (kind is int and not isinstance(number, int)):
        raise InputError(f"{where}: must be {'an integer' if kind is int else 'a number'}, not {shown(text)}")
    return number
