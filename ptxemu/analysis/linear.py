"""Partial control-flow linearization (Moll and Hack, PLDI 2018): where control goes when lanes part ways.

Blocks are laid out in a topological order with loops, and within a loop level dominator subtrees, contiguous.  When a
branch diverges control goes to the earliest target; the other stays *pending*: its lanes wait for it.  A uniform branch
stays a jump unless something pending comes first.  ``pending[b]`` are the blocks that may have waiting lanes when control
enters ``b``.  It is "may" information, so a pending block is entered through a test of its mask.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxemu.analysis.dominators import Dominance, Loop, immediate_dominators, post_dominators, tree_intervals
from ptxemu.passes.graph import Block, Graph


class Layout:
    """Facts about the graph that do not depend on which branches diverge."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.dominance = Dominance(graph)
        self.loops = self.dominance.loops()
        self.latches = {loop.latches[0]: loop for loop in self.loops.values()}
        self.order = self._linear_order()
        self.index = {block: index for index, block in enumerate(self.order)}
        self._post_dominated = tree_intervals(post_dominators(self.dominance.order, self.loops.values()))

    # -- order

    def _linear_order(self) -> list[Block]:
        order: list[Block] = []
        stack: list[Block | Loop | None] = [None]
        while stack:
            item = stack.pop()
            if isinstance(item, Block):
                order.append(item)
            else:
                stack.extend(reversed(self._level(item)))
        return order

    def _level(self, loop: Loop | None) -> list[Block | Loop]:
        """The blocks and inner loops directly inside ``loop``, dominator subtrees contiguous."""
        header = loop.header if loop else self.graph.entry
        blocks = sorted(loop.blocks, key=self.dominance.number.__getitem__) if loop else self.dominance.order
        children = self._children(blocks, loop)
        number = {id(item): index for index, item in enumerate(dict.fromkeys(children.values()))}
        nodes = list(dict.fromkeys(children.values()))
        preds: list[list[int]] = [[] for _ in nodes]
        for block in blocks:
            source = children[block]
            for succ in block.succs:
                target = children.get(succ)
                if target is not None and target is not source and succ is not header:
                    preds[number[id(target)]].append(number[id(source)])
        order = _topological(preds)
        return [nodes[index] for index in _dominance_compact(order, preds)]

    def _children(self, blocks: list[Block], loop: Loop | None) -> dict[Block, Block | Loop]:
        """The member of ``loop``'s level that holds each of its blocks: the block itself, or a loop inside."""
        holds: dict[Loop, Loop] = {}
        found: dict[Block, Block | Loop] = {}
        for block in blocks:
            inner = self.loops.get(block)
            if inner is loop or inner is None:
                found[block] = block
                continue
            path = []
            while inner not in holds and inner.parent is not loop:
                path.append(inner)
                assert inner.parent is not None
                inner = inner.parent
            found[block] = outermost = holds.get(inner, inner)
            holds.update(dict.fromkeys(path, outermost))
        return found

    def _child(self, block: Block, loop: Loop | None) -> Block | Loop | None:
        """The member of ``loop``'s level that holds ``block``; None if it is not inside."""
        inner = self.loops.get(block)
        if inner is loop:
            return block
        while inner is not None and inner.parent is not loop:
            inner = inner.parent
        return inner

    def equivalent(self, block: Block) -> Block | None:
        """The closest dominator in the same loop that ``block`` post-dominates: all its lanes, and no others, arrive.

        Only the closest dominator in that loop is looked at. If some way from there to the end avoids ``block``, there is
        one from every dominator above it too.
        """
        loop = self.loops.get(block)
        if loop is not None and block is loop.header:
            return None
        candidate = self._dominator(block)
        while candidate is not None and (outer := self._child(candidate, loop)) is not candidate:
            if not isinstance(outer, Loop):
                return None
            candidate = self._dominator(outer.header)
        return candidate if candidate is not None and self._post_dominates(block, candidate) else None

    def _dominator(self, block: Block) -> Block | None:
        node = self.dominance.number[block]
        above = self.dominance.idom[node]
        return None if above == node else self.dominance.order[above]

    def _post_dominates(self, block: Block, other: Block) -> bool:
        enter, leave = self._post_dominated[block]
        return enter <= self._post_dominated[other][0] <= leave


def _topological(preds: list[list[int]]) -> list[int]:
    succs: list[list[int]] = [[] for _ in preds]
    for node, sources in enumerate(preds):
        for source in sources:
            succs[source].append(node)
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(succs[0]))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(succs[target])))
                break
        else:
            order.append(node)
            stack.pop()
    return order[::-1]


def _dominance_compact(order: list[int], preds: list[list[int]]) -> list[int]:
    """Reorder a topological order so that every dominator subtree is contiguous."""
    idom = immediate_dominators(order, preds)
    children: list[list[int]] = [[] for _ in preds]
    for node in order[1:]:
        children[idom[node]].append(node)
    result: list[int] = []
    stack = [order[0]]
    while stack:
        node = stack.pop()
        result.append(node)
        stack.extend(reversed(children[node]))
    return result


@dataclass(slots=True)
class Linear:
    """The linearized control flow for one set of divergent branches.

    ``tested``: blocks that some edge enters through a mask test.  ``deferred``: blocks that are ever pending.
    """

    layout: Layout
    divergent: set[Block]
    pending: dict[Block, frozenset[Block]]
    tested: set[Block]
    deferred: set[Block]

    def next(self, candidates: frozenset[Block]) -> Block | None:
        """The candidate that comes first, None if there is none (the warp is done)."""
        return min(candidates, key=self.layout.index.__getitem__) if candidates else None

    def waits(self, block: Block, target: Block) -> bool:
        """Whether lanes may already wait at ``target`` when control leaves ``block``."""
        return target in self.pending[block]


def unordered(layout: Layout, divergent: set[Block]) -> Linear:
    """For lanes that progress independently: everything may wait at any time."""
    everything = frozenset(layout.order)
    return Linear(layout, divergent, {block: everything for block in layout.order}, set(everything), set(everything))


def linearize(layout: Layout, divergent: set[Block]) -> Linear:
    """Compute the pending sets as a fixpoint over the back edges."""
    empty: frozenset[Block] = frozenset()
    linear = Linear(layout, divergent, {block: empty for block in layout.order}, set(), set())
    changed = True
    while changed:
        changed = False
        for block in layout.order:
            for target, entering in _edges(linear, block):
                if not entering <= linear.pending[target]:
                    linear.pending[target] |= entering
                    changed = True
    for pending in linear.pending.values():
        linear.deferred |= pending
    return linear


def _edges(linear: Linear, block: Block) -> list[tuple[Block, frozenset[Block]]]:
    """Edges of the linearized graph out of ``block``'s body and out of its failed mask test, with what stays pending."""
    pending = linear.pending[block]
    edges: list[tuple[Block, frozenset[Block]]] = []

    def go(direct: frozenset[Block]) -> None:
        candidates = direct | pending
        target = linear.next(candidates)
        if target is None:
            return
        if len(direct) != 1 or target not in direct:
            linear.tested.add(target)
        edges.append((target, candidates - {target}))

    if block in linear.tested:
        go(frozenset())
    if block in linear.layout.latches:
        edges.append((block.succs[0], pending))
        go(frozenset())
    elif block in linear.divergent:
        go(frozenset(block.succs))
    elif not block.succs:
        go(frozenset())
    else:
        for succ in block.succs:
            go(frozenset((succ,)))
    return edges
