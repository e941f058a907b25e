"""Computed branches: where lanes go by an index (PTX ISA "brx.idx", and what dispatches irreducible control flow)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block
from ptxemu.ir.types import B32
from ptxemu.lower.core.literals import array

if TYPE_CHECKING:
    from ptxemu.lower.functions.function import FunctionBuilder

NOWHERE = 0  # the entry of lanes that are known to be where another block's are


def jump(builder: FunctionBuilder, block: Block) -> None:
    """All lanes have one index: an indirect jump."""
    ctx = builder.ctx
    assert block.cond is not None
    labels = [ctx.new_label("edge") for _ in block.succs]
    ctx.stmt(_switch(block, ctx.scalar_of(block.cond, B32), labels))

    def edge(succ: Block) -> None:
        builder.send(block, succ, ctx.active)
        ctx.jump(builder.after(block, succ))

    _edges(builder, dict(zip(labels, block.succs)), edge)


def entries(builder: FunctionBuilder, others: Iterable[Block] = ()) -> dict[Block, int]:
    """A table of the lanes that wait for blocks to which computed branches lead, and for ``others``, and the entry of each.

    As slots of their own, LLVM would make a value of each on every edge, of which there are as many.
    """
    ctx, linear = builder.ctx, builder.linear
    branches = [block for block in builder.order if block.table and block in linear.divergent]
    listed = dict.fromkeys([*(succ for block in branches for succ in block.succs), *others])
    found = {block: index + 1 for index, block in enumerate(listed)}
    if not found:
        return found
    size = len(found) + 1
    ctx.allocas.append(f"  %waiting = alloca [{size} x i32], align 64")
    ctx.declare("llvm.memset.p0.i64", "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    ctx.prologue.append(f"  call void @llvm.memset.p0.i64(ptr align 64 %waiting, i8 0, i64 {4 * size}, i1 false)")
    for block, entry in found.items():
        builder.waiting[block] = f"%waiting.{entry}"
        ctx.prologue.append(f"  %waiting.{entry} = getelementptr i32, ptr %waiting, i64 {entry}")
    return found


def scatter(builder: FunctionBuilder, block: Block) -> None:
    """Lanes have indices of their own: one trip around a loop for each value that occurs sends the lanes with that value."""
    ctx, s = builder.ctx, builder.ctx.scalar
    ctx.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
    assert block.cond is not None
    indices, active = ctx.vector_of(block.cond, B32), ctx.bits_of(ctx.active)
    spilled, rest = ctx.spill("i32", indices), ctx.temporary("i32")
    ctx.stmt(f"store i32 {active}, ptr {rest}, align 4")
    head, sent, done = (ctx.new_label(stem) for stem in ("scatter", "sent", "scattered"))
    ctx.jump(head)
    ctx.start(head)
    left = ctx.inst(f"load i32, ptr {rest}, align 4")
    lane = ctx.inst(f"call i32 @llvm.cttz.i32(i32 {left}, i1 true)")
    index = ctx.inst(f"load i32, ptr {ctx.inst(f'getelementptr i32, ptr {spilled}, i32 {lane}')}, align 4")
    equal = ctx.vector.icmp("eq", "i32", indices, ctx.splat("i32", index))
    mask = ctx.conjunction(ctx.mask_from_bits(left), equal)
    bits = ctx.bits_of(mask)
    ctx.stmt(f"store i32 {s.bin('xor', 'i32', left, bits)}, ptr {rest}, align 4")
    _add_waiting(builder, block, index, bits)
    _hand_over(builder, block, index, mask, sent)
    ctx.start(sent)
    more = s.icmp("ne", f"i{LANES}", ctx.inst(f"load i32, ptr {rest}, align 4"), "0")
    ctx.stmt(f"br i1 {more}, label %{head}, label %{done}")
    ctx.start(done)
    _go_on(builder, block, index, s.icmp("eq", f"i{LANES}", bits, active))


def _add_waiting(builder: FunctionBuilder, block: Block, index: str, bits: str) -> None:
    """Lanes wait for the block that their index leads to."""
    ctx, s = builder.ctx, builder.ctx.scalar
    places = [builder.entries[succ] if builder.mask_home[succ] is succ else NOWHERE for succ in block.succs]
    table = ctx.constant(array("i32", [places[entry] for entry in block.table]))
    last = str(len(block.table) - 1)
    number = s.select(s.icmp("ult", "i32", index, last), "i32", index, last)
    place = ctx.inst(f"load i32, ptr {ctx.inst(f'getelementptr i32, ptr {table}, i32 {number}')}, align 4")
    slot = ctx.inst(f"getelementptr i32, ptr %waiting, i32 {place}")
    ctx.stmt(f"store i32 {s.bin('or', 'i32', ctx.inst(f'load i32, ptr {slot}, align 4'), bits)}, ptr {slot}, align 4")


def _hand_over(builder: FunctionBuilder, block: Block, index: str, mask: str, sent: str) -> None:
    """The values for phis, where there are any."""
    ctx = builder.ctx
    labels = [ctx.new_label("edge") if succ.phis else sent for succ in block.succs]
    ctx.stmt(_switch(block, index, labels))
    counts = Counter(block.table)

    def edge(succ: Block) -> None:
        number = block.succs.index(succ)
        builder.hand_over(block, succ, mask, again=counts[number] > 1 or number == block.table[-1])
        ctx.jump(sent)

    _edges(builder, {label: succ for label, succ in zip(labels, block.succs) if succ.phis}, edge)


def _go_on(builder: FunctionBuilder, block: Block, index: str, together: str) -> None:
    """Lanes that all went one way need not check the others."""
    ctx = builder.ctx
    apart = builder.after(block, *block.succs)
    labels = [builder.after(block, succ) for succ in block.succs]
    if set(labels) == {apart}:
        ctx.jump(apart)
        return
    label = ctx.new_label("together")
    ctx.stmt(f"br i1 {together}, label %{label}, label %{apart}")
    ctx.start(label)
    ctx.stmt(_switch(block, index, labels))


def _switch(block: Block, index: str, labels: list[str]) -> str:
    """The LLVM instruction; ``labels`` are those of the successors."""
    *entries, otherwise = block.table
    cases = " ".join(f"i32 {value}, label %{labels[entry]}" for value, entry in enumerate(entries) if entry != otherwise)
    return f"switch i32 {index}, label %{labels[otherwise]} [ {cases} ]"


def _edges(builder: FunctionBuilder, labels: dict[str, Block], emit: Callable[[Block], None]) -> None:
    """Code for each label, which starts with what was known before the branch."""
    ctx = builder.ctx
    saved = ctx.remembered()
    for label, succ in labels.items():
        ctx.start(label)
        ctx.remember(saved)
        emit(succ)
    ctx.remember(saved)
