"""Places in memory that a person names: offsets of a space, addresses, elements of arrays, texels of surfaces."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ptxemu.case.resources import Resources
from ptxemu.debugger import inspect
from ptxemu.debugger.engine import Debugger
from ptxemu.debugger.expressions import place, value
from ptxemu.debugger.inspect import GLOBAL, Spot
from ptxemu.debugger.variables import Scope, Value
from ptxemu.text.errors import InputError, shown

ELEMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*\[(?P<index>[^\]]*)\]")
SPACED = re.compile(r"(?P<space>global|shared|local|const|param)\s*[:+ ]\s*(?P<rest>.+)")
WORD = 4


def spot_of(text: str, debugger: Debugger, resources: Resources | None, size: int = WORD) -> Spot:
    """What a variable, ``x[3]``, ``image[x,y]``, ``shared 16`` or an address means; ``size`` bytes unless it has a type.

    Raises InputError.
    """
    text = text.strip()
    if (found := ELEMENT.fullmatch(text)) and resources is not None:
        name, index = found["name"], found["index"].split(",")
        if name in resources.surfaces:
            return _texel(resources.surfaces[name], [_number(part, debugger) for part in index], text)
        if name in resources.hosts:
            return _element(resources.buffer(name), [_number(part, debugger) for part in index], text)
    if (variable := _variable(text, debugger)) is not None:
        return variable
    if found and resources is not None:
        known = ", ".join([*resources.hosts, *resources.surfaces])
        raise InputError(f"no array or surface is named {shown(found['name'])}" + (f"; there are {known}" if known else ""))
    spaced = SPACED.fullmatch(text)
    space, rest = (spaced["space"], spaced["rest"]) if spaced else (GLOBAL, text)
    return Spot(space, _number(rest, debugger), size)


def _variable(text: str, debugger: Debugger) -> Spot | None:
    """Where a variable of the program is, or a part of one; an address if it is a pointer that is examined."""
    known = variable_in(text, debugger)
    if known is None:
        return None
    scope, found = known
    if found.place is None:
        raise InputError(f"{text} is in a register, which has no address")
    return scope.spot(found.place, found.size)


def evaluated(text: str, debugger: Debugger, resources: Resources | None) -> Any:
    """The value of an expression over what the frame in focus sees, and arrays, as they are now. Raises InputError."""
    names = _arrays(text, resources)
    if debugger.focus is None:
        return value(text, names)
    frame = debugger.frame()
    return value(text, {**names, **inspect.names_of(frame)}, debugger.scope(frame))


def variable_in(text: str, debugger: Debugger) -> tuple[Scope, Value] | None:
    """The variable, or part of one, that a text is; None if it is anything else."""
    if debugger.focus is None:
        return None
    frame = debugger.frame()
    scope = debugger.scope(frame)
    found = place(text, inspect.names_of(frame), scope)
    return None if found is None else (scope, found)


def _arrays(text: str, resources: Resources | None) -> dict[str, Any]:
    """Those that an expression may name."""
    if resources is None:
        return {}
    return {name: resources.buffer(name).array for name in resources.hosts if name in text}


def _number(text: str, debugger: Debugger) -> int:
    found = evaluated(text, debugger, None)
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
