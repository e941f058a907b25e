"""Copies of tensors, and tensor maps: the runtime's functions, with the operands of the lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.asynchronous import receivers, update_of
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import addresses
from ptxemu.interpreter.transfer import rows, site
from ptxemu.interpreter.translate import Translator, code_of_space, method
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.ir.tensors import copy_site, field_site, field_value
from ptxemu.ir.types import B64, TYPES, U32

MAPS, COORDINATES, OFFSETS, COUNTS = 1, 2, 3, 4  # areas


def _site(op: Op, box: str) -> Any:
    spaces = {"box": code_of_space(op.access_of(box).space), "map": code_of_space(op.access_of("t").space)}
    return site("tensor", op, **spaces, **copy_site(op))


def _sides(t: Translator, op: Op, box: str) -> Callable[[Any, list[Lane]], tuple[Any, ...]]:
    """The lanes as a mask, their boxes, maps and coordinates."""
    shared, found = t.address(op[box]), t.address(op["t"])
    coordinates = t.readers(op["coordinates"], U32)

    def find(warp: Any, group: list[Lane]) -> tuple[Any, ...]:
        mask, boxes = addresses(warp, group, shared)
        maps = warp.grid.transfer.fill(MAPS, 8, group, found)
        return mask, boxes, maps, rows(warp, COORDINATES, 4, group, coordinates)

    return find


@method("tensor_load")
def tensor_load(t: Translator, op: Op) -> Step:
    constants, sides, to_self = _site(op, "d"), _sides(t, op, "d"), receivers(t, op)
    offsets = t.readers(op["o"], TYPES["u16"]) if "o" in op.row.names else None
    offsets = offsets and offsets + [lambda lane: 0] * (3 - len(offsets))
    counts: list[int] = []
    complete = update_of(t, op, int(lib.PE_MBARRIER_COMPLETE_TX), lambda lane: counts[lane.index], "m")

    def step(warp: Any, group: list[Lane]) -> None:
        group = to_self(group)
        if not group:
            return
        shifts = ffi.NULL if offsets is None else rows(warp, OFFSETS, 2, group, offsets)
        room = warp.grid.transfer.area(COUNTS)
        warp.grid.call("pe_tensor_load", warp, constants, *sides(warp, group), shifts, room.pointer)
        counts[:] = [room.get(4, index) for index in range(LANES)]
        complete(warp, group, ffi.NULL)

    return step


@method("tensor_store")
def tensor_store(t: Translator, op: Op) -> Step:
    constants, sides = _site(op, "s"), _sides(t, op, "s")

    def step(warp: Any, group: list[Lane]) -> None:
        warp.grid.call("pe_tensor_store", warp, constants, *sides(warp, group))

    return step


@method("tensor_replace")
def tensor_replace(t: Translator, op: Op) -> Step:
    constants = site("tensor_field", op, space=code_of_space(op.access_of("a").space), **field_site(op))
    address, value = t.address(op["a"]), t.reader(field_value(op), B64 if op.mods["type"] == "b64" else U32)

    def step(warp: Any, group: list[Lane]) -> None:
        mask, at = addresses(warp, group, address)
        warp.grid.call("pe_tensor_replace", warp, constants, mask, at, warp.grid.transfer.fill(MAPS, 8, group, value))

    return step


@method("tensor_publish")
def tensor_publish(t: Translator, op: Op) -> Step:
    target, source, pos = t.address(op["d"]), t.address(op["s"]), op.pos

    def step(warp: Any, group: list[Lane]) -> None:
        mask, to = addresses(warp, group, target)
        warp.grid.call("pe_tensor_publish", warp, pos, mask, to, warp.grid.transfer.fill(MAPS, 8, group, source))

    return step
