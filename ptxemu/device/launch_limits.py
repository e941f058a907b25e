"""Launch geometry: what a grid, a block and shared memory may be (CUDA programming guide, "Compute Capabilities")."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

from ptxemu._runtime import lib
from ptxemu.device.module_info import KernelInfo
from ptxemu.text.errors import InputError, shown

Extent = tuple[int, int, int]

MAX_GRID: Extent = (2**31 - 1, 65535, 65535)
MAX_BLOCK: Extent = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_SHARED = lib.PE_MAX_SHARED
MAX_LOCAL = lib.PE_MAX_LOCAL
"""Bytes of local memory that a thread may have."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A checked grid and block."""

    grid: Extent
    block: Extent

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


def shape_of(grid: object, block: object) -> Shape:
    """A grid and a block given as integers or as tuples of up to three of them (x, y, z)."""
    shape = Shape(_extent("grid", grid, MAX_GRID), _extent("block", block, MAX_BLOCK))
    if shape.threads > MAX_THREADS:
        raise InputError(f"block {_text(shape.block)} has {shape.threads} threads; the limit is {MAX_THREADS}")
    return shape


def check_kernel(kernel: KernelInfo, shape: Shape) -> None:
    """Check a block against the kernel's ``.maxntid`` and ``.reqntid`` (PTX ISA, "Performance-Tuning Directives")."""
    required = kernel.limits.get("reqntid")
    if required is not None and _padded(required) != shape.block:
        wanted = _text(_padded(required))
        raise InputError(f"kernel {kernel.name} requires block {wanted} (.reqntid), not {_text(shape.block)}")
    most = kernel.limits.get("maxntid")
    if most is not None:
        x, y, z = _padded(most)
        if shape.threads > x * y * z:
            raise InputError(f"kernel {kernel.name} takes at most {x * y * z} threads (.maxntid), not {shape.threads}")
    if (domain := kernel.limits.get("domain")) is not None:
        _check_domain(kernel, domain, shape)


def _check_domain(kernel: KernelInfo, domain: tuple[int, ...], shape: Shape) -> None:
    """A program of points works on all of its domain, which has two dimensions; without extents the grid is the domain."""
    launched = [grid * block for grid, block in zip(shape.grid, shape.block)]
    if launched[2] > 1:
        raise InputError(f"kernel {kernel.name} works on points (x, y): z of grid and block must be 1")
    if any(have < wanted for have, wanted in zip(launched, domain)):
        points = f"{_text(domain)} points (.domain)"
        raise InputError(f"kernel {kernel.name} works on {points}, more than the {_text(launched[:2])} threads")


def rows_of(kernel: KernelInfo, shape: Shape) -> int:
    """How many rows the register files of a kernel have: one for each thread, or for each point of its domain."""
    domain = kernel.limits.get("domain")
    return prod(domain) if domain else shape.blocks * shape.threads


def check_shared(kernel: KernelInfo, static: int, dynamic: object) -> int:
    """The dynamic shared memory of a launch in bytes, checked."""
    try:
        size = operator.index(dynamic)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"shared must be a number of bytes, not {shown(dynamic)}") from None
    if size < 0:
        raise InputError(f"shared must not be negative: {shown(size)}")
    if static + size > MAX_SHARED:
        total = f"{static} static + {shown(size)} dynamic bytes of shared memory"
        raise InputError(f"kernel {kernel.name}: {total} are over the limit of {MAX_SHARED}")
    return size


def _extent(what: str, value: object, most: Extent) -> Extent:
    try:
        items: list[Any] = list(islice(value, 4)) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
        numbers = [operator.index(item) for item in items]
    except TypeError:
        raise InputError(f"{what} must be an integer or up to three of them, not {shown(value)}") from None
    if not 1 <= len(numbers) <= 3:
        raise InputError(f"{what} must have 1 to 3 dimensions, not {len(numbers)}{' or more' if len(numbers) > 3 else ''}")
    extent = _padded(numbers)
    for axis, number, limit in zip("xyz", extent, most, strict=True):
        if not 1 <= number <= limit:
            raise InputError(f"{what}.{axis} must be 1 to {limit}, not {shown(number)}")
    return extent


def _padded(numbers: Iterable[int]) -> Extent:
    x, y, z = [*numbers, 1, 1, 1][:3]
    return x, y, z


def _text(extent: Iterable[int]) -> str:
    return " x ".join(map(str, extent))
