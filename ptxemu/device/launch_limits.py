"""Launch geometry: what a grid, a block and shared memory may be (CUDA programming guide, "Compute Capabilities")."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ptxemu._runtime import ffi, lib
from ptxemu.device.entry import Entry
from ptxemu.device.module_info import KernelInfo
from ptxemu.text.errors import InputError, shown

if TYPE_CHECKING:
    from ptxemu._runtime import CData

Extent = tuple[int, int, int]

MAX_GRID: Extent = (lib.PE_MAX_GRID_X, lib.PE_MAX_GRID_YZ, lib.PE_MAX_GRID_YZ)
MAX_BLOCK: Extent = (lib.PE_MAX_BLOCK_XY, lib.PE_MAX_BLOCK_XY, lib.PE_MAX_BLOCK_Z)
MOST_SHARED = 2**64 - 1  # that a program can ask for
MAX_LOCAL = lib.PE_MAX_LOCAL
"""Bytes of local memory that a thread may have."""


class Shape(Struct, frozen=True):
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

    @property
    def code_block(self) -> Extent:
        """A block whose code serves the launch."""
        found = ffi.new("uint32_t[3]")
        lib.pe_code_block(self.grid, self.block, found)
        return tuple(found)


def shape_of(grid: object, block: object) -> Shape:
    """A grid and a block given as integers or as tuples of up to three of them (x, y, z)."""
    return Shape(_extent("grid", grid, MAX_GRID), _extent("block", block, MAX_BLOCK))


def check_kernel(entry: Entry, kernel: CData, shape: Shape) -> None:
    """Check a block against the limits of devices and the kernel's ``.maxntid`` and ``.reqntid``."""
    message = ffi.new("char[]", lib.PE_MESSAGE_BYTES)
    if lib.pe_check_shape(entry.pointer, kernel, shape.grid, shape.block, message):
        raise InputError(ffi.string(message).decode("utf-8", "replace"))


def check_cluster(entry: Entry, kernel: KernelInfo, facts: CData, shape: Shape, cluster: object) -> Extent:
    """The extents of the clusters of a launch, checked; zeros for those that the kernel asks for, which has one block else."""
    if cluster is None and "reqnctapercluster" not in kernel.limits:
        return 0, 0, 0
    given = (0, 0, 0) if cluster is None else _extent("cluster", cluster, (lib.PE_MAX_CLUSTER,) * 3)
    message = ffi.new("char[]", lib.PE_MESSAGE_BYTES)
    if lib.pe_check_cluster(entry.pointer, facts, shape.grid, given, lib.PE_MAX_CLUSTER, message):
        raise InputError(ffi.string(message).decode("utf-8", "replace"))
    return given


def rows_of(kernel: KernelInfo, shape: Shape) -> int:
    """How many rows the register files of a kernel have: one for each thread, or for each point of its domain."""
    domain = kernel.limits.get("domain")
    return prod(domain) if domain else shape.blocks * shape.threads


def check_shared(entry: Entry, kernel: CData, static: int, dynamic: object) -> int:
    """The dynamic shared memory of a launch in bytes, checked."""
    try:
        size = operator.index(dynamic)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"shared must be a number of bytes, not {shown(dynamic)}") from None
    if size < 0:
        raise InputError(f"shared must not be negative: {shown(size)}")
    if size == 0:
        return size
    message = ffi.new("char[]", lib.PE_MESSAGE_BYTES)
    if lib.pe_check_shared(entry.pointer, kernel, static, min(size, MOST_SHARED), message):
        raise InputError(ffi.string(message).decode("utf-8", "replace"))
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
