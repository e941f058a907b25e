"""The rules for graphs of the typed IR: edges, single definitions, dominance and loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ptxemu.ir.dominators import Dominance, Loop
from ptxemu.ir.graph import Block, Graph, reads, writes
from ptxemu.ir.ops import Op, Reg
from ptxemu.ir.types import PRED
from ptxemu.irtext.problems import Problem
from ptxemu.passes.internal import KEEP


def graph_problems(graph: Graph, ssa: bool, canonical: bool) -> Iterator[Problem]:
    """Every rule that a graph breaks. Those that need dominators are left out if its edges are wrong."""
    edges = list(_edges(graph))
    yield from edges
    for block in graph.blocks:
        for text in (*_terminator(block), *_phis(block, ssa)):
            yield Problem(text, block.pos, block=block.name)
        for op in block.ops:
            if op.effects.leaves and (op is not block.ops[-1] or block.succs):
                yield Problem("nothing may follow this op", op.pos, op, block.name)
    if edges:
        return
    dominance = Dominance(graph)
    if ssa:
        yield from _Definitions(graph, dominance).problems()
    if canonical:
        yield from _loops(graph, dominance)


# ---------------------------------------------------------------- edges


def _edges(graph: Graph) -> Iterator[Problem]:
    """Successors are blocks of the graph, predecessors those whose successor a block is."""
    inside = set(graph.blocks)
    preds: dict[Block, list[Block]] = {block: [] for block in graph.blocks}
    for block in graph.blocks:
        for succ in block.succs:
            if succ in inside:
                preds[succ].append(block)
            else:
                yield Problem(f"the successor '{succ.name}' is not in the graph", block.pos, block=block.name)
    for block, found in preds.items():
        if Counter(found) != Counter(block.preds):
            names = ", ".join(pred.name for pred in block.preds)
            yield Problem(f"the predecessors are not {names or 'none'}", block.pos, block=block.name)


def _terminator(block: Block) -> Iterator[str]:
    if len(set(block.succs)) != len(block.succs):
        yield "two edges lead to one block"
    if block.table:
        if block.cond is None or block.cond.type.kind not in "usb":
            yield "a computed branch needs an integer register"
        if set(block.table) != set(range(len(block.succs))):
            yield "the table of a computed branch has the numbers of its successors"
    elif len(block.succs) > 2:
        yield f"a branch has two successors, not {len(block.succs)}"
    elif (block.cond is not None) != (len(block.succs) == 2):
        yield "a branch needs a condition, and nothing else has one"
    elif block.cond is not None and block.cond.type is not PRED:
        yield f"the condition has type {block.cond.type}"


def _phis(block: Block, ssa: bool) -> Iterator[str]:
    if block.phis and not ssa:
        yield "there are phis before SSA form"
    phis = block.phis
    if phis and phis.args.keys() != set(block.preds):
        names = ", ".join(pred.name for pred in phis.args)
        yield f"the phi of '{phis.dsts[0].name}' has values for {names or 'no block'}"
    for pred, column in phis.args.items():
        if len(column) != len(phis):
            yield f"{len(phis)} phis have {len(column)} values for '{pred.name}'"
        for dst, arg in zip(phis.dsts, column):
            if arg.type.bits != dst.type.bits:
                yield f"the phi of '{dst.name}' has a value of type {arg.type} from '{pred.name}'"


# ---------------------------------------------------------------- SSA


class _Definitions:
    """Where each register is defined. Those that lanes keep for themselves are written at several places, and read anywhere."""

    def __init__(self, graph: Graph, dominance: Dominance) -> None:
        self.graph = graph
        self.dominance = dominance
        self.home: dict[Reg, Block] = {}
        self.kept = {reg for block in graph.blocks for op in block.ops if op.row is KEEP for reg in writes(op)}

    def problems(self) -> Iterator[Problem]:
        for block in self.graph.blocks:
            for dst in block.phis.dsts:
                yield from self.define(dst, block, None)
            for op in block.ops:
                for reg in writes(op):
                    yield from self.define(reg, block, op)
        for block in self.graph.blocks:
            yield from self.uses(block)

    def define(self, reg: Reg, block: Block, op: Op | None) -> Iterator[Problem]:
        if reg in self.home and reg not in self.kept:
            yield Problem(f"'{reg.name}' is defined twice", 0 if op is None else op.pos, op, block.name)
        if op is not None and op.row is not KEEP and reg in self.kept:
            yield Problem(f"'{reg.name}' is also kept for each lane", op.pos, op, block.name)
        self.home[reg] = block

    def uses(self, block: Block) -> Iterator[Problem]:
        known = set(block.phis.dsts)
        for op in block.ops:
            for reg in reads(op):
                if (text := self.unavailable(reg, block, known)) is not None:
                    yield Problem(text, op.pos, op, block.name)
            known.update(writes(op))
        if block.cond is not None and (text := self.unavailable(block.cond, block, known)) is not None:
            yield Problem(text, block.pos, block=block.name)
        for succ in block.succs:
            for dst, arg in zip(succ.phis.dsts, succ.phis.args.get(block, ())):
                if isinstance(arg, Reg) and (text := self.unavailable(arg, block, known)) is not None:
                    yield Problem(f"{text}, for the phi of '{dst.name}'", block.pos, block=block.name)

    def unavailable(self, reg: Reg, block: Block, known: set[Reg]) -> str | None:
        """Why a register cannot be read where ``known`` are defined in the same block before."""
        home = self.home.get(reg)
        if not isinstance(reg, Reg):  # the guard is a constant, as nothing writes the register
            return None
        if home is None:
            return f"'{reg.name}' is never defined"
        if reg in known or reg in self.kept:
            return None
        if home is block:
            return f"'{reg.name}' is read before its definition"
        return None if self.dominance.dominates(home, block) else f"the definition of '{reg.name}' does not dominate its use"


# ---------------------------------------------------------------- loops


def _loops(graph: Graph, dominance: Dominance) -> Iterator[Problem]:
    """What linearization needs: reducible graphs; of each loop one latch that only jumps, one entry edge, exits of its own."""
    if not dominance.reducible():
        yield Problem("the graph is not reducible")
        return
    for loop in {id(loop): loop for loop in dominance.loops().values()}.values():
        for text in _loop(loop):
            yield Problem(text, loop.header.pos, block=loop.header.name)


def _loop(loop: Loop) -> Iterator[str]:
    if len(loop.latches) != 1 or loop.latches[0].cond is not None:
        yield "the loop needs one latch that only jumps"
    outside = [pred for pred in loop.header.preds if pred not in loop.blocks]
    if len(outside) != 1 or len(outside[0].succs) != 1:
        yield "the loop needs one entry edge, from a block that only jumps"
    for succ in loop.exits():
        if any(pred not in loop.blocks for pred in succ.preds):
            yield f"the exit '{succ.name}' is reached from outside of the loop"
