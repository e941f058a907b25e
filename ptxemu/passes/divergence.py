"""Where lanes of a warp may part, before SSA: a quick look that takes no notice of order, and may say so of too much.

A register counts as varying if anything that is ever written to it may be; what the lanes really have in common is for
:mod:`ptxemu.analysis.uniformity` to say, on SSA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxemu.ir.convergence import membermask
from ptxemu.ir.dominators import Dominance, Loop, members
from ptxemu.ir.graph import Block, reads, writes
from ptxemu.ir.ops import Op, Reg, SReg, items_of

LANE_MASKS = frozenset({"lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge"})
VARYING_SREGS = frozenset({"tid", "laneid"}) | LANE_MASKS


def uneven_loops(dominance: Dominance, frontiers: list[int], loops: Mapping[Block, Loop]) -> set[Loop]:
    """The loops that lanes may leave in different iterations; the blocks have their phis, but those at exits of loops.

    These are the loops in which lanes may part at all. A loop around one of them is one too.
    """
    return _Divergence(dominance, frontiers, loops).run()


class _Divergence:
    def __init__(self, dominance: Dominance, frontiers: list[int], loops: Mapping[Block, Loop]) -> None:
        self.dominance, self.frontiers, self.loops = dominance, frontiers, loops
        self.varying: set[Reg] = set()
        self.work: list[Reg] = []
        self.readers: dict[Reg, list[Op]] = {}
        self.branches: dict[Reg, list[Block]] = {}
        self.uneven: set[Loop] = set()
        self.left: set[Block] = set()  # the blocks of uneven loops
        self.joined = 0  # the blocks, by number, at which lanes that have parted come together

    def run(self) -> set[Loop]:
        for block in self.dominance.order:
            if block.cond is not None and len(block.succs) > 1:
                self.branches.setdefault(block.cond, []).append(block)
            for op in block.ops:
                if _varies_anyhow(op):
                    self._vary(writes(op))
                else:
                    for reg in _decisive(op):
                        self.readers.setdefault(reg, []).append(op)
        while self.work:
            reg = self.work.pop()
            for op in self.readers.get(reg, ()):
                self._vary(writes(op))
            for block in self.branches.get(reg, ()):
                self._part(block)
        return self.uneven

    def _vary(self, registers: Iterable[Reg]) -> None:
        for reg in registers:
            if reg not in self.varying:
                self.varying.add(reg)
                self.work.append(reg)

    def _part(self, block: Block) -> None:
        """Lanes part at the end of a block: what is assigned in its loops, and what phis join behind it, varies."""
        loop = self.loops.get(block)
        while loop is not None and loop not in self.uneven:
            self.uneven.add(loop)
            for member in loop.blocks - self.left:
                for op in member.ops:
                    self._vary(writes(op))
            self.left |= loop.blocks
            loop = loop.parent
        work = [self.dominance.number[succ] for succ in block.succs]
        while work:
            new = self.frontiers[work.pop()] & ~self.joined
            self.joined |= new
            for node in members(new):
                self._vary(self.dominance.order[node].phis.dsts)
                work.append(node)


def varies_by_effect(op: Op) -> bool:
    """Whether an instruction is one whose results may differ between lanes that agree on all operands."""
    results = op.effects.results
    return results == "varying" or (results == "varying in local" and op.mods.get("space") == "local")


def _varies_anyhow(op: Op) -> bool:
    """The same of the op itself: a call, or an operand may differ that is no register."""
    if op.call is not None or varies_by_effect(op):
        return True
    items = (item for source in op.srcs for item in items_of(source))
    return op.effects.results != "uniform" and any(
        isinstance(item, SReg) and item.name.partition(".")[0] in VARYING_SREGS for item in items
    )


def _decisive(op: Op) -> list[Reg]:
    """The registers whose values tell whether the results are the same in all lanes."""
    if op.effects.results != "uniform":
        return list(reads(op))
    found = [membermask(op)] + ([op.guard[0]] if op.guard is not None else [])
    return [reg for reg in found if isinstance(reg, Reg)]
