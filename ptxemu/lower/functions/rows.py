"""Kernels as one function for all warps of several CTAs side by side, which goes along rows of threads.

The first warps of all these CTAs have their turns before the second ones, where each warp has rows of its own
(:mod:`ptxemu.analysis.rows`).  In wider blocks several warps of one CTA lie side by side, and so come one after another.
So turns come in *runs*: of one warp in all CTAs, or of all warps in one CTA.
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
        """The next one of a run has its turn; behind the last of them, the first of the next run."""
        ctx = self.ctx
        ctx.jump("next")
        ctx.start("next")
        ctx.stmt("%w.next = getelementptr i8, ptr %w, i64 %w.step")
        ctx.stmt("%x.on = load volatile i32, ptr %x.on.at, align 4")
        ctx.stmt("%x.next = add i32 %cta.x, %x.on")
        ctx.stmt("%left.next = add i32 %left, -1")
        ctx.stmt("%run.over = icmp eq i32 %left.next, 0")
        ctx.stmt("br i1 %run.over, label %run, label %turn")
        ctx.start("run")
        ctx.stmt("%w.run = getelementptr i8, ptr %w.first, i64 %w.between")
        ctx.stmt("%x.run = add i32 %x.first, %x.between")
        ctx.stmt("%runs.next = add i32 %runs, -1")
        ctx.stmt("%all.over = icmp eq i32 %runs.next, 0")
        ctx.stmt("br i1 %all.over, label %return, label %turn")
        ctx.start("return")
        ctx.stmt("ret void")

    def _bounds(self, warps: str, stride: str) -> list[str]:
        """How long runs are, how many there are, and how far it is from one turn, or from one run, to the next.

        LLVM is not to know that ``%cta.x`` grows evenly: it would keep all that is computed of it as variables of the loop.
        """
        ctx, start = self.ctx, len(self.ctx.head)
        width, ctas = (ctx.field(name) for name in ("ntid[0]", "ctas"))
        return [
            *ctx.head[start:],
            f"  %x.at = getelementptr i8, ptr %first, i64 {self.at}",
            "  %x.begin = load i32, ptr %x.at, align 4",
            f"  %rows = icmp ule i32 {width}, {LANES}",
            f"  %stride = zext i32 {stride} to i64",
            f"  %length = select i1 %rows, i32 {ctas}, i32 {warps}",
            f"  %runs.begin = select i1 %rows, i32 {warps}, i32 {ctas}",
            "  %w.step = select i1 %rows, i64 0, i64 %stride",
            "  %w.between = select i1 %rows, i64 %stride, i64 0",
            "  %x.step = zext i1 %rows to i32",
            "  %x.between = sub i32 1, %x.step",
            "  %x.on.at = alloca i32",
            "  store i32 %x.step, ptr %x.on.at, align 4",
        ]

    def _turn(self) -> list[str]:
        """Whose turn it is. The warp is to know where it is, for whom the runtime tells of it."""
        return [
            "  %w.first = phi ptr [ %first, %entry ], [ %w.first, %next ], [ %w.run, %run ]",
            "  %x.first = phi i32 [ %x.begin, %entry ], [ %x.first, %next ], [ %x.run, %run ]",
            "  %runs = phi i32 [ %runs.begin, %entry ], [ %runs, %next ], [ %runs.next, %run ]",
            "  %w = phi ptr [ %first, %entry ], [ %w.next, %next ], [ %w.run, %run ]",
            "  %cta.x = phi i32 [ %x.begin, %entry ], [ %x.next, %next ], [ %x.run, %run ]",
            "  %left = phi i32 [ %length, %entry ], [ %left.next, %next ], [ %length, %run ]",
            f"  %ctaid.at = getelementptr i8, ptr %w, i64 {self.at}",
            "  store i32 %cta.x, ptr %ctaid.at, align 4",
        ]
