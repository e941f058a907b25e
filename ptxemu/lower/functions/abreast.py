"""Kernels as one function for all warps of several CTAs abreast, whose warps follow each other in memory.

A loop in which threads go on by the number of all threads of the grid reads, in each trip of a CTA, a piece that lies before
that of the next CTA.  Such pieces of all these CTAs together are long enough for the processor to see streams in them, of
which a turn of each warp has several.  Everything else is as in one CTA: a warp comes to its barriers by turns, and is never
before the others of its own CTA.
"""

from __future__ import annotations

from ptxemu.analysis.strides import TRIPS
from ptxemu.analysis.survivors import Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Block, Graph
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.functions.looped import OF_A_WARP, LoopedBuilder, LoopedContext

WARPS_AHEAD = 6  # whose turn it is to be when what is asked for is there
OF_A_CTA = {"ctaid[0]", "ctaid[1]", "ctaid[2]", "shared_base", "cluster_base"}  # fields that differ between these CTAs


class AbreastContext(LoopedContext):
    """What all warps have in common is what these CTAs have."""

    own_fields = OF_A_WARP | OF_A_CTA


class AbreastBuilder(LoopedBuilder):
    """The warps of a CTA have their turns before those of the next one."""

    def __init__(self, graph: Graph, uniformity: Uniformity, layout: KernelLayout, unit: Unit, survivors: Survivors) -> None:
        super().__init__(graph, uniformity, layout, unit, survivors)
        self.asking = []  # for later trips: what all warps read in one is a stream

    def _context(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> AbreastContext:
        return AbreastContext(uniformity, layout, unit)

    def _note_loop(self, block: Block) -> None:
        super()._note_loop(block)
        inside = any(block in loop.blocks for loop in self.turns)
        self.ctx.abreast = ("%warps.ahead", "%trips.ahead") if inside else None

    def _place(self) -> list[str]:
        """Also where the warp is whose turn comes some turns later: behind the last one the first has its next."""
        return [
            *super()._place(),
            f"  %later.number = add i64 %number, {WARPS_AHEAD}",
            "  %is.next.round = icmp uge i64 %later.number, %all.warps",
            "  %round.ahead = select i1 %is.next.round, i64 %all.warps, i64 0",
            f"  %warps.ahead = sub i64 {WARPS_AHEAD}, %round.ahead",
            f"  %trips.ahead = select i1 %is.next.round, i64 {TRIPS}, i64 0",
        ]

    def _bounds(self, warps: str, stride: str) -> list[str]:
        head = self.ctx.head
        known = len(head)
        ctas = self.ctx.field("ctas")
        all_warps = [f"  %warps.abreast = mul i32 {warps}, {ctas}", "  %all.warps = zext i32 %warps.abreast to i64"]
        return [*head[known:], *all_warps, *super()._bounds("%warps.abreast", stride)]
