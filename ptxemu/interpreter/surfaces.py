"""Surfaces and textures: the runtime's engines, with the operands of the lanes."""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.atomics import operation, type_code
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import lane_data, take
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import Reader, Translator, method, write_all
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.geometry import counts_texels
from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import B32

HANDLES, DATA, FIRST = 0, 1, 2  # areas; coordinates from FIRST on
SAMPLERS = 1
WORD = 4
CLAMPS = {"trap": "TRAP", "clamp": "NEAREST", "zero": "ZERO"}
OTHER_BITS = {"f16": lib.PE_RESULT_F16, "f16x2": lib.PE_RESULT_F16X2}
KINDS = {
    "suld": {"b": "PE_SULD_B"},
    "sust": {"b": "PE_SUST_B", "p": "PE_SUST_P"},
    "sured": {"b": "PE_SURED_B", "p": "PE_SURED_P"},
}


def geometry(op: Op) -> int:
    return int(getattr(lib, f"PE_GEOM_{op.mods['geom'].upper()}"))


def coordinates(name: str, operands: list[Reader]) -> tuple[list[Reader], Reader | None, Reader | None]:
    """The axes, the layer and the sample of a tuple: sample and layer come first, as far as a geometry has them."""
    rest = list(operands)
    sample = rest.pop(0) if name.endswith("ms") else None
    layer = rest.pop(0) if name.startswith("a") else None
    return rest[: 3 if "cube" in name else int(name.lstrip("a")[0])], layer, sample


def mask_of(group: list[Lane]) -> int:
    return sum(lane.bit for lane in group)


@method("suld", "sust", "sured")
def surface(t: Translator, op: Op) -> Step:
    kind, opcode = op.type(), op.row.lower
    writers = t.writers(op)
    data = [] if opcode == "suld" else t.readers(op["v"], kind)
    count = len(writers) or len(data)
    code = getattr(lib, KINDS[opcode][op.mods.get("mode", "b")])
    clamp = getattr(lib, f"PE_CLAMP_{CLAMPS[op.mods.get('clamp', 'trap')]}")
    reduction = {"op": operation(op, kind), "type": type_code(kind.name)} if "op" in op.mods else {}
    flags = lib.PE_SITE_MEASURED if code == lib.PE_SUST_P and t.numerics.measured_stores else 0
    constants = site(
        "surface", op, kind=code, geom=geometry(op), clamp=clamp, element=kind.bytes, count=count, flags=flags, **reduction,
    )  # fmt: skip
    handle, size = t.handle(op["s"]), kind.bytes
    axes, layer, _ = coordinates(op.mods["geom"], t.readers(op["coordinates"], B32))
    places = [*axes, *[None] * (3 - len(axes)), layer]

    def step(warp: Any, group: list[Lane]) -> None:
        transfer = warp.grid.transfer
        handles = transfer.fill(HANDLES, 8, group, handle)
        given = [ffi.NULL if read is None else transfer.fill(FIRST + i, WORD, group, read) for i, read in enumerate(places)]
        area = transfer.area(DATA)
        lane_data(warp, DATA, group, data, size)
        warp.grid.call("pe_surface", warp, constants, mask_of(group), handles, *given, area.pointer)
        take(area, size, group, writers)

    return step


def query(t: Translator, op: Op, function: str, which: int, level: Reader | None = None) -> Step:
    """suq, txq: one word of each lane."""
    handle, writers = t.handle(op.get("t") or op["s"]), t.writers(op)

    def step(warp: Any, group: list[Lane]) -> None:
        transfer = warp.grid.transfer
        handles, area = transfer.fill(HANDLES, 8, group, handle), transfer.area(DATA)
        levels = [] if function == "pe_suq" else [ffi.NULL if level is None else transfer.fill(FIRST, WORD, group, level)]
        warp.grid.call(function, warp, op.pos, which, mask_of(group), handles, *levels, area.pointer)
        take(area, WORD, group, writers)

    return step


