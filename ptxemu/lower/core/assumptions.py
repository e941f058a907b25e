"""Values of a block that are assumed to be patterns (:mod:`ptxemu.analysis.assumed`), and what tells that they are.

Each has its base as long as the conditions hold, which are about the first and the last place of a pattern, as exact numbers of
64 bits, so that nothing wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from ptxemu.analysis.assumed import AT_LEAST, REMAINDER, Assumed
from ptxemu.analysis.shape import Shape, add, constant
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Op, Operand, Reg
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.emit import ELEMENTWISE

LARGEST = {True: 2**31 - 1, False: 2**32 - 1}
"""Of signed and unsigned numbers of 32 bits."""
SMALLEST = {True: -(2**31), False: 0}


class Assumptions(Struct, frozen=True):
    """``ops``, in order: what bases are made of.  ``shapes``: those of their results."""

    ops: Sequence[Op] = ()
    shapes: Mapping[Reg, Shape] = {}
    kept: Mapping[Op, Reg] = {}
    exact: frozenset[Op] = frozenset()


def assumptions_of(found: Assumed, ops: Sequence[Op]) -> Assumptions:
    """Those that some of the ops need."""
    shapes = {reg: found.shapes[reg] for op in ops for reg in op.results}
    kept = {op: found.kept[op] for op in ops if op in found.kept}
    return Assumptions(ops, shapes, kept, frozenset(found.exact.intersection(ops)))


@contextmanager
def assuming(ctx: Context, shapes: Mapping[Reg, Shape]) -> Iterator[None]:
    """Code that is emitted meanwhile takes some values for patterns, and keeps them to itself."""
    outer, shared = ctx.shape, ctx.shared_regs

    def shape(operand: Operand) -> Shape | None:
        base = operand.base if isinstance(operand, Addr) else operand
        if not isinstance(base, Reg) or base not in shapes:
            return outer(operand)
        offset = operand.offset if isinstance(operand, Addr) else 0
        return add(shapes[base], constant(LANES, offset % 2**64), 64) if offset else shapes[base]

    ctx.shape, ctx.shared_regs = shape, shared - shapes.keys()
    yield
    ctx.shape, ctx.shared_regs = outer, shared


def give(ctx: Context, shapes: Mapping[Reg, Shape]) -> None:
    """Keep all lanes of those values that others read."""
    for reg in shapes:
        if ctx.outlives_block(reg):
            with assuming(ctx, shapes):
                base, lanes = ctx.read(reg), ctx.spread(reg)
            ctx.bind(reg, lanes)
            ctx.names[reg] = base


def hold(ctx: Context, found: Assumptions, lower: Callable[[Context, Op], None]) -> list[str]:
    """Make the bases; some i1 that all hold where what is assumed holds."""
    conditions: list[str] = []
    for op in found.ops:
        if op in found.kept:
            ctx.bind(op.results[0], _base(ctx, op, found.kept[op], conditions))
        else:
            lower(ctx, op)
        if op in found.exact:
            conditions += _widens(ctx, op)
    return conditions


class Ends(Struct):
    """Exact first and last places of a pattern, i64, and how far they are from its base."""

    low: str
    high: str
    spread: tuple[int, int]


def _ends(ctx: Context, reg: Operand, kind: ScalarType) -> Ends:
    shape = ctx.shape(reg)
    assert shape is not None
    base = _exact(ctx, reg, kind)
    low, high = (ctx.scalar.bin("add", "i64", base, str(offset)) if offset else base for offset in shape.spread)
    return Ends(low, high, shape.spread)


def _exact(ctx: Context, operand: Operand, kind: ScalarType) -> str:
    return ctx.scalar.cast("sext" if kind.is_signed else "zext", "i32", ctx.scalar_of(operand, kind), "i64")


def _fits(ctx: Context, ends: Ends, kind: ScalarType) -> list[str]:
    """No lane is beyond the numbers of its type."""
    low, high = ends.spread
    below = [ctx.scalar.icmp("sge", "i64", ends.low, str(SMALLEST[kind.is_signed]))] if low < 0 else []
    return below + ([ctx.scalar.icmp("sle", "i64", ends.high, str(LARGEST[kind.is_signed]))] if high > 0 else [])


def _widens(ctx: Context, op: Op) -> list[str]:
    """No lane wraps where a pattern is widened."""
    kind = op.type_of("a")
    value = next(source for source in op.srcs if isinstance(source, Reg) and not ctx.is_uniform(source))
    assert kind is not None
    return _fits(ctx, _ends(ctx, value, kind), kind)


def _base(ctx: Context, op: Op, kept: Reg, conditions: list[str]) -> str:
    """What the base of the result is, if conditions hold that are added."""
    kind = op.type()
    ends = _ends(ctx, kept, kind)
    conditions += _fits(ctx, ends, kind)
    if op.opcode == REMAINDER:
        return _remainder(ctx, op, ends, conditions)
    (bound,) = (source for source in op.srcs if source is not kept)
    least = op.opcode == AT_LEAST
    end = ends.low if least else ends.high
    conditions.append(ctx.scalar.icmp("sge" if least else "sle", "i64", end, _exact(ctx, bound, kind)))
    return ctx.scalar_of(kept, kind)


def _remainder(ctx: Context, op: Op, ends: Ends, conditions: list[str]) -> str:
    """That of the first place, if the last one has it with the same quotient; dividends below 0 have others."""
    kind, divisor = op.type(), op["b"]
    first = ctx.scalar.cast("trunc", "i64", ends.low, "i32")
    rest = str(ELEMENTWISE[op.row.lower](ctx.scalar, op, first, ctx.scalar_of(divisor, kind)))
    low, high = ends.spread
    wide = ctx.scalar.cast("sext" if kind.is_signed else "zext", "i32", rest, "i64")
    last = ctx.scalar.bin("add", "i64", wide, str(high - low))
    conditions.append(ctx.scalar.icmp("slt", "i64", last, _exact(ctx, divisor, kind)))
    conditions.append(ctx.scalar.icmp("sge", "i64", ends.low, "0"))
    return ctx.scalar.bin("sub", "i32", rest, str(low)) if low else rest
