"""How much work the code generator may put into a kernel: what the kernel would cost, in seconds of one CPU.

The costs are those of LLVM on a server of 2023, measured with ``bench/compile.py``; only their ratios matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import repeat

from msgspec import Struct

from ptxemu.driver.jit import Effort
from ptxemu.ir.dominators import has_loops
from ptxemu.ir.graph import Block, Graph, reads, writes
from ptxemu.ir.ops import Addr, Imm, Reg
from ptxemu.lower.core.emit import SIZES

FIRST_LAUNCH = 0.25
"""Seconds: a kernel whose best code takes longer is first compiled in a faster way."""

STANDARD = 0.12
"""Seconds: above, the standard pipeline costs more than it gains, as it does wherever nothing repeats."""

GREATEST = 10.0
"""Seconds: above, registers are allocated block by block; what goes on longer grows with the square of the kernel."""

LONGEST = 60.0
"""Seconds: above, what is made quickly is the best code. LLVM would take minutes and gigabytes."""

SIZE = 4  # machine instructions that an operation on 32 lanes becomes whose lowering states no size
BRANCH = 25  # instructions that choose the lanes and the block that come next
TARGET = 10  # more, for each target of a computed branch


class Cost(Struct, frozen=True):
    """``instructions`` of the machine; ``spans``: the blocks in which a value is live, summed over all values.

    ``repeats``: something is done again that the standard pipeline may spare: in a loop; a test of the same address; a look-up of
    a surface or texture by each warp of a block.
    """

    instructions: int
    spans: int
    repeats: bool

    @property
    def best(self) -> float:
        """Seconds for the best code."""
        return 100e-6 * self.instructions + 30e-6 * self.spans


FAST = Effort(0, standard=False)
"""What makes code fastest. The routines of threaded code get it too: they are one block each, after the light pipeline."""


def cost_of(graphs: Iterable[Graph]) -> Cost:
    """The cost of a kernel with its functions, before anything is lowered. Takes linear time."""
    instructions = spans = 0
    repeats = False
    for graph in graphs:
        instructions += sum(map(_size, graph.blocks))
        spans += _spans(graph)
        repeats = repeats or has_loops(graph) or _repeats(graph)
    return Cost(instructions, spans, repeats)


def effort_of(costs: Collection[Cost], opt: int) -> Effort:
    """What to do for the best code of some kernels that share a unit, at optimization level ``opt``."""
    best = max(cost.best for cost in costs)
    if best > GREATEST:
        return FAST
    return Effort(opt, opt >= 2 and best <= STANDARD and any(cost.repeats for cost in costs))


def _size(block: Block) -> int:
    kinds = (op.row.lower for op in block.ops)
    return BRANCH + TARGET * len(block.table) + sum(SIZES.get(kind) or SIZES.get(kind.partition(".")[0], SIZE) for kind in kinds)


def _repeats(graph: Graph) -> bool:
    """Whether an address is accessed twice, or a surface or texture at all."""
    seen: set[Addr] = set()
    for op in (op for block in graph.blocks for op in block.ops):
        for access in op.effects.accesses:
            address = op[access.operand]
            if access.opaque or address in seen:
                return True
            if isinstance(address, Addr) and isinstance(address.base, Reg):
                seen.add(address)
    return False


def _spans(graph: Graph) -> int:
    """From where a value is made to its last mention lie about the blocks in which it is live; loops are not followed."""
    last: dict[Reg | Imm, int] = {}  # of the values that are live, on the way back
    spans = 0
    for index, block in reversed(list(enumerate(graph.blocks))):
        for succ in block.succs:
            for value in succ.phis.args.get(block, ()):
                last.setdefault(value, index)
        if block.cond is not None:
            last.setdefault(block.cond, index)
        for op in reversed(block.ops):
            for value in writes(op):
                spans += last.pop(value, index) - index
            for value in reads(op):
                last.setdefault(value, index)
        made = block.phis.dsts
        spans += sum(map(last.pop, made, repeat(index))) + len(made) * (len(block.preds) - index)
    return spans
