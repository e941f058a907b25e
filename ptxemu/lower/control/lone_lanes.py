"""Values of one lane (:mod:`ptxemu.passes.lone_lanes`)."""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import U32
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect


@effect("_first_lane")
def first_lane(ctx: Context, op: Op) -> None:
    """The last lane if none is on."""
    some = ctx.scalar.bin("or", f"i{LANES}", ctx.bits_of(ctx.active), str(-(1 << (LANES - 1))))
    ctx.define(op, 0, ctx.scalar.intrinsic("cttz", f"i{LANES}", some, extra="i1 true"))


@effect("_lane_of")
def lane_of(ctx: Context, op: Op) -> None:
    """An element of the register's vector, which LLVM computes by itself where it can."""
    (kind,) = op.dst_types
    lane = op["lane"]
    index = f"i64 {lane.bits}" if isinstance(lane, Imm) else f"i32 {ctx.scalar_of(lane, U32)}"
    lanes = ctx.vector_of(op["a"], kind, raw=op["d"] in ctx.raw)
    ctx.define(op, 0, ctx.inst(f"extractelement {ctx.vector.ty(kind.llvm)} {lanes}, {index}"))
