"""Updates of words whose old values nobody wants, by all lanes in order: plain loads and stores, in memory that one thread has to
itself, such as that of a CTA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.operations import find
from ptxemu.ir.ops import Operand
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.float_bits import canonical
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.memory.lane_major import lane_data

Beside: TypeAlias = Callable[[str, str], None]  # of a lane, and of its place, as i64

TOGETHER = 4
"""Lanes in a trip of the loop."""

TESTED = 256
"""Bits that one instruction of AVX2 compares with zero."""


def are_words(ctx: Context, width: str, offsets: str, end: str, size: int) -> str:
    """i1: the offsets of all lanes, on or off, are those of words of a size that end before an offset, which is a multiple of it.

    Of an offset, and of its distance from that of the last word, no sign is set then, and no bit below the size.
    """
    last = ctx.splat(width, ctx.scalar.bin("sub", width, end, str(size)))
    both = ctx.vector.bin("or", width, offsets, ctx.vector.bin("sub", width, last, offsets))
    count, bits = LANES, int(width[1:])
    while count * bits > TESTED:
        count //= 2
        low, high = (_part(ctx, width, both, 2 * count, start, count) for start in (0, count))
        both = ctx.inst(f"or <{count} x {width}> {low}, {high}")
    bad = vector_literal(width, [size - 1 - (1 << bits - 1)] * count)
    wrong = ctx.inst(f"icmp ne <{count} x {width}> {ctx.inst(f'and <{count} x {width}> {both}, {bad}')}, zeroinitializer")
    return ctx.scalar.icmp("eq", f"i{count}", ctx.inst(f"bitcast <{count} x i1> {wrong} to i{count}"), "0")


def _part(ctx: Context, width: str, vector: str, whole: int, start: int, count: int) -> str:
    picks = ", ".join(f"i32 {lane}" for lane in range(start, start + count))
    kind = f"<{whole} x {width}>"
    return ctx.inst(f"shufflevector {kind} {vector}, {kind} poison, <{count} x i32> <{picks}>")


def each(ctx: Context, offsets: str, operation: str, kind: ScalarType, operand: Operand, beside: Beside | None = None) -> None:
    """Update the words of shared memory at the i32 offsets of all lanes by an operation that LLVM calls as PTX does.

    ``beside`` is that of :func:`loop`."""
    if ctx.in_loop or beside is not None or kind.is_float:
        loop(ctx, offsets, ctx.field("shared_base"), operation, kind, operand, beside)
        return
    name, bits = f"pe_{operation}", f"i{kind.bits}"
    if ctx.is_uniform(operand):
        name, words = name + "_same", (bits, _same(ctx, kind, operand))
    else:
        words = "ptr", lane_data(ctx, operand, kind)
    places = ctx.in_memory("i32", offsets)
    ctx.call("void", f"{name}_{kind.bits}", ("i64", ctx.field("shared_base")), ("ptr", places), words)


def _same(ctx: Context, kind: ScalarType, operand: Operand) -> str:
    """What all lanes have, as an integer."""
    return ctx.convert(ctx.scalar_of(operand, kind), kind.llvm, f"i{kind.bits}", False)


def loop(
    ctx: Context,
    offsets: str,
    base: str,
    operation: str,
    kind: ScalarType,
    operand: Operand,
    beside: Beside | None = None,
) -> None:
    """The same without a call, around which the vectors of a loop would be saved, and at any i32 offsets from a host
    address. ``beside`` makes what else is done for each lane."""
    bits = f"i{kind.bits}"
    same = _same(ctx, kind, operand) if ctx.is_uniform(operand) else ""
    words = "" if same else lane_data(ctx, operand, kind)

    def update(lane: str, place: str) -> None:
        word = ctx.inst(f"inttoptr i64 {ctx.scalar.bin('add', 'i64', base, place)} to ptr")
        old = ctx.inst(f"load {bits}, ptr {word}, align {kind.bytes}")
        value = _updated(ctx, operation, kind, old, same or _element(ctx, bits, words, lane))
        ctx.stmt(f"store {bits} {value}, ptr {word}, align {kind.bytes}")
        if beside is not None:
            beside(lane, place)

    if ctx.target.avx512 and beside is None:
        for lane, place in enumerate(_extracted(ctx, offsets)):
            update(str(lane), place)
    else:
        _in_trips(ctx, ctx.in_memory("i32", offsets), update)


def serves(ctx: Context, operation: str, kind: ScalarType) -> bool:
    """Whether code updates words by an operation: one that LLVM calls as PTX does, or a sum of f32, of which shared memory keeps
    subnormals."""
    return find(operation, kind).binary or (operation == "add" and kind.name == "f32" and not ctx.unit.daz)


def _updated(ctx: Context, operation: str, kind: ScalarType, old: str, operand: str) -> str:
    """As integers."""
    bits = f"i{kind.bits}"
    if not kind.is_float:
        return ctx.scalar.bin(operation, bits, old, operand)
    numbers = (ctx.scalar.cast("bitcast", bits, value, kind.llvm) for value in (old, operand))
    sum = canonical(ctx.scalar, kind.llvm, ctx.scalar.bin("fadd", kind.llvm, *numbers))
    return ctx.scalar.cast("bitcast", kind.llvm, sum, bits)


def _in_trips(ctx: Context, places: str, update: Beside) -> None:
    """A loop over all lanes, whose places are in memory."""
    body, done = ctx.new_label("lanes"), ctx.new_label("updated")
    first, following, space = ctx.fresh("lane"), ctx.fresh("lane"), ctx.noted_space
    before = ctx.label
    ctx.jump(body)
    ctx.start(body)
    ctx.stmt(f"{first} = phi i64 [ 0, %{before} ], [ {following}, %{body} ]")
    for number in range(TOGETHER):
        lane = ctx.scalar.bin("add", "i64", first, str(number))
        update(lane, ctx.scalar.cast("zext", "i32", _element(ctx, "i32", places, lane), "i64"))
    ctx.stmt(f"{following} = add i64 {first}, {TOGETHER}")
    ctx.stmt(f"br i1 {ctx.scalar.icmp('eq', 'i64', following, str(LANES))}, label %{done}, label %{body}")
    ctx.start(done)
    ctx.noted_space = space


def _element(ctx: Context, kind: str, elements: str, number: str) -> str:
    return ctx.inst(f"load {kind}, ptr {ctx.inst(f'getelementptr {kind}, ptr {elements}, i64 {number}')}, align 4")


def _extracted(ctx: Context, offsets: str) -> Iterator[str]:
    """Those of one lane after another as i64, not by way of memory, where each would wait until all are stored. They leave their
    vector in pairs."""
    pairs = ctx.inst(f"bitcast <{LANES} x i32> {offsets} to <{LANES // 2} x i64>")
    for number in range(LANES // 2):
        pair = ctx.inst(f"extractelement <{LANES // 2} x i64> {pairs}, i64 {number}")
        yield ctx.scalar.bin("and", "i64", pair, str(0xFFFFFFFF))
        yield ctx.scalar.bin("lshr", "i64", pair, "32")
