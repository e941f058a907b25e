"""Lowerings of what SASS has beyond PTX: SURED, RED on the program's own address space.

A device pointer becomes an address of the program's 40-bit space by its place in the arena: ``address = pointer -
arena_base + bias``.  The shared and local windows lie below the bias, so no buffer is in one (SURED and RED notes).
"""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import lib
from ptxemu.dialects.operations import find_sass
from ptxemu.dialects.sass.table import ENGINE_TYPES, GEOMETRIES
from ptxemu.ir.geometry import AXES
from ptxemu.ir.ops import Op, Vec
from ptxemu.ir.types import B32, B64, U64, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.memory.atomics import type_code
from ptxemu.lower.memory.lane_major import lane_data

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
    site = ctx.site(op, "pe_surface_site", **sured_site(op))
    places = []
    for place in coordinate_places(op):
        value = "null" if place is None else ctx.spill("i32", ctx.vector_of(coordinates.items[place], B32))
        places.append(("ptr", value))
    ctx.call(
        "void", "pe_surface", ("ptr", "%w"), ("ptr", site), ("i32", _lanes(ctx, op)),
        ("ptr", ctx.spill("i64", ctx.vector_of(handle, U64))), *places, ("ptr", lane_data(ctx, data, word_of(op))),
    )  # fmt: skip


def sured_site(op: Op) -> dict[str, int]:
    """The fields of a ``pe_surface_site``."""
    kind, mods = _kind(op), op.mods
    flags = _float_flags(op) | (lib.PE_SITE_UNSIGNED_X if mods["dim"] == "1D_BUFFER" and mods["clamp"] != "NEAR" else 0)
    return {
        "kind": lib.PE_SURED_B if "BA" in mods else lib.PE_SURED_P, "geom": getattr(lib, GEOMETRIES[mods["dim"]].constant),
        "clamp": CLAMPS[mods["clamp"]], "element": kind.bytes, "count": 1, "op": find_sass(mods["op"], kind).code,
        "type": type_code(kind), "flags": flags, "channel": 0,
    }  # fmt: skip


def coordinate_places(op: Op) -> list[int | None]:
    """Which register of Ra holds x, y, z and the layer: the layer is the last."""
    geometry = GEOMETRIES[op.mods["dim"]]
    axes = range(geometry.axes)
    return [axis if axis in axes else None for axis in range(len(AXES))] + [geometry.axes if geometry.indexed else None]


def _lanes(ctx: Context, op: Op) -> str:
    """The lanes that take part: not those of helper pixels."""
    bits, helper = ctx.bits_of(ctx.mask_of(op)), int(op.mods["helper"])
    return ctx.scalar.bin("and", "i32", bits, str(~helper & 0xFFFFFFFF)) if helper else bits


def _kind(op: Op) -> ScalarType:
    return ENGINE_TYPES[op.mods["size"]]


def _float_flags(op: Op) -> int:
    return int(lib.PE_ATOM_FTZ) if "FTZ" in op.mods["size"] else 0


def word_of(op: Op) -> ScalarType:
    """What the data register, or the pair of them, is read as."""
    return B64 if _kind(op).bits == 64 else B32


@effect("sass_red")
def red(ctx: Context, op: Op) -> None:
    """RED: windows, alignment and region are tested by the runtime."""
    site = ctx.site(op, "pe_red_site", **red_site(op))
    ctx.call(
        "void", "pe_red", ("ptr", "%w"), ("ptr", site), ("i32", _lanes(ctx, op)),
        ("ptr", ctx.spill("i64", ctx.vector_of(op["a"], U64))), ("ptr", lane_data(ctx, op["b"], word_of(op))),
    )  # fmt: skip


def red_site(op: Op) -> dict[str, Any]:
    """The fields of a ``pe_red_site``."""
    kind, windows = _kind(op), [int(value) for value in op.mods["windows"].split(",")]
    return {
        "op": find_sass(op.mods["op"], kind).code, "type": type_code(kind), "flags": _float_flags(op),
        "bias": int(op.mods["bias"]), "window": windows,
    }  # fmt: skip
