"""Updates of words of shared memory whose old values nobody wants, all lanes in order.

A CTA stays on one thread, so they are plain loads and stores.
"""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Operand
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import Access
from ptxemu.lower.core.context import Context
from ptxemu.lower.memory.lane_major import lane_data

TOGETHER = 4
"""Lanes in a trip of the loop."""


def each(ctx: Context, found: Access, operation: str, kind: ScalarType, operand: Operand) -> None:
    """Update the words at the narrow addresses of all lanes by an operation that LLVM calls as PTX does."""
    if ctx.in_loop:
        _loop(ctx, found, operation, kind, operand)
        return
    name, bits = f"pe_{operation}", f"i{kind.bits}"
    if ctx.is_uniform(operand):
        name, words = name + "_same", (bits, _same(ctx, kind, operand))
    else:
        words = "ptr", lane_data(ctx, operand, kind)
    places = ctx.in_memory("i32", found.narrow)
    ctx.call("void", f"{name}_{kind.bits}", ("i64", ctx.field("shared_base")), ("ptr", places), words)


def _same(ctx: Context, kind: ScalarType, operand: Operand) -> str:
    """What all lanes have, as an integer."""
    return ctx.convert(ctx.scalar_of(operand, kind), kind.llvm, f"i{kind.bits}", False)


def _loop(ctx: Context, found: Access, operation: str, kind: ScalarType, operand: Operand) -> None:
    """The same without a call, around which the vectors of a loop would be saved."""
    bits = f"i{kind.bits}"
    same = _same(ctx, kind, operand) if ctx.is_uniform(operand) else ""
    words = "" if same else lane_data(ctx, operand, kind)
    places, base = ctx.in_memory("i32", found.narrow), ctx.field("shared_base")
    body, done = ctx.new_label("lanes"), ctx.new_label("updated")
    first, following, space = ctx.fresh("lane"), ctx.fresh("lane"), ctx.noted_space
    before = ctx.label
    ctx.jump(body)
    ctx.start(body)
    ctx.stmt(f"{first} = phi i64 [ 0, %{before} ], [ {following}, %{body} ]")
    for number in range(TOGETHER):
        lane = ctx.scalar.bin("add", "i64", first, str(number))
        offset = _element(ctx, "i32", places, lane)
        address = ctx.scalar.bin("add", "i64", base, ctx.scalar.cast("zext", "i32", offset, "i64"))
        word = ctx.inst(f"inttoptr i64 {address} to ptr")
        old = ctx.inst(f"load {bits}, ptr {word}, align {kind.bytes}")
        value = ctx.scalar.bin(operation, bits, old, same or _element(ctx, bits, words, lane))
        ctx.stmt(f"store {bits} {value}, ptr {word}, align {kind.bytes}")
    ctx.stmt(f"{following} = add i64 {first}, {TOGETHER}")
    ctx.stmt(f"br i1 {ctx.scalar.icmp('eq', 'i64', following, str(LANES))}, label %{done}, label %{body}")
    ctx.start(done)
    ctx.noted_space = space


def _element(ctx: Context, kind: str, elements: str, number: str) -> str:
    return ctx.inst(f"load {kind}, ptr {ctx.inst(f'getelementptr {kind}, ptr {elements}, i64 {number}')}, align 4")
