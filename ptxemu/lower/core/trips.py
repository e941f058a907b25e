"""Which instructions faults name in loops that make the trips of others (:mod:`ptxemu.passes.rests`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxemu.ir.ops import Reg
from ptxemu.ir.types import U32
from ptxemu.lower.core.context import Context


@contextmanager
def noted(ctx: Context) -> Iterator[None]:
    """While the runtime examines accesses of a block, it knows in which trips its lanes are."""
    op = ctx.trip
    if op is None:
        yield
        return
    copies, positions = op["copies"].bits, [position.bits for position in op["positions"]]
    table = [len(positions) // (copies + 1), copies, *positions]
    words = ", ".join(f"i32 {word}" for word in table)
    places = [("ptr", _in_memory(ctx, source)) for source in (op["left"], op["more"])]
    constant = ctx.constant(f"[{len(table)} x i32] [{words}]")
    ctx.call("void", "pe_note_trip", ("ptr", "%w"), ("ptr", constant), *places, attributes="cold")
    yield
    ctx.call("void", "pe_note_trip", ("ptr", "%w"), *[("ptr", "null")] * 3, attributes="cold")


def _in_memory(ctx: Context, count: Reg) -> str:
    """A number of trips, which has 32 bits, of every lane."""
    value = ctx.vector_of(count, count.type)
    if count.type.bits > U32.bits:
        value = ctx.vector.cast("trunc", count.type.llvm, value, U32.llvm)
    return ctx.in_memory(U32.llvm, value)
