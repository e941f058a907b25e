"""Textures of ``tests/isa`` files, and what instructions on them give.

    texture R16G16B16A16_FLOAT 2d[4,6] normalized address=wrap levels=2 = i / 4 - level

Words after the extents are options of ``Device.texture``; the expression gives component ``i`` of mip ``level``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

import ptxemu
from ptxemu.device.surface_format import FORMATS
from tests.support.texture_cases import DIMS, canonical, read_kind
from tests.support.texture_model import Model

SPEC = re.compile(r"texture (\w+) (\w+)\[([\d,]+)\]((?: \w+(?:=\S+)?)*) = (.*)")
DEFAULTS: dict[str, Any] = {"filter": "point", "address": "clamp", "normalized": False, "mip_filter": "point", "levels": 1}
MODELLED = ("filter", "normalized", "mip_filter")
_KNOWN: dict[int, tuple[Model, dict[Any, list[int]]]] = {}  # many forms ask the same


def make(spec: str) -> tuple[Any, Model]:
    """A texture on the default device and its model."""
    match = SPEC.fullmatch(spec)
    assert match, spec
    name, geometry, extents, words, expression = match.groups()
    options = dict(DEFAULTS)
    for word in words.split():
        key, _, value = word.partition("=")
        options[key] = int(value) if value.isdecimal() else value or True
    format = FORMATS[name]
    shape = tuple(map(int, extents.split(",")))
    components = (format.components,) if format.components > 1 else ()
    texture = ptxemu.default_device().texture((*shape, *components), format=name, geometry=geometry, **options)
    levels = []
    code = compile(expression, spec, "eval")
    for level in range(options["levels"]):
        size = int(np.prod(texture.surface.shape(level)))
        flat = [eval(code, {"i": i, "level": level}) for i in range(size)]
        data = np.array(flat, format.dtype).reshape(texture.surface.shape(level))
        texture.surface.upload(data, level)
        levels.append(canonical(data, geometry, format))
    samples = shape[-3] if geometry.endswith("ms") else 1
    model = Model(
        levels, format.order, read_kind(format, options.get("read_mode")), DIMS[geometry], cube="cube" in geometry,
        address=(options["address"],) * 3, samples=samples, **{key: options[key] for key in MODELLED},
    )  # fmt: skip
    return texture, model


@cache
def real(bits: int) -> float:
    """An f32 pattern as a number."""
    return float(np.uint32(bits).view(np.float32))


def results(bits: Sequence[int], type: str) -> tuple[int, ...]:
    """Components as a result type holds them."""
    if type not in ("f16", "f16x2"):
        return tuple(bits)
    with np.errstate(over="ignore"):
        halves = [int(np.float16(real(item)).view(np.uint16)) for item in bits]
    if type == "f16":
        return tuple(halves)
    return halves[0] | halves[1] << 16, halves[2] | halves[3] << 16


def fetched(
    model: Model,
    type: str,
    *at: int,
    layer: int = 0,
    lod: int | None = None,
    along: Sequence[Sequence[int]] | None = None,
    offset: Sequence[int] = (0, 0, 0),
) -> tuple[int, ...]:
    """tex with float coordinates, everything as bits."""
    padded = (*offset, 0, 0)[:3]
    gradients = None if along is None else tuple(tuple(real(item) for item in slope) for slope in along)
    level = None if lod is None else real(lod)
    key = (tuple(map(real, at)), layer, level, gradients, padded)
    known = _KNOWN.setdefault(id(model), (model, {}))[1]
    if key not in known:
        known[key] = model.fetch(*key)
    return results(known[key], type)


def fetched_texel(
    model: Model, type: str, *at: int, layer: int = 0, sample: int = 0, lod: int | None = None, offset: Sequence[int] = (0, 0, 0)
) -> tuple[int, ...]:
    """tex with integer coordinates."""
    return results(model.fetch_texel(at, layer, sample, lod, (*offset, 0, 0)[:3]), type)


def gathered(model: Model, mods: Sequence[str], *at: int, layer: int = 0, offset: Sequence[int] = (0, 0, 0)) -> tuple[int, ...]:
    """tld4."""
    return tuple(model.gather([real(item) for item in at], "rgba".index(mods[0]), layer, (*offset, 0, 0)[:3]))
