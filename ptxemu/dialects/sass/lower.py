"""Lowerings of what SASS has beyond PTX: SURED, RED on the program's own address space.

A device pointer becomes an address of the program's 40-bit space by its place in the arena: ``address = pointer -
arena_base + bias``.  The shared and local windows lie below the bias, so no buffer is in one (SURED and RED notes).
"""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.dialects.sass.table import ENGINE_TYPES, GEOMETRIES
from ptxemu.ir.geometry import AXES, Geometry
from ptxemu.ir.operations import find
from ptxemu.ir.ops import Op, Vec
from ptxemu.ir.types import B32, B64, U64, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.memory.atomics import lane_data, type_code
from ptxemu.lower.memory.surfaces import site_constant

CLAMPS = {"IGN": lib.PE_CLAMP_ZERO, "NEAR": lib.PE_CLAMP_NEAREST, "TRAP": lib.PE_CLAMP_TRAP}


@effect("sass_pointer")
def pointer(ctx: Context, op: Op) -> None:
    """A device pointer as an address of the program; null stays null."""
    shift = ctx.scalar.bin("sub", "i64", op.mods["bias"], ctx.field("arena_base"))
    vector = op["d"] is not None and not ctx.is_scalar(op["d"])
    emitter = ctx.vector if vector else ctx.scalar
    value = ctx.vector_of(op["a"], U64) if vector else ctx.scalar_of(op["a"], U64)
    moved = emitter.bin("add", "i64", value, ctx.splat("i64", shift) if vector else shift)
    null = emitter.icmp("eq", "i64", value, emitter.int(64, 0))
    ctx.define(op, 0, emitter.select(null, "i64", emitter.int(64, 0), moved))


@effect("sass_sured")
def sured(ctx: Context, op: Op) -> None:
    """SURED.D: the surface engine's reduction of every lane."""
    coordinates, data, handle = op["a"], op["b"], op["h"]
    assert isinstance(coordinates, Vec)
    dim, size = op.mods["dim"], op.mods["size"]
    kind, geometry = ENGINE_TYPES[size], GEOMETRIES[dim]
    unit = lib.PE_SURED_B if "BA" in op.mods else lib.PE_SURED_P
    site = site_constant(
        ctx, op, unit, getattr(lib, geometry.constant), CLAMPS[op.mods["clamp"]], kind.bytes, 1,
        find("sass", op.mods["op"], kind).code, type_code(kind), _flags(op),
    )  # fmt: skip
    places = []
    for place in _places(geometry):
        value = "null" if place is None else ctx.spill("i32", ctx.vector_of(coordinates.items[place], B32))
        places.append(("ptr", value))
    ctx.call(
        "void", "pe_surface", ("ptr", "%w"), ("ptr", site), ("i32", _lanes(ctx, op)),
        ("ptr", ctx.spill("i64", ctx.vector_of(handle, U64))), *places, ("ptr", lane_data(ctx, data, _bits(op))),
    )  # fmt: skip


def _places(geometry: Geometry) -> list[int | None]:
    """Which register of Ra holds x, y, z and the layer: the layer is the last."""
    axes = range(geometry.axes)
    return [axis if axis in axes else None for axis in range(len(AXES))] + [geometry.axes if geometry.indexed else None]


def _lanes(ctx: Context, op: Op) -> str:
    """The lanes that take part: not those of helper pixels."""
    bits, helper = ctx.bits_of(ctx.mask_of(op)), int(op.mods["helper"])
    return ctx.scalar.bin("and", "i32", bits, str(~helper & 0xFFFFFFFF)) if helper else bits


def _flags(op: Op) -> int:
    flags = lib.PE_ATOM_FTZ if "FTZ" in op.mods["size"] else 0
    if op.mods["dim"] == "1D_BUFFER" and op.mods["clamp"] != "NEAR":
        flags |= lib.PE_SITE_UNSIGNED_X
    return int(flags)


def _bits(op: Op) -> ScalarType:
    return B64 if ENGINE_TYPES[op.mods["size"]].bits == 64 else B32


@effect("sass_red")
def red(ctx: Context, op: Op) -> None:
    """RED: windows, alignment and region are tested by the runtime."""
    address, data = op["a"], op["b"]
    kind = ENGINE_TYPES[op.mods["size"]]
    code = find("sass", op.mods["op"], kind).code
    windows = [int(value) for value in op.mods["windows"].split(",")]
    flags = lib.PE_ATOM_FTZ if "FTZ" in op.mods["size"] else 0
    site = ctx.site(op, "pe_red_site", op=code, type=type_code(kind), flags=flags, bias=int(op.mods["bias"]), window=windows)
    ctx.call(
        "void", "pe_red", ("ptr", "%w"), ("ptr", site), ("i32", _lanes(ctx, op)),
        ("ptr", ctx.spill("i64", ctx.vector_of(address, U64))), ("ptr", lane_data(ctx, data, _bits(op))),
    )  # fmt: skip
