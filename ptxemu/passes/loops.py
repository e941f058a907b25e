"""Loop canonicalization: reducible control flow, one latch and one preheader per loop, dedicated exits."""

from __future__ import annotations

from ptxemu.ir.dominators import Dominance, Loop
from ptxemu.ir.graph import Block, Graph, redirect
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.ir.types import U32
from ptxemu.passes.internal import MOVE, move

Loops = dict[Block, Loop]
"""The innermost loop of each block that is in one, kept true while blocks are added."""


def canonicalize(graph: Graph) -> None:
    """Bring every loop into the form that linearization needs. Runs before SSA."""
    loops = make_reducible(graph).loops()
    different = list(dict.fromkeys(loops.values()))
    for loop in different:
        _single_latch(graph, loop, loops)
        _preheader(graph, loop, loops)
    for loop in reversed(different):  # those inside come first
        if loop.parent is not None:
            loop.parent.blocks |= loop.blocks
    _leave_for_one_block(graph, loops)
    _dedicated_exits(graph, loops)


def _insert(graph: Graph, stem: str, target: Block, pos: int) -> Block:
    block = Block(f".{stem}.{target.name}.{len(graph.blocks)}", succs=[target], pos=pos)
    graph.blocks.append(block)
    return block


def _add_to_loop(block: Block, loop: Loop | None, loops: Loops) -> None:
    """A new block is in ``loop``."""
    if loop is not None:
        loops[block] = loop
        loop.blocks.add(block)


def _add_to_loops(block: Block, loop: Loop | None, loops: Loops) -> None:
    """A new block is in ``loop`` and those around it."""
    _add_to_loop(block, loop, loops)
    while loop is not None:
        loop.blocks.add(block)
        loop = loop.parent


def _single_latch(graph: Graph, loop: Loop, loops: Loops) -> None:
    """All back edges go through one new block that does nothing but jump to the header."""
    latch = _insert(graph, "latch", loop.header, loop.latches[0].pos)
    for block in loop.latches:
        redirect(block, loop.header, latch)
    _add_to_loop(latch, loop, loops)
    loop.latches = [latch]


def _preheader(graph: Graph, loop: Loop, loops: Loops) -> None:
    """One edge from outside enters the loop, from a block with no other successor."""
    entering = dict.fromkeys(loop.header.preds)
    outside = [block for block in entering if loop.header in block.succs and block not in loop.blocks]
    if len(outside) == 1 and len(outside[0].succs) == 1:
        return
    header = _insert(graph, "preheader", loop.header, loop.header.pos)
    for block in outside:
        redirect(block, loop.header, header)
    if not outside:  # the loop header is the kernel's entry
        graph.blocks.remove(header)
        graph.blocks.insert(0, header)
    _add_to_loop(header, loop.parent, loops)


def _leave_for_one_block(graph: Graph, loops: Loops) -> None:
    """A computed branch leaves a loop for one block only, which branches again if there are several places to go to."""
    work = [block for block in graph.blocks if block.table]
    while work:
        block = work.pop()
        loop = loops.get(block)
        outside = [succ for succ in block.succs if loop is not None and succ not in loop.blocks]
        if len(outside) < 2:
            continue
        assert loop is not None
        number = {succ: index for index, succ in enumerate(outside)}
        table = tuple(number.get(block.succs[entry], 0) for entry in block.table)
        leave = Block(f".leave.{block.name}.{len(graph.blocks)}", succs=outside, cond=block.cond, pos=block.pos, table=table)
        block.succs = [leave if succ in number else succ for succ in block.succs]
        graph.blocks.append(leave)
        around = loop.parent
        while around is not None and not any(succ in around.blocks for succ in outside):
            around = around.parent
        _add_to_loops(leave, around, loops)
        work.append(leave)
    graph.link()


