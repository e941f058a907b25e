"""suld, sust, sured, suq, istypep: one call of the surface engine for all lanes (PTX ISA "Surface Instructions")."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.geometry import AXES, GEOMETRIES, LAYER
from ptxemu.ir.ops import Op, Operand, SymRef, items_of
from ptxemu.ir.types import B32, U64, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.special import symbol_value
from ptxemu.lower.memory.atomics import lane_data, load_lane_data, operation, type_code

CLAMPS = {"trap": lib.PE_CLAMP_TRAP, "clamp": lib.PE_CLAMP_NEAREST, "zero": lib.PE_CLAMP_ZERO}


def handles(ctx: Context, operand: Operand) -> str:
    """The address of every lane's surface handle."""
    if isinstance(operand, SymRef):
        variable = operand.symbol
        if variable in ctx.layout.params:
            start = ctx.scalar.bin("add", "i64", ctx.field("param_base"), str(ctx.layout.params[variable]))
            value = ctx.inst(f"load i64, ptr {ctx.inst(f'inttoptr i64 {start} to ptr')}, align 8")
        else:
            value = symbol_value(ctx, operand)
        return ctx.spill("i64", ctx.splat("i64", value))
    return ctx.spill("i64", ctx.vector_of(operand, U64))


def _coordinates(ctx: Context, op: Op) -> list[tuple[str, str]]:
    items, found = items_of(op["coordinates"]), []
    for letter in (*AXES, LAYER):
        place = GEOMETRIES[op.mods["geom"]].place(letter)
        found.append(("ptr", "null" if place is None else ctx.spill("i32", ctx.vector_of(items[place], B32))))
    return found


def _site(ctx: Context, op: Op, kind: int, data: ScalarType, count: int) -> str:
    """The address of a ``pe_surface_site``."""
    reduction = "op" in op.mods
    return ctx.site(
        op, "pe_surface_site", kind=kind, geom=getattr(lib, GEOMETRIES[op.mods["geom"]].constant),
        clamp=CLAMPS[op.mods.get("clamp", "trap")], element=data.bytes, count=count,
        op=operation(op.mods["op"], data) if reduction else 0, type=type_code(data) if reduction else 0, flags=0, channel=0,
    )  # fmt: skip


def _call(ctx: Context, op: Op, site: str, data: str) -> None:
    ctx.call(
        "void", "pe_surface", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))),
        ("ptr", handles(ctx, op["s"])), *_coordinates(ctx, op), ("ptr", data),
    )  # fmt: skip


@effect("suld", size=60)
def suld(ctx: Context, op: Op) -> None:
    """Surface load; lanes that get nothing (clamp mode zero) read zero."""
    kind, count = op.type(), len(op.dsts)
    slot = ctx.temporary(f"<{LANES * count} x i{kind.bits}>")
    _call(ctx, op, _site(ctx, op, lib.PE_SULD_B, kind, count), slot)
    for index, value in enumerate(load_lane_data(ctx, slot, kind, count)):
        ctx.define(op, index, value)


@effect("sust", size=60)
def sust(ctx: Context, op: Op) -> None:
    """Surface store, raw (.b) or formatted (.p)."""
    kind = op.type()
    code = lib.PE_SUST_P if op.mods["mode"] == "p" else lib.PE_SUST_B
    _call(ctx, op, _site(ctx, op, code, kind, len(items_of(op["v"]))), lane_data(ctx, op["v"], kind))


@effect("sured", size=60)
def sured(ctx: Context, op: Op) -> None:
    """Surface reduction."""
    kind = op.type()
    code = lib.PE_SURED_P if op.mods["mode"] == "p" else lib.PE_SURED_B
    _call(ctx, op, _site(ctx, op, code, kind, 1), lane_data(ctx, op["v"], kind))


@effect("suq", size=20)
def suq(ctx: Context, op: Op) -> None:
    """Surface query."""
    dst = op["d"]
    if dst is None:
        return
    out = ctx.temporary(f"<{LANES} x i32>")
    which = getattr(lib, f"PE_SUQ_{op.mods['query'].upper()}")
    ctx.call(
        "void", "pe_suq", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(which)),
        ("i32", ctx.bits_of(ctx.mask_of(op))), ("ptr", handles(ctx, op["s"])), ("ptr", out),
    )  # fmt: skip
    value = ctx.inst(f"load <{LANES} x i32>, ptr {out}, align 64")
    ctx.define(op, 0, first_active(ctx, value, "i32") if ctx.is_scalar(dst) else value)


def first_active(ctx: Context, value: str, t: str) -> str:
    """The value of the first active lane."""
    lane = ctx.scalar.intrinsic("cttz", f"i{LANES}", ctx.bits_of(ctx.active), extra="i1 true")
    return ctx.inst(f"extractelement <{LANES} x {t}> {value}, i32 {lane}")


@effect("istypep")
def istypep(ctx: Context, op: Op) -> None:
    """Is the register the handle of a bound surface, texture or sampler?"""
    dst = op["d"]
    if dst is None:
        return
    everyone, address = ctx.bits_of(ctx.active), handles(ctx, op["a"])
    if op.mods["type"] == "surfref":
        bits = ctx.call("i32", "pe_is_surface", ("ptr", "%w"), ("i32", everyone), ("ptr", address))
    else:
        sampler = str(int(op.mods["type"] == "samplerref"))
        bits = ctx.call("i32", "pe_is_texture", ("ptr", "%w"), ("i32", sampler), ("i32", everyone), ("ptr", address))
    value = ctx.mask_from_bits(bits)
    ctx.define(op, 0, first_active(ctx, value, "i1") if ctx.is_scalar(dst) else value)
