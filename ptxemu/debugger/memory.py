"""Places in memory that a person names: offsets of a space, addresses, elements of arrays, texels of surfaces."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ptxemu.case.resources import Resources
from ptxemu.debugger.engine import Debugger
from ptxemu.debugger.expressions import value
from ptxemu.debugger.inspect import GLOBAL, Spot
from ptxemu.text.errors import InputError, shown

ELEMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\[(?P<index>[^\]]*)\]")
SPACED = re.compile(r"(?P<space>global|shared|local|const|param)\s*[:+ ]\s*(?P<rest>.+)")
WORD = 4


def spot_of(text: str, debugger: Debugger, resources: Resources | None, size: int = WORD) -> Spot:
    """What ``x[3]``, ``image[x,y]``, ``shared 16`` or an address means; ``size`` bytes unless it has a type.

    Raises InputError.
    """
    text = text.strip()
    if (found := ELEMENT.fullmatch(text)) and resources is not None:
        numbers = [_number(part, debugger) for part in found["index"].split(",")]
        if found["name"] in resources.surfaces:
            return _texel(resources.surfaces[found["name"]], numbers, text)
        if found["name"] in resources.hosts:
            return _element(resources.buffer(found["name"]), numbers, text)
        known = ", ".join([*resources.hosts, *resources.surfaces])
        raise InputError(f"no array or surface is named {shown(found['name'])}" + (f"; there are {known}" if known else ""))
    spaced = SPACED.fullmatch(text)
    space, rest = (spaced["space"], spaced["rest"]) if spaced else (GLOBAL, text)
    return Spot(space, _number(rest, debugger), size)


def names_in(text: str, debugger: Debugger, resources: Resources | None) -> dict[str, Any]:
    """What an expression may name: registers of the thread in focus, and arrays, as they are now."""
    names: dict[str, Any] = {} if debugger.focus is None else debugger.names(debugger.focus)
    if resources is not None:
        names |= {name: resources.buffer(name).array for name in resources.hosts if name in text}
    return names


def _number(text: str, debugger: Debugger) -> int:
    names = {} if debugger.focus is None else debugger.names(debugger.focus)
    found = value(text, names)
    if isinstance(found, bool | np.bool_) or not isinstance(found, int | np.integer) or not 0 <= found < 2**64:
        raise InputError(f"{text.strip()} is {shown(found)}, not a number of 64 bits")
    return int(found)


def _element(buffer: Any, index: list[int], text: str) -> Spot:
    shape = buffer.shape
    whole = index if len(index) == len(shape) else None
    if len(index) == 1:  # of the array as one row
        whole, shape = index, (int(np.prod(shape)),)
    if whole is None or any(not 0 <= one < extent for one, extent in zip(whole, shape, strict=True)):
        raise InputError(f"{text}: the array has shape {tuple(buffer.shape)}")
    size = buffer.dtype.itemsize
    return Spot(GLOBAL, buffer.address + size * int(np.ravel_multi_index(whole, shape)), size)


def _texel(item: Any, index: list[int], text: str) -> Spot:
    """Coordinates are x, y, z and layer, as instructions have them."""
    surface = item.surface
    if not 0 < len(index) <= 4:
        raise InputError(f"{text}: coordinates are x, y, z and a layer")
    return Spot(GLOBAL, surface.address + surface.offset(*index), surface.format.texel_bytes)
