"""Kernels as one function for all warps of several CTAs side by side, which goes along rows of threads.

The first warps of all these CTAs have their turns before the second ones, where each warp has rows of its own
(:mod:`ptxemu.analysis.rows`).  In wider blocks several warps of one CTA lie side by side, and so come one after another.
"""

from __future__ import annotations

from ptxemu.analysis.survivors import Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Graph
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.functions.looped import LoopedBuilder


class RowsBuilder(LoopedBuilder):
    """A turn is that of warp ``%w`` of the CTA whose ``%ctaid.x`` is ``%cta.x``; no warp has two in one CTA."""

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, survivors: Survivors) -> None:
        super().__init__(graph, uniformity, layout, unit, survivors)
        self.ctx.along_rows = True
        self.ctx.vary("ctaid[0]", "%cta.x")
        self.at, _ = layout.warp_field("ctaid")

    def _leave(self) -> None:
        """The next warp has its turn or, along rows, that of the next CTA; where one is the last the other moves on."""
        ctx = self.ctx
        self._follow()
        ctx.stmt("%x.after = add i32 %cta.x, 1")
        ctx.stmt("%row.over = icmp eq i32 %x.after, %x.end")
        ctx.stmt("%w.moves = select i1 %rows, i1 %row.over, i1 true")
        ctx.stmt("%x.moves = select i1 %rows, i1 true, i1 %round.over")
        ctx.stmt("%w.other = select i1 %round.over, ptr %first, ptr %following")
        ctx.stmt("%x.other = select i1 %row.over, i32 %x.first, i32 %x.after")
        ctx.stmt("%w.next = select i1 %w.moves, ptr %w.other, ptr %w")
        ctx.stmt("%x.next = select i1 %x.moves, i32 %x.other, i32 %cta.x")
        ctx.stmt("%all.over = and i1 %round.over, %row.over")
        ctx.stmt("br i1 %all.over, label %return, label %turn")
        ctx.start("return")
        ctx.stmt("ret void")

    def _bounds(self, warps: str, stride: str) -> list[str]:
        """The same of CTAs, and whether warps have rows of their own."""
        ctx, start = self.ctx, len(self.ctx.head)
        width, ctas = (ctx.field(name) for name in ("ntid[0]", "ctas"))
        return [
            *super()._bounds(warps, stride),
            *ctx.head[start:],
            f"  %x.at = getelementptr i8, ptr %first, i64 {self.at}",
            "  %x.first = load i32, ptr %x.at, align 4",
            f"  %x.end = add i32 %x.first, {ctas}",
            f"  %rows = icmp ule i32 {width}, {LANES}",
        ]

    def _turn(self) -> list[str]:
        """Whose turn it is. The warp is to know where it is, for whom the runtime tells of it."""
        return [
            "  %w = phi ptr [ %first, %entry ], [ %w.next, %next ]",
            "  %cta.x = phi i32 [ %x.first, %entry ], [ %x.next, %next ]",
            f"  %ctaid.at = getelementptr i8, ptr %w, i64 {self.at}",
            "  store i32 %cta.x, ptr %ctaid.at, align 4",
        ]
