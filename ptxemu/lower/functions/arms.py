"""Short arms of branches that bounds decide, which all lanes of most warps take together. There is a version of such an arm for a
warp that does, without masks and without values of lanes that are elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu.ir.graph import Block
from ptxemu.lower.functions import exits
from ptxemu.lower.functions.lane_loops import serves_one

if TYPE_CHECKING:
    from ptxemu.lower.functions.function import FunctionBuilder

MOST = 24  # ops of an arm, of which there are two copies then


def write_for_all(builder: FunctionBuilder, block: Block) -> None:
    """At the end of a block: the arm for the case that all lanes take it, if there is one; goes on with the other case."""
    number = _arm(builder, block)
    everyone = None if number is None else exits.all_go(builder.ctx, block, number)
    if number is None or everyone is None:
        return
    ctx, arm = builder.ctx, block.succs[number]
    whole, part = ctx.new_label("whole"), ctx.new_label("part")
    ctx.stmt(f"br i1 {everyone}, label %{whole}, label %{part}, !prof !0")
    saved = ctx.remembered()
    ctx.start(whole)
    builder.ops(arm)
    (join,) = arm.succs
    for phi in join.phis:
        builder.give(phi, ctx.handed_over(phi.args[arm], phi.dst), ctx.active, others=False)
    builder.add_waiting(join, ctx.active, others=False)
    ctx.jump(builder.name(join))
    ctx.remember(saved)
    ctx.start(part)


def _arm(builder: FunctionBuilder, block: Block) -> int | None:
    """The number of the successor that is short, does nothing but compute, load and store, and leads to the other one, where
    nobody else comes from; None if neither does."""
    linear, loops = builder.linear, builder.linear.structure.loops
    for number, arm in enumerate(block.succs):
        join = block.succs[1 - number]
        if arm.succs != [join] or arm.preds != [block] or {*join.preds} != {block, arm} or arm.phis or len(arm.ops) > MOST:
            continue
        if loops.get(arm) is not loops.get(block) or loops.get(join) is not loops.get(block) or arm in linear.structure.latches:
            continue
        if linear.waits(block, join) or linear.after(arm, (join,)) is not join:
            continue
        if all(map(serves_one, arm.ops)):
            return number
    return None
