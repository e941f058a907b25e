"""suld, sust, sured, suq, istypep: one call of the surface engine for all lanes (PTX ISA "Surface Instructions")."""

from __future__ import annotations

from functools import partial

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.geometry import AXES, GEOMETRIES, LAYER
from ptxemu.ir.observed import tells_texels
from ptxemu.ir.ops import Op, Operand, SymRef, items_of
from ptxemu.ir.types import B32, U64, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.masks import first_lane
from ptxemu.lower.core.special import symbol_value
from ptxemu.lower.core.telling import texels_pass
from ptxemu.lower.memory import consecutive, texel_lanes, texel_rows, twins
from ptxemu.lower.memory.atomics import operation, type_code
from ptxemu.lower.memory.lane_major import lane_data
from ptxemu.lower.memory.texel_rows import Rows

CLAMPS = {"trap": lib.PE_CLAMP_TRAP, "clamp": lib.PE_CLAMP_NEAREST, "zero": lib.PE_CLAMP_ZERO}


def handles(ctx: Context, operand: Operand) -> str:
    """The address of every lane's surface handle."""
    value = _named_handle(ctx, operand) if isinstance(operand, SymRef) else ""
    return ctx.spill("i64", ctx.splat("i64", value) if value else ctx.vector_of(operand, U64))


def _named_handle(ctx: Context, operand: SymRef) -> str:
    """The handle in a parameter or variable."""
    variable = operand.symbol
    if variable not in ctx.layout.params:
        return symbol_value(ctx, operand)
    start = ctx.scalar.bin("add", "i64", ctx.field("param_base"), str(ctx.layout.params[variable]))
    return ctx.inst(f"load i64, ptr {ctx.inst(f'inttoptr i64 {start} to ptr')}, align 8")


def uniform_handle(ctx: Context, operand: Operand) -> str | None:
    """The handle of all lanes, None if it may vary."""
    if isinstance(operand, SymRef):
        return ctx.kept(f"handle {id(operand.symbol)} {operand.offset}", lambda: _named_handle(ctx, operand))
    shape = ctx.shape(operand)
    return ctx.scalar_of(operand, U64) if shape is not None and shape.uniform else None


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
        op=operation(op.mods["op"], data) if reduction else 0, type=type_code(data) if reduction else 0,
        flags=_flags(ctx, kind, reduction), channel=0,
    )  # fmt: skip


def _flags(ctx: Context, kind: int, reduction: bool) -> int:
    if kind == lib.PE_SUST_P and ctx.unit.numerics.measured_stores:
        return int(lib.PE_SITE_MEASURED)
    return int(lib.PE_SITE_SUMS) if reduction and ctx.strays is not None else 0


def _call(ctx: Context, op: Op, site: str, data: str, rows: Rows | None = None) -> None:
    if rows is not None:
        texel_rows.call(ctx, op, rows, site, data)
        return
    ctx.call(
        "void", "pe_surface", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))),
        ("ptr", handles(ctx, op["s"])), *_coordinates(ctx, op), ("ptr", data),
    )  # fmt: skip


@effect("suld", size=60)
def suld(ctx: Context, op: Op) -> None:
    """Surface load; lanes that get nothing (clamp mode zero) read zero."""
    kind, count = op.type(), len(op.dsts)
    bits, size = f"i{kind.bits}", kind.bytes * count
    handle, site = uniform_handle(ctx, op["s"]), _site(ctx, op, lib.PE_SULD_B, kind, count)
    rows = texel_rows.rows_of(ctx, op, handle, size)
    lanes = texel_lanes.texels_of(ctx, op, handle, size) if rows is None else None

    def called() -> list[str]:
        slot = ctx.temporary(f"<{LANES * count} x {bits}>")
        _call(ctx, op, site, slot, rows)
        return [slot] if rows is None else texel_rows.parts(ctx, rows, slot)

    def loaded() -> list[str]:
        return consecutive.load(ctx, bits, count, called())

    if rows is not None:
        texels = texel_rows.pointers(ctx, rows)
        ready = texels_pass(ctx, op, False, texel_rows.inside(ctx, rows), texels, rows.bytes)
        places = ctx.when(ready, lambda: texels, called, ["ptr"] * rows.groups, likely=True)
        values = consecutive.load(ctx, bits, count, places)
    elif lanes is not None:
        gathered = partial(texel_lanes.load, ctx, lanes, bits, count)
        values = ctx.when(lanes.ready, gathered, loaded, [f"<{LANES} x {bits}>"] * count, likely=True)
    else:
        values = loaded()
    for index, value in enumerate(values):
        ctx.define(op, index, ctx.vector.cast("bitcast", bits, value, kind.llvm))


@effect("sust", size=60)
def sust(ctx: Context, op: Op) -> None:
    """Surface store, raw (.b) or formatted (.p)."""
    kind, items = op.type(), items_of(op["v"])
    raw, count, bits = op.mods["mode"] == "b", len(items), f"i{kind.bits}"
    size, handle = kind.bytes * count, uniform_handle(ctx, op["s"])
    site = _site(ctx, op, lib.PE_SUST_B if raw else lib.PE_SUST_P, kind, count)
    rows = texel_rows.rows_of(ctx, op, handle, size) if raw else None
    lanes = texel_lanes.texels_of(ctx, op, handle, size) if raw and rows is None else None

    def called() -> list[str]:
        _call(ctx, op, site, lane_data(ctx, op["v"], kind), rows)
        return []

    def values() -> list[str]:
        return [ctx.convert(ctx.vector_of(item, kind), kind.llvm, bits, True) for item in items]

    def stored() -> list[str]:
        assert rows is not None
        registers = consecutive.weave(ctx, values(), bits, rows.groups)
        return consecutive.store(ctx, bits, registers, count, texel_rows.pointers(ctx, rows))

    def scattered() -> list[str]:
        assert lanes is not None
        return texel_lanes.store(ctx, lanes, bits, values())

    if rows is not None:
        everyone = ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(ctx.mask_of(op)), "-1")
        ready = ctx.scalar.bin("and", "i1", everyone, texel_rows.inside(ctx, rows))
        if tells_texels(ctx.unit.observed):
            ready = texels_pass(ctx, op, True, ready, texel_rows.pointers(ctx, rows), rows.bytes)
        ctx.when(ready, stored, called, [], likely=True)
    elif lanes is not None:
        ctx.when(lanes.ready, scattered, called, [], likely=True)
    else:
        called()


@effect("sured", size=60)
def sured(ctx: Context, op: Op) -> None:
    """Surface reduction; sums in the worker's twin, where there is one."""
    kind = op.type()
    code = lib.PE_SURED_P if op.mods["mode"] == "p" else lib.PE_SURED_B

    def called() -> list[str]:
        _call(ctx, op, _site(ctx, op, code, kind, 1), lane_data(ctx, op["v"], kind))
        return []

    texels = texel_lanes.texels_of(ctx, op, uniform_handle(ctx, op["s"]), kind.bytes) if ctx.strays is not None else None
    if texels is None:
        called()
        return
    twins.add(ctx, twins.Sums(op, kind, texels.addresses(ctx), texels.mask, op["v"]), texels.ready, called)


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
    lane = first_lane(ctx)
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
