"""Addresses that a loop moves on, and how lanes lay before it (:mod:`ptxemu.passes.inductions`)."""

from __future__ import annotations

from ptxemu.analysis.runs import Runs
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import B32, ScalarType
from ptxemu.lower.core import runs
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect


def _lanes(ctx: Context, op: Op) -> tuple[ScalarType, str, int]:
    """The type and the vector of the op's numbers, and the step by which they are expected to go."""
    kind, step = op.type_of("a"), op["step"]
    assert kind is not None and isinstance(step, Imm)
    return kind, ctx.vector_of(op["a"], kind), step.bits


@effect("_in_step", size=30)
def in_step(ctx: Context, op: Op) -> None:
    kind, lanes, step = _lanes(ctx, op)
    ctx.define(op, 0, runs.in_step(ctx, kind.llvm, lanes, Runs(LANES, step)))


@effect("_line_start")
def line_start(ctx: Context, op: Op) -> None:
    kind, lanes, step = _lanes(ctx, op)
    ctx.define(op, 0, runs.line_start(ctx, kind.llvm, lanes, ctx.scalar_of(op["lanes"], B32), step))


@effect("_in_line", size=30)
def in_line(ctx: Context, op: Op) -> None:
    kind, lanes, step = _lanes(ctx, op)
    ctx.define(op, 0, runs.in_line(ctx, kind.llvm, lanes, ctx.scalar_of(op["start"], kind), step))


@effect("_moved")
def moved(ctx: Context, op: Op) -> None:
    """The sum; what else the op knows is read where lanes access memory."""
    (kind,) = op.dst_types
    by = ctx.splat(kind.llvm, ctx.scalar_of(op["by"], kind))
    ctx.define(op, 0, ctx.vector.bin("add", kind.llvm, ctx.vector_of(op["a"], kind), by))
