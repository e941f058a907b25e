"""Which functions of a kernel need the scheme in which the lanes of a warp progress independently.

The reasons are those of :mod:`ptxemu.analysis.spinning`, :mod:`ptxemu.analysis.barriers` and
:mod:`ptxemu.analysis.sync_branches`.
"""

from __future__ import annotations

from ptxemu.analysis.barriers import parts_meet
from ptxemu.analysis.linear import Structure
from ptxemu.analysis.spinning import SpinLoop, needs_independence, spin_loops
from ptxemu.analysis.sync_branches import branches_meet
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.convergence import counts_threads, meets
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Function, Reg
from ptxemu.passes.routines import Routine


def functions_that_wait(found: list[Routine], graphs: list[Graph], variant: str) -> set[Function]:
    """Functions that cannot be compiled as such: lanes wait for each other in them, or would if others come later."""
    functions = {routine.function: graph for routine, graph in zip(found[1:], graphs[1:])}
    bars = counting(found, graphs)
    waiting = {function for function, graph in functions.items() if makes_lanes_wait(graph, variant, bars)}
    indirect = [
        op.call for g in graphs for b in g.blocks for op in b.ops if op.call is not None and isinstance(op.call.callee, Reg)
    ]
    waiting |= {target for call in indirect for target in call.targets or () if target in bars}  # lanes may call different ones
    meeting = {function for function, graph in functions.items() if any(meets(op) for block in graph.blocks for op in block.ops)}
    if meeting - waiting and makes_lanes_wait(graphs[0], variant, bars):
        waiting |= meeting
    return waiting


def counting(found: list[Routine], graphs: list[Graph]) -> set[Function]:
    """The functions that come to a barrier that counts threads."""
    ops = {routine.function: [op for block in graph.blocks for op in block.ops] for routine, graph in zip(found[1:], graphs[1:])}
    bars = {function for function in ops if any(map(counts_threads, ops[function]))}
    changed = bool(bars)
    while changed:
        more = {f for f in ops for op in ops[f] if op.call is not None and bars.intersection(op.call.targets or ())}
        changed = not more <= bars
        bars |= more
    return bars


def makes_lanes_wait(graph: Graph, variant: str, bars: set[Function]) -> bool:
    """Whether the lanes of a warp must progress independently."""
    waits = bars or any(meets(op) for block in graph.blocks for op in block.ops)
    if not waits and not spin_loops(Structure(graph)):
        return False
    uniformity = Uniformity(graph, variant)
    return needs_laps(uniformity, spin_loops(uniformity.structure), bars)


def needs_laps(uniformity: Uniformity, spins: list[SpinLoop], bars: set[Function]) -> bool:
    """Whether lanes wait for others of their warp that would wait for them."""
    linear = uniformity.linear
    return needs_independence(linear, spins) or parts_meet(linear, bars) or branches_meet(linear)