def _dedicated_exits(graph: Graph, loops: Loops) -> None:
    """Edges that leave a loop lead to a block with no others, so that values that leave have a place for their phi."""
    exits: dict[tuple[int, Block], Block] = {}
    for block in list(graph.blocks):
        loop = loops.get(block)
        if loop is None:
            continue
        for succ in block.succs:
            if succ not in loop.blocks and any(loops.get(pred) is not loop for pred in succ.preds):
                key = id(loop), succ
                if key not in exits:
                    exits[key] = _insert(graph, "exit", succ, block.pos)
                redirect(block, succ, exits[key])
    graph.link()


# ---------------------------------------------------------------- irreducible control flow


def make_reducible(graph: Graph) -> Dominance:
    """Route the entries of each multi-entry cycle through one dispatch block that switches on a selector."""
    while not (dominance := Dominance(graph)).reducible():
        for region in _irreducible_regions(graph.blocks, graph.entry):
            _dispatch(graph, region)
        graph.link()
    return dominance


def _entries(region: set[Block], entry: Block) -> list[Block]:
    ordered = [block for block in region if block is entry or any(pred not in region for pred in block.preds)]
    return sorted(ordered, key=lambda block: block.name)


def _irreducible_regions(blocks: list[Block], entry: Block) -> list[set[Block]]:
    """Strongly connected sets of blocks with several entries, looking inside single-entry ones; none lies in another."""
    found: list[set[Block]] = []
    work = [set(blocks)]
    while work:
        inside = work.pop()
        for component in strong_components(inside):
            entries = _entries(component, entry)
            if len(entries) > 1:
                found.append(component)
            else:
                work.append(component - set(entries))
    return found


def strong_components(blocks: set[Block]) -> list[set[Block]]:
    """Strongly connected components of more than one block (Kosaraju) within ``blocks``."""
    ordered = sorted(blocks, key=lambda block: block.name)
    finished: list[Block] = []
    seen: set[Block] = set()
    for root in ordered:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(root.succs))]
        while stack:
            block, successors = stack[-1]
            for succ in successors:
                if succ in blocks and succ not in seen:
                    seen.add(succ)
                    stack.append((succ, iter(succ.succs)))
                    break
            else:
                finished.append(block)
                stack.pop()
    assigned: set[Block] = set()
    components = []
    for root in reversed(finished):
        if root in assigned:
            continue
        component = {root}
        assigned.add(root)
        work = [root]
        while work:
            for pred in work.pop().preds:
                if pred in blocks and pred not in assigned:
                    assigned.add(pred)
                    component.add(pred)
                    work.append(pred)
        if len(component) > 1:
            components.append(component)
    return components


def _dispatch(graph: Graph, region: set[Block]) -> None:
    """Enter ``region`` only through a new block that jumps to the entry named by a selector register."""
    entries = _entries(region, graph.entry)
    like = next((op for block in graph.blocks for op in block.ops), None)
    pos = entries[0].pos
    template = like or Op(MOVE, {}, (), (), (), (), pos, pos)
    selector = Reg(f"%selector.{len(graph.blocks)}", U32)
    head = Block(f".dispatch.{len(graph.blocks)}", succs=entries, cond=selector, table=tuple(range(len(entries))), pos=pos)
    for index, target in enumerate(entries):
        for inside in (False, True):  # apart, or what leads into the region would be part of it
            preds = [pred for pred in target.preds if (pred in region) == inside]
            if not preds:
                continue
            setter = _insert(graph, "select", head, preds[0].pos)
            setter.ops.append(move(selector, Imm(index, U32), U32, _unguarded(template)))
            for pred in preds:
                redirect(pred, target, setter)
    if graph.entry in entries:
        start = _insert(graph, "select", head, pos)
        start.ops.append(move(selector, Imm(entries.index(graph.entry), U32), U32, _unguarded(template)))
        graph.blocks.remove(start)
        graph.blocks.insert(0, start)
    graph.blocks.append(head)


def _unguarded(op: Op) -> Op:
    return Op(op.row, {}, (), (), (), (), op.pos, op.end, loc=op.loc)