@method("suq")
def suq(t: Translator, op: Op) -> Step:
    return query(t, op, "pe_suq", getattr(lib, f"PE_SUQ_{op.mods['query'].upper()}"))


@method("txq")
def txq(t: Translator, op: Op) -> Step:
    level = t.readers(op["lod"], B32)[0] if "level" in op.mods else None
    return query(t, op, "pe_txq", getattr(lib, f"PE_TXQ_{op.mods['query'].upper()}"), level)


@method("istypep")
def istypep(t: Translator, op: Op) -> Step:
    """Is it the handle of a bound surface, texture or sampler?"""
    handle, writers = t.handle(op["a"]), t.writers(op)
    surfaces = op.mods["type"] == "surfref"
    leading = [] if surfaces else [int(op.mods["type"] == "samplerref")]

    def step(warp: Any, group: list[Lane]) -> None:
        handles = warp.grid.transfer.fill(HANDLES, 8, group, handle)
        bits = warp.grid.call("pe_is_surface" if surfaces else "pe_is_texture", warp, *leading, mask_of(group), handles)
        for lane in group:
            write_all(writers, lane, [bits >> lane.index & 1])

    return step


# ---------------------------------------------------------------- textures


@method("tex", "tld4")
def texture(t: Translator, op: Op) -> Step:
    """The residency predicate is true, as all tiles are in memory, and a reference of depth is not looked at."""
    result, count = op.type("dtype"), int(op.mods["vec"][1:])
    rows, lod, offsets = _rows(t, op)
    wanted = _wanted(op, result.name == "f16x2")
    gather = 1 + "rgba".index(op.mods["comp"]) if "comp" in op.mods else 0
    kind = OTHER_BITS.get(result.name, lib.PE_RESULT_B32)
    constants = site(
        "texture", op, geom=geometry(op), integer=counts_texels(op.mods), lod=lod, offsets=offsets, result=kind, gather=gather,
        wanted=wanted,
    )  # fmt: skip
    handle, sampler = t.handle(op["t"]), None if isinstance(op["sampler"], Imm) else t.handle(op["sampler"])
    writers = t.writers(op)
    stacked, out = ffi.new("uint32_t[]", max(len(rows), 1) * LANES), ffi.new("uint32_t[]", 4 * LANES)

    def step(warp: Any, group: list[Lane]) -> None:
        transfer = warp.grid.transfer
        handles = transfer.fill(HANDLES, 8, group, handle)
        samplers = ffi.NULL if sampler is None else transfer.fill(SAMPLERS, 8, group, sampler)
        for number, read in enumerate(rows):
            for lane in group:
                stacked[number * LANES + lane.index] = read(lane)
        warp.grid.call("pe_tex", warp, constants, mask_of(group), handles, samplers, stacked, out)
        for lane in group:
            values = [out[number * LANES + lane.index] & (1 << result.bits) - 1 for number in range(count)]
            write_all(writers, lane, [*values, 1][: len(writers)])

    return step


def _rows(t: Translator, op: Op) -> tuple[list[Reader], int, int]:
    """The operands as the engine wants them, the kind of level of detail, and whether offsets are among them."""
    axes, layer, sample = coordinates(op.mods["geom"], t.readers(op["coordinates"], B32))
    rows = [*axes, *(read for read in (layer, sample) if read is not None)]
    mode, lod = op.mods.get("mode"), lib.PE_LOD_LEAST
    if mode == "level":
        rows, lod = rows + t.readers(op["lod"], B32), lib.PE_LOD_LEVEL
    elif mode == "grad":
        for name in "xy":
            rows += t.readers(op[name], B32)[: len(axes)]
        lod = lib.PE_LOD_GRADIENT
    offsets = [] if op.get("e") is None else t.readers(op["e"], B32)[: len(axes)]
    return rows + offsets, int(lod), int(bool(offsets))


def _wanted(op: Op, packed: bool) -> int:
    """The components that somebody reads, as a set."""
    each = 0b11 if packed else 1
    return sum(each << (2 if packed else 1) * index for index, dst in enumerate(op["d"]) if dst is not None)
