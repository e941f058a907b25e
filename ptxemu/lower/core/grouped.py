"""Values with one base for each group of lanes (:mod:`ptxemu.analysis.grouped`): arrays of scalars in LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ptxemu.analysis.runs import within
from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Operand, Reg
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.literals import offsets_literal

if TYPE_CHECKING:
    from ptxemu.lower.core.context import Context


def array_type(t: str, count: int) -> str:
    return f"[{count} x {t}]"


def array_of(ctx: Context, t: str, bases: Sequence[str]) -> str:
    """Scalars of LLVM type ``t`` as one value."""
    whole, value = array_type(t, len(bases)), "poison"
    for index, base in enumerate(bases):
        value = ctx.inst(f"insertvalue {whole} {value}, {t} {base}, {index}")
    return value


def bases_of(ctx: Context, operand: Operand, kind: ScalarType) -> list[str]:
    """An integer as a scalar for each group: its bases, or what a pattern has in the first lanes of groups."""
    if isinstance(operand, Reg) and ctx.is_grouped(operand):
        whole, t = ctx.read(operand), ctx.full_type(operand)
        places = (f"extractvalue {t} {whole}, {index}" for index in range(len(ctx.firsts)))
        return [ctx.narrow(ctx.kept(place, partial(ctx.inst, place)), operand, kind) for place in places]
    return first_lanes(ctx, operand, kind, ctx.scalar_of(operand, kind))


def first_lanes(ctx: Context, operand: Operand, kind: ScalarType, base: str) -> list[str]:
    """What a pattern with this base has in the first lane of each group."""
    shape = ctx.shape(operand)
    assert shape is not None
    offsets = (shape.offsets[first] for first in ctx.firsts)
    return [ctx.scalar.bin("add", kind.llvm, base, str(offset)) if offset else base for offset in offsets]


def shape_of(ctx: Context, operand: Operand) -> Shape | None:
    """The shape of an operand within groups, relative to the first lane of each."""
    if isinstance(operand, Reg) and ctx.is_grouped(operand):
        return ctx.groups[operand]
    found = ctx.shape(operand)
    return found and within(found, LANES // len(ctx.firsts))


def lanes_of(ctx: Context, t: str, bases: Sequence[str], offsets: Sequence[int]) -> str:
    """All lanes of integers of LLVM type ``t``: the base of the group, and an offset for each lane."""
    narrow, value = f"<{len(bases)} x {t}>", "poison"
    for index, base in enumerate(bases):
        value = ctx.inst(f"insertelement {narrow} {value}, {t} {base}, i64 {index}")
    picks = ", ".join(f"i32 {lane * len(bases) // LANES}" for lane in range(LANES))
    value = ctx.inst(f"shufflevector {narrow} {value}, {narrow} poison, <{LANES} x i32> <{picks}>")
    return ctx.vector.bin("add", t, value, offsets_literal(offsets, t)) if any(offsets) else value
