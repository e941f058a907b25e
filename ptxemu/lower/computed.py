"""Computed branches: where lanes go by an index (PTX ISA "brx.idx", and what dispatches irreducible control flow)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.passes.graph import Block
from ptxemu.types import B32
from ptxemu.variant import LANES

if TYPE_CHECKING:
    from ptxemu.lower.function import FunctionBuilder


def jump(builder: FunctionBuilder, block: Block) -> None:
    """All lanes have one index: an indirect jump."""
    ctx = builder.ctx
    assert block.cond is not None
    labels = [ctx.new_label("edge") for _ in block.succs]
    ctx.stmt(_switch(block, ctx.scalar_of(block.cond, B32), labels))

    def edge(succ: Block) -> None:
        builder.send(block, succ, ctx.active)
        ctx.jump(builder.after(block, succ))

    _edges(builder, block, labels, edge)


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
    labels = [ctx.new_label("edge") for _ in block.succs]
    ctx.stmt(_switch(block, index, labels))
    several = _with_several_values(block)

    def edge(succ: Block) -> None:
        builder.send(block, succ, mask, again=succ in several)
        ctx.jump(sent)

    _edges(builder, block, labels, edge)
    ctx.start(sent)
    more = s.icmp("ne", f"i{LANES}", ctx.inst(f"load i32, ptr {rest}, align 4"), "0")
    ctx.stmt(f"br i1 {more}, label %{head}, label %{done}")
    ctx.start(done)
    _go_on(builder, block, index, s.icmp("eq", f"i{LANES}", bits, active))


def _go_on(builder: FunctionBuilder, block: Block, index: str, together: str) -> None:
    """Lanes that all went one way need not look at the others."""
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


def _with_several_values(block: Block) -> set[Block]:
    """The successors that more than one value leads to."""
    counts = Counter(block.table)
    return {block.succs[entry] for entry, count in counts.items() if count > 1 or entry == block.table[-1]}


def _edges(builder: FunctionBuilder, block: Block, labels: list[str], emit: Callable[[Block], None]) -> None:
    """A part of code for each successor, where what was known before is known."""
    ctx = builder.ctx
    saved = ctx.remembered()
    for label, succ in zip(labels, block.succs):
        ctx.start(label)
        ctx.remember(saved)
        emit(succ)
    ctx.remember(saved)
