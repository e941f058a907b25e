"""Trips of unrolled loops that those for the rest make (:mod:`ptxemu.passes.rests`)."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.ir.types import PRED
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.passes.rests import COMPARISONS

MOST_BITS = 30
"""Of what is between the ends of an unrolled loop, so that its trips are numbers of 32 bits with those of the rest."""


@elementwise("_went")
def went(e: Emitter, op: Op, a: str, trips: str, step: str) -> str:
    (kind,), count = op.dst_types, op.type_of("trips")
    assert count is not None
    return _went(e, kind.bits, a, _as(e, count.bits, trips, kind.bits), step)


def _went(e: Emitter, bits: int, a: str, trips: str, step: str) -> str:
    return e.bin("add", f"i{bits}", a, e.bin("mul", f"i{bits}", trips, step))


@effect("_rest_trips", size=20)
def rest_trips(ctx: Context, op: Op) -> None:
    """None where lanes leave the rest together, or none comes to the unrolled loop."""
    kind = op["rest"].type
    t = ctx.vector.ty(kind.llvm)
    if ctx.is_uniform(op["d"]):
        ctx.define(op, 0, "0")
        ctx.define(op, 1, ctx.scalar_of(op["rest"], kind))
        return
    rest = ctx.inst(f"freeze {t} {ctx.vector_of(op['rest'], kind)}")  # the first lane may be off
    first = ctx.splat(kind.llvm, ctx.inst(f"extractelement {t} {rest}, i64 0"))
    enters = _enters(ctx, op)
    found = (ctx.vector.icmp("ne", kind.llvm, rest, first), enters)
    worth = ctx.scalar.conjunction([ctx.any(ctx.conjunction(ctx.active, lanes)) for lanes in found])
    (more,) = ctx.when(worth, lambda: [_trips(ctx, op, rest, enters)], None, [t])
    ctx.define(op, 0, more)
    ctx.define(op, 1, ctx.vector.bin("add", kind.llvm, rest, more))


def _enters(ctx: Context, op: Op) -> str:
    """The lanes that come to the unrolled loop."""
    enters = ctx.vector_of(op["enters"], PRED)
    return enters if op["so"].bits else ctx.vector.bin("xor", "i1", enters, ctx.vector.int(1, 1))


def _trips(ctx: Context, op: Op, rest: str, enters: str) -> str:
    """As many as there are steps from ``first`` to ``bound`` or beyond, each as many trips as it has copies, if all numbers of
    the unrolled loop begin where those of the rest end."""
    e, result, kind, copies, step = ctx.vector, op["rest"].type, op["step"].type, op["copies"].bits, op["step"].bits
    t, order, down = kind.llvm, COMPARISONS[op["how"].bits], step >> kind.bits - 1
    size = (1 << kind.bits) - step if down else step
    first, bound = (ctx.vector_of(end, kind) for end in (op["first"], op["bound"]))
    between = e.bin("sub", t, first, bound) if down else e.bin("sub", t, bound, first)
    fits = [
        e.icmp("ult", t, e.bin("sub", t, between, e.int(kind.bits, 1)), e.int(kind.bits, 1 << MOST_BITS)),
        e.icmp(order, t, first, bound),
        _ends(e, kind.bits, order, bound, between, size),
        e.icmp("ult", result.llvm, rest, e.int(result.bits, copies)),
        enters,
        *_meets(ctx, op, rest),
    ]
    steps = e.bin("lshr", t, e.bin("add", t, between, e.int(kind.bits, size - 1)), e.int(kind.bits, size.bit_length() - 1))
    trips = _as(e, kind.bits, e.bin("mul", t, steps, e.int(kind.bits, copies)), result.bits)
    return e.select(e.conjunction(fits), result.llvm, trips, e.int(result.bits, 0))


def _ends(e: Emitter, bits: int, order: str, bound: str, between: str, size: int) -> str:
    """Whether steps of a size come to the bound, or go beyond it without a way round."""
    t = f"i{bits}"
    if order == "ne":
        return e.icmp("eq", t, e.bin("and", t, between, e.int(bits, size - 1)), e.int(bits, 0))
    least = -(1 << bits - 1) if order[0] == "s" else 0
    if order.endswith("lt"):
        return e.icmp(f"{order[0]}lt", t, bound, e.int(bits, least + (1 << bits) - size))
    return e.icmp(f"{order[0]}ge", t, bound, e.int(bits, least + size))


def _meets(ctx: Context, op: Op, rest: str) -> list[str]:
    """Whether each number of the unrolled loop begins where that of the rest ends."""
    e, found, numbers = ctx.vector, [], op["numbers"]
    for pair in zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=True):
        kind = pair[0].type
        begun, going, step, ahead = (ctx.vector_of(number, kind) for number in pair)
        reached = _went(e, kind.bits, going, _as(e, op["rest"].type.bits, rest, kind.bits), step)
        found.append(e.icmp("eq", kind.llvm, begun, e.bin("add", kind.llvm, reached, ahead)))
    return found


def _as(e: Emitter, bits: int, value: str, wanted: int) -> str:
    """An unsigned number in another size."""
    return e.cast("trunc" if wanted < bits else "zext", f"i{bits}", value, f"i{wanted}")


@effect("_trip")
def trip(ctx: Context, op: Op) -> None:
    """Keep in mind what a fault behind it needs."""
    ctx.trip = op
