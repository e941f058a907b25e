"""Copies of tensors, and tensor maps: the runtime's functions, with the operands of the lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.asynchronous import Receivers, update_of
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import addresses
from ptxemu.interpreter.transfer import rows, site
from ptxemu.interpreter.translate import Translator, method
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.ir.tensors import copy_site, field_site, field_value
from ptxemu.ir.types import B64, TYPES, U32

MAPS, COORDINATES, OFFSETS, COUNTS, RANKS, OBJECTS = 1, 2, 3, 4, 5, 6  # areas


Sides = Callable[[Any, list[Lane]], tuple[Any, ...]]


def _sides(t: Translator, op: Op, box: str) -> tuple[Any, Sides]:
    """What is constant about a copy; and the lanes as a mask, their boxes, maps and coordinates."""
    (shared, box_space), (found, map_space) = t.access(op, box), t.access(op, "t")
    coordinates = t.readers(op["coordinates"], U32)

    def find(warp: Any, group: list[Lane]) -> tuple[Any, ...]:
        mask, boxes = addresses(warp, group, shared)
        maps = warp.grid.transfer.fill(MAPS, 8, group, found)
        return mask, boxes, maps, rows(warp, COORDINATES, 4, group, coordinates)

    return site("tensor", op, box=box_space, map=map_space, **copy_site(op)), find


@method("tensor_load")
def tensor_load(t: Translator, op: Op) -> Step:
    constants, sides = _sides(t, op, "d")
    offsets = t.readers(op["o"], TYPES["u16"]) if "o" in op.row.names else None
    offsets = offsets and offsets + [lambda lane: 0] * (3 - len(offsets))

    def box(warp: Any, group: list[Lane]) -> tuple[Any, ...]:
        shifts = ffi.NULL if offsets is None else rows(warp, OFFSETS, 2, group, offsets)
        return *sides(warp, group), shifts

    return (_multicast if "multicast" in op.mods else _to_one)(t, op, constants, box)


def _multicast(t: Translator, op: Op, constants: Any, box: Sides) -> Step:
    """The same box in every CTA of the cluster that the operand names, and its mbarrier, or that of its pair."""
    told, pairs = Receivers(t, op, int(lib.PE_MBARRIER_COMPLETE_TX), "m"), int(op.mods.get("group") == "cta_group::2")

    def step(warp: Any, group: list[Lane]) -> None:
        ranks, objects = told.ranks(warp, RANKS, group), told.objects(warp, OBJECTS, group)
        warp.grid.call("pe_tensor_multicast", warp, constants, told.site, *box(warp, group), ranks, objects, pairs)
        warp.block.cluster.progress()

    return step


def _to_one(t: Translator, op: Op, constants: Any, box: Sides) -> Step:
    counts: list[int] = []
    complete = update_of(t, op, int(lib.PE_MBARRIER_COMPLETE_TX), lambda lane: counts[lane.index], "m")

    def step(warp: Any, group: list[Lane]) -> None:
        room = warp.grid.transfer.area(COUNTS)
        warp.grid.call("pe_tensor_load", warp, constants, *box(warp, group), room.pointer)
        counts[:] = room.elements[4][:LANES]
        complete(warp, group, ffi.NULL)

    return step


@method("tensor_store")
def tensor_store(t: Translator, op: Op) -> Step:
    constants, sides = _sides(t, op, "s")

    def step(warp: Any, group: list[Lane]) -> None:
        warp.grid.call("pe_tensor_store", warp, constants, *sides(warp, group))

    return step


@method("tensor_replace")
def tensor_replace(t: Translator, op: Op) -> Step:
    address, space = t.access(op, "a")
    constants = site("tensor_field", op, space=space, **field_site(op))
    value = t.reader(field_value(op), B64 if op.mods["type"] == "b64" else U32)

    def step(warp: Any, group: list[Lane]) -> None:
        mask, at = addresses(warp, group, address)
        warp.grid.call("pe_tensor_replace", warp, constants, mask, at, warp.grid.transfer.fill(MAPS, 8, group, value))

    return step


@method("tensor_publish")
def tensor_publish(t: Translator, op: Op) -> Step:
    (target, _), (source, _), pos = t.access(op, "d"), t.access(op, "s"), op.pos

    def step(warp: Any, group: list[Lane]) -> None:
        mask, to = addresses(warp, group, target)
        warp.grid.call("pe_tensor_publish", warp, pos, mask, to, warp.grid.transfer.fill(MAPS, 8, group, source))

    return step
