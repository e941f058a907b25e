"""Values of one lane (:mod:`ptxemu.passes.lone_lanes`)."""

from __future__ import annotations

from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import U32
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.masks import first_lane


@effect("_first_lane")
def first_lane_on(ctx: Context, op: Op) -> None:
    """Blocks behind a branch that lanes part at are entered when one is on."""
    ctx.define(op, 0, first_lane(ctx))


@effect("_lane_of")
def lane_of(ctx: Context, op: Op) -> None:
    """An element of the register's vector, which LLVM computes by itself where it can."""
    (kind,) = op.dst_types
    lane = op["lane"]
    index = f"i64 {lane.bits}" if isinstance(lane, Imm) else f"i32 {ctx.scalar_of(lane, U32)}"
    lanes = ctx.vector_of(op["a"], kind, raw=op["d"] in ctx.raw)
    ctx.define(op, 0, ctx.inst(f"extractelement {ctx.vector.ty(kind.llvm)} {lanes}, {index}"))
