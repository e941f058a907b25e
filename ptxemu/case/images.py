"""Surfaces, textures and samplers in case files (docs/cases.md, "Surfaces", "Textures")."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ptxemu.case.sources import Source, read_array
from ptxemu.case.table import Table

EXTENTS = ("width", "height", "depth", "layers")
Kind = type[int] | type[str] | type[bool] | type[float]
SURFACE_OPTIONS: dict[str, Kind] = {
    "levels": int, "pitch": int, "pitch_align": int, "block_height_log2": int, "block_depth_log2": int, "gob_order": str,
    "enabled": bool,
}  # fmt: skip
SAMPLER_OPTIONS: dict[str, Kind] = {
    "filter": str, "normalized": bool, "mip_filter": str, "mip_bias": float, "min_level": float, "max_level": float,
    "seamless": bool, "max_anisotropy": int,
}  # fmt: skip
TEXTURE_OPTIONS: dict[str, Kind] = {"layout": str, **SURFACE_OPTIONS, "read_mode": str, "srgb": bool}


class SurfaceSpec(Struct, frozen=True):
    """A surface: its geometry, format and layout, and either its extents or its first contents."""

    geometry: str
    format: str
    layout: str
    extents: dict[str, int]
    data: Source | None
    options: dict[str, Any]
    where: str


class RegisterSpec(Struct, frozen=True):
    """A surface in the buffer ``memory``, as registers describe it: base, format and height."""

    memory: str
    words: tuple[int, int, int]
    options: dict[str, str]
    where: str


class ConstantSpec(Struct, frozen=True):
    """Constants in the buffer ``memory``, as registers describe them: base and format."""

    memory: str
    words: tuple[int, int]
    kind: str
    where: str


class TextureSpec(Struct, frozen=True):
    """A texture: over zeros, an array, one array for each mip level, or the buffer or surface that ``data`` names."""

    geometry: str | None
    format: str | None
    extents: dict[str, int]
    data: str | Sequence[Source]
    options: dict[str, Any]
    where: str


class SamplerSpec(Struct, frozen=True):
    """A sampler."""

    options: dict[str, Any]
    where: str


def read_surface(table: Table, folder: Path) -> SurfaceSpec | RegisterSpec:
    """The surface that a table describes."""
    if "registers" in table:
        return _read_registers(table)
    data = read_array(table.table("data"), folder) if "data" in table else None
    spec = SurfaceSpec(
        geometry=table.get("geometry", str, "2d"),
        format=table.need("format", str),
        layout=table.get("layout", str, "pitch"),
        extents=_extents(table, EXTENTS, data is not None),
        data=data,
        options=_options(table, SURFACE_OPTIONS),
        where=table.where(),
    )
    table.finish()
    return spec


def _read_registers(table: Table) -> RegisterSpec:
    words = table.table("registers")
    base, format, height = (words.need(name, int) for name in ("base", "format", "height"))
    words.finish()
    options = {name: table.need(name, str) for name in ("tiling", "float_to_uint") if name in table}
    spec = RegisterSpec(table.need("memory", str), (base, format, height), options, table.where())
    table.finish()
    return spec


def read_constants(table: Table) -> ConstantSpec:
    """The constants that a table describes."""
    words = table.table("registers")
    base, format = (words.need(name, int) for name in ("base", "format"))
    words.finish()
    spec = ConstantSpec(table.need("memory", str), (base, format), table.get("kind", str, "float"), table.where())
    table.finish()
    return spec


def read_texture(table: Table, folder: Path) -> TextureSpec:
    """The texture that a table describes."""
    data = _texture_data(table, folder) if "data" in table else []
    spec = TextureSpec(
        geometry=table.need("geometry", str) if "geometry" in table else None,
        format=table.need("format", str) if "format" in table else None,
        extents=_extents(table, (*EXTENTS, "samples"), bool(data)),
        data=data,
        options={**_options(table, TEXTURE_OPTIONS), **_sampler_options(table)},
        where=table.where(),
    )
    table.finish()
    return spec


def read_sampler(table: Table) -> SamplerSpec:
    """The sampler that a table describes."""
    spec = SamplerSpec(_sampler_options(table), table.where())
    table.finish()
    return spec


def _texture_data(table: Table, folder: Path) -> str | Sequence[Source]:
    value = table.any("data")
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list) and value:
        return [read_array(item, folder) for item in table.tables("data")]
    return [read_array(table.table("data"), folder)]


def _extents(table: Table, names: tuple[str, ...], has_data: bool) -> dict[str, int]:
    extents = {key: table.need(key, int) for key in names if key in table}
    if has_data and extents:
        raise table.fail(next(iter(extents)), "the extents are those of data: give one or the other")
    if not has_data and "width" not in extents:
        raise table.fail("width", "is missing (or give data)")
    return extents


def _options(table: Table, kinds: dict[str, Kind]) -> dict[str, Any]:
    return {key: table.need(key, kind) for key, kind in kinds.items() if key in table}


def _sampler_options(table: Table) -> dict[str, Any]:
    options = _options(table, SAMPLER_OPTIONS)
    if "address" in table:
        options["address"] = (
            _list(table, "address", str) if isinstance(table.any("address"), list) else table.need("address", str)
        )
    if "border" in table:
        options["border"] = _list(table, "border", float)
    return options


def _list(table: Table, key: str, kind: Kind) -> list[Any]:
    """A list whose items are of one kind."""
    items = Table(table.file, table.place, {f"{key}[{number}]": item for number, item in enumerate(table.need(key, list))})
    return [items.need(name, kind) for name in items.names()]
