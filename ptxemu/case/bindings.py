"""Matching of names to the parameters of a kernel and the variables of a module, for cases and the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from ptxemu.device.module_info import KernelInfo
from ptxemu.text.errors import InputError
from ptxemu.text.suggestions import closest

if TYPE_CHECKING:
    from ptxemu.api import Module
    from ptxemu.device.module_memory import Bindable

T = TypeVar("T")
ELEMENT = re.compile(r"([^\[\]]+)(?:\[(\d{1,7})\])?")


def bind(module: Module, variable: str, item: Bindable, where: str) -> None:
    """Bind a surface, texture or sampler to an opaque variable, ``name``, or ``name[3]`` in an array of them."""
    match = ELEMENT.fullmatch(variable)
    if match is None:
        raise InputError(f"{where}: must be a name, or name[number]")
    try:
        module.bind(match[1], item, int(match[2] or 0))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def in_order(kernel: KernelInfo, named: Mapping[str, T], where: str) -> list[T]:
    """The arguments in the order of the parameters.

    Names are PTX names, or parameter numbers from 0.  If none is either, they are the caller's own names, and the order
    in which they were written counts (compilers rename parameters: ``saxpy_param_0``).
    """
    names = [parameter.name for parameter in kernel.parameters]
    numbers = {str(number): name for number, name in enumerate(names)}
    known = {key: numbers.get(key, key) for key in named if key in names or key in numbers}
    if not known and len(named) == len(names):
        return list(named.values())
    if known and len(known) < len(named):
        stray = next(key for key in named if key not in known)
        raise InputError(f"{where}: kernel {kernel.name} has no parameter '{stray}'{closest(stray, names)}")
    given = {name: named[key] for key, name in known.items()}
    if len(given) < len(known):
        raise InputError(f"{where}: a parameter is given by name and by number")
    missing = [name for name in names if name not in given]
    if missing or len(named) != len(names):
        raise InputError(f"{where}: {_count(kernel, len(named), missing if given else [])}")
    return [given[name] for name in names]


def _count(kernel: KernelInfo, given: int, missing: list[str]) -> str:
    if missing:
        return f"kernel {kernel.name}: no value for parameter {', '.join(missing)}"
    listed = ", ".join(f"{item.name}: .{item.type}" for item in kernel.parameters)
    return f"kernel {kernel.name} takes {len(kernel.parameters)} arguments ({listed}), not {given}"
