"""Launches that kernels have made: CUDA dynamic parallelism (``csrc/host/nested.h``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ptxemu._runtime import ffi, lib
from ptxemu.device.launch_limits import Extent

if TYPE_CHECKING:
    from ptxemu._runtime import CData


class Child(Struct, frozen=True):
    """A launch that a kernel has made; ``kernel`` is None where it has spoiled what it wrote."""

    kernel: str | None
    grid: Extent
    block: Extent
    shared: int
    arguments: bytes


def collected(module: CData, arena: CData, launches: int, grid_id: int) -> list[Child]:
    """What a grid of a module has left in its list, in the order in which it is to be done."""
    found, raw = [], lib.pe_children_collect(arena, launches, grid_id)
    while raw:
        found.append(_child(module, raw))
        raw, done = raw.next, raw
        lib.pe_child_free(done)
    return found


def _child(module: CData, raw: CData) -> Child:
    facts, head = lib.pe_child_kernel(module, raw), raw.head
    name = ffi.string(lib.pe_entry_text(lib.pe_module_entry(module), facts.name)).decode() if facts else None
    size = facts.param_bytes if facts else 0
    grid, block = (head.grid[0], head.grid[1], head.grid[2]), (head.block[0], head.block[1], head.block[2])
    return Child(name, grid, block, head.shared, ffi.buffer(raw.arguments, size)[:])
