"""Values of all lanes in memory, the elements of each lane side by side, as functions of the runtime take and give them."""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Operand, items_of
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.memory import consecutive


def lane_data(ctx: Context, operand: Operand, kind: ScalarType) -> str:
    """The address of a lane-major copy of a scalar or vector operand."""
    bits = f"i{kind.bits}"
    values = [ctx.convert(ctx.vector_of(item, kind), kind.llvm, bits, True) for item in items_of(operand)]
    slot = ctx.temporary(f"<{LANES * len(values)} x {bits}>")
    consecutive.store(ctx, bits, consecutive.weave(ctx, values, bits), len(values), slot)
    return slot


def load_lane_data(ctx: Context, slot: str, kind: ScalarType, count: int) -> list[str]:
    """Read lane-major results back as one vector for each element."""
    bits = f"i{kind.bits}"
    parts = consecutive.load(ctx, bits, count, slot)
    return [ctx.vector.cast("bitcast", bits, part, kind.llvm) for part in parts]
