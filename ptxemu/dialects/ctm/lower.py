"""Lowerings of what CTM has beyond PTX: texels read and written, UMRT writes, the conditional test."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, SymRef
from ptxemu.ir.types import B32
from ptxemu.isa.table import internal_row
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.special import symbol_value
from ptxemu.lower.memory.lane_major import lane_data, load_lane_data

LOAD = internal_row("_ctm_load", "d:*4, s, x, y", does="reads s, varying")
STORE = internal_row("_ctm_store", "s, x, y, v:*4, channels", does="writes s")
UMRT = internal_row("_ctm_umrt", "s, red, green, blue, alpha, channels", does="updates s")
TEST = internal_row("_ctm_test", "d, s, x, y, value", does="updates s, varying")


def ctm_site(op: Op) -> dict[str, int]:
    """The fields of a ``pe_ctm_site``."""
    names = {"2x2": lib.PE_CTM_2X2, "same": lib.PE_CTM_SAME_INDEX, "update": lib.PE_CTM_UPDATE}
    flags = sum(int(flag) for name, flag in names.items() if name in op.mods)
    return {"flags": flags, **{name: int(op.mods.get(name, 0)) for name in ("op", "group", "condition")}}


def _call(ctx: Context, op: Op, result: str, name: str, *data: str) -> str:
    surface, site = op["s"], ctx.site(op, "pe_ctm_site", **ctm_site(op))
    assert isinstance(surface, SymRef)
    return ctx.call(
        result, name, ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))),
        ("i64", symbol_value(ctx, surface)), *(("ptr", item) for item in data),
    )  # fmt: skip


def _words(ctx: Context, op: Op, *names: str) -> list[str]:
    """Addresses of lane-major copies of some operands."""
    return [lane_data(ctx, op[name], B32) for name in names]


@effect("_ctm_load")
def load(ctx: Context, op: Op) -> None:
    """Texels at x, y, which are floats: red, green, blue, alpha."""
    slot = ctx.temporary(f"<{LANES * 4} x i32>")
    _call(ctx, op, "void", "pe_ctm_load", *_words(ctx, op, "x", "y"), slot)
    for index, value in enumerate(load_lane_data(ctx, slot, B32, 4)):
        ctx.define(op, index, value)


@effect("_ctm_store")
def store(ctx: Context, op: Op) -> None:
    """The channels of the mask get their values."""
    _call(ctx, op, "void", "pe_ctm_store", *_words(ctx, op, "x", "y", "v", "channels"))


@effect("_ctm_umrt")
def umrt(ctx: Context, op: Op) -> None:
    """UMRT: an update of each channel of the mask, at the point's own texel."""
    _call(ctx, op, "void", "pe_ctm_umrt", *_words(ctx, op, "red", "green", "blue", "alpha", "channels"))


@effect("_ctm_test")
def test(ctx: Context, op: Op) -> None:
    """The conditional test, whose result is a predicate."""
    bits = _call(ctx, op, "i32", "pe_ctm_test", *_words(ctx, op, "x", "y", "value"))
    ctx.define(op, 0, ctx.mask_from_bits(bits))
