"""SURED, RED and pointers of SASS."""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import ffi
from ptxemu.dialects.sass.lower import coordinate_places, red_site, sured_site, word_of
from ptxemu.interpreter.dialects import slots  # noqa: F401  (registers a method)
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import each, lane_data
from ptxemu.interpreter.surfaces import DATA, FIRST, HANDLES, WORD, mask_of
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import WORD64, Translator, method
from ptxemu.ir.ops import Op, Vec
from ptxemu.ir.types import B32, B64, U64


@method("sass_pointer")
def pointer(t: Translator, op: Op) -> Step:
    """A device pointer as an address of the program; null stays null."""
    read, bias = t.reader(op["a"], U64), int(op.mods["bias"])

    def moved(lane: Lane) -> int:
        value = read(lane)
        return value and value + bias - lane.warp.w.arena_base & WORD64

    return each(t, op, moved)


def _lanes(op: Op, group: list[Lane]) -> int:
    """The lanes that take part: not those of helper pixels."""
    return mask_of(group) & ~int(op.mods["helper"])


@method("sass_sured")
def sured(t: Translator, op: Op) -> Step:
    coordinates, data, kind = op["a"], t.readers(op["b"], word_of(op)), word_of(op)
    assert isinstance(coordinates, Vec)
    constants, handle = site("surface", op, **sured_site(op)), t.reader(op["h"], U64)
    places = [None if place is None else t.reader(coordinates.items[place], B32) for place in coordinate_places(op)]

    def step(warp: Any, group: list[Lane]) -> None:
        transfer = warp.grid.transfer
        given = [ffi.NULL if read is None else transfer.fill(FIRST + i, WORD, group, read) for i, read in enumerate(places)]
        handles, values = transfer.fill(HANDLES, 8, group, handle), lane_data(warp, DATA, group, data, kind.bytes)
        warp.grid.call("pe_surface", warp, constants, _lanes(op, group), handles, *given, values)

    return step


@method("sass_red")
def red(t: Translator, op: Op) -> Step:
    constants, kind = site("red", op, **red_site(op)), word_of(op)
    address, data = t.reader(op["a"], B64), t.readers(op["b"], kind)

    def step(warp: Any, group: list[Lane]) -> None:
        at = warp.grid.transfer.fill(FIRST, 8, group, address)
        warp.grid.call("pe_red", warp, constants, _lanes(op, group), at, lane_data(warp, DATA, group, data, kind.bytes))

    return step
