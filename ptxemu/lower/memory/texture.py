"""tex, tld4, txq: one call of the texture engine for all lanes (PTX ISA, "Texture Instructions")."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.geometry import GEOMETRIES, LAYER, SAMPLE, counts_texels
from ptxemu.ir.ops import Imm, Op, Operand, items_of
from ptxemu.ir.types import B32, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.memory.surfaces import first_active, handles, uniform_handle

RESULTS = {"f16": lib.PE_RESULT_F16, "f16x2": lib.PE_RESULT_F16X2}
LEVELS = {"level": lib.PE_LOD_LEVEL, "grad": lib.PE_LOD_GRADIENT}
COMPONENTS = "rgba"


def _rows(op: Op) -> tuple[list[Operand], bool]:
    """The operands in the order of the engine's rows, and whether offsets are among them."""
    geometry = GEOMETRIES[op.mods["geom"]]
    axes, indices = geometry.places(), (geometry.place(LAYER), geometry.place(SAMPLE))
    coordinates = items_of(op["coordinates"])
    rows = [coordinates[place] for place in (*axes, *(place for place in indices if place is not None))]
    if "lod" in op.row.names:
        rows.append(op["lod"])
    for name in ("x", "y", "e"):
        if (vector := op.get(name)) is not None:
            rows += items_of(vector)[: len(axes)]
    return rows, op.get("e") is not None


def _wanted(op: Op, result: ScalarType) -> int:
    """The components that are read, as a set."""
    each = 2 if result.name == "f16x2" else 1
    return sum(((1 << each) - 1) << each * index for index, dst in enumerate(op["d"]) if dst is not None)


def _site(ctx: Context, op: Op, offsets: bool, wanted: int) -> str:
    return ctx.site(
        op,
        "pe_texture_site",
        geom=getattr(lib, GEOMETRIES[op.mods["geom"]].constant),
        integer=int(counts_texels(op.mods)),
        lod=LEVELS.get(op.mods.get("mode", ""), lib.PE_LOD_LEAST),
        offsets=int(offsets),
        result=RESULTS.get(op.mods["dtype"], lib.PE_RESULT_B32),
        gather=1 + COMPONENTS.index(op.mods["comp"]) if "comp" in op.mods else 0,
        wanted=wanted,
    )


def _textures(ctx: Context, op: Op) -> tuple[str, list[tuple[str, str]]]:
    """The function for lanes with one texture or with several, and its arguments that say which."""
    own = isinstance(op["sampler"], Imm)
    handle = uniform_handle(ctx, op["t"]) if own else None
    if handle is not None:
        return "pe_tex_lanes", [("i64", handle)]
    return "pe_tex", [("ptr", handles(ctx, op["t"])), ("ptr", "null" if own else handles(ctx, op["sampler"]))]


def _stacked(ctx: Context, rows: list[Operand]) -> str:
    """The address of the operands' bits, one row of lanes after another."""
    slot = ctx.temporary(f"[{len(rows) * LANES} x i32]")
    for index, row in enumerate(rows):
        pointer = ctx.inst(f"getelementptr i32, ptr {slot}, i64 {index * LANES}")
        ctx.stmt(f"store <{LANES} x i32> {ctx.vector_of(row, B32)}, ptr {pointer}, align 64")
    return slot


@effect("tex", "tld4", size=70)
def tex(ctx: Context, op: Op) -> None:
    """Texture fetch; the residency predicate is true, as all tiles are in memory, and a reference of depth is not looked at."""
    result = op.type("dtype")
    wanted = _wanted(op, result)
    rows, offsets = _rows(op)
    out = ctx.temporary(f"[{4 * LANES} x i32]")
    site, mask, operands = _site(ctx, op, offsets, wanted), ctx.bits_of(ctx.mask_of(op)), _stacked(ctx, rows)
    function, textures = _textures(ctx, op)
    ctx.call("void", function, ("ptr", "%w"), ("ptr", site), ("i32", mask), *textures, ("ptr", operands), ("ptr", out))
    for index, dst in enumerate(op["d"]):
        if dst is None:
            continue
        pointer = ctx.inst(f"getelementptr i32, ptr {out}, i64 {index * LANES}")
        value = ctx.inst(f"load <{LANES} x i32>, ptr {pointer}, align 64")
        if result.bits < 32:
            value = ctx.vector.cast("trunc", "i32", value, f"i{result.bits}")
        ctx.define(op, index, ctx.vector.cast("bitcast", f"i{result.bits}", value, result.llvm))
    if op["p"] is not None:
        ctx.define(op, len(op["d"]), ctx.splat("i1", "true"))


@effect("txq", size=30)
def txq(ctx: Context, op: Op) -> None:
    """Query of a texture or sampler."""
    dst = op["d"]
    if dst is None:
        return
    out = ctx.temporary(f"<{LANES} x i32>")
    which = getattr(lib, f"PE_TXQ_{op.mods['query'].upper()}")
    level = ctx.spill("i32", ctx.vector_of(items_of(op["lod"])[0], B32)) if "level" in op.mods else "null"
    ctx.call(
        "void", "pe_txq", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(which)),
        ("i32", ctx.bits_of(ctx.mask_of(op))), ("ptr", handles(ctx, op.get("t") or op["s"])), ("ptr", level), ("ptr", out),
    )  # fmt: skip
    value = ctx.inst(f"load <{LANES} x i32>, ptr {out}, align 64")
    ctx.define(op, 0, first_active(ctx, value, "i32") if ctx.is_scalar(dst) else value)
