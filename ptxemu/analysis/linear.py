"""Partial control-flow linearization (Moll and Hack, PLDI 2018): where control goes when lanes part ways.

Blocks are laid out in a topological order with loops, and within a loop level dominator subtrees, contiguous.  When a
branch diverges control goes to the earliest target; the other stays *pending*: its lanes wait for it.  A uniform branch
stays a jump unless something pending comes first.  ``pending(b)`` are the blocks that may have waiting lanes when control
enters ``b``.  It is "may" information, so a pending block is entered through a test of its mask.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ptxemu.ir.dominators import Dominance, Loop, immediate_dominators, members, post_dominators, tree_intervals
from ptxemu.ir.graph import Block, Graph


class Structure:
    """Facts about the graph that do not depend on which branches diverge."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.dominance = Dominance(graph)
        self.loops = self.dominance.loops()
        self.latches = {loop.latches[0]: loop for loop in self.loops.values()}
        self._sort_into_levels()
        self.order = self._linear_order()
        self.index = {block: index for index, block in enumerate(self.order)}
        self._post_dominated = tree_intervals(post_dominators(self.dominance.order, self.loops))

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
        nodes = self._members[loop]
        number = {id(item): index for index, item in enumerate(nodes)}
        preds: list[list[int]] = [[] for _ in nodes]
        for source, target in self._edges[loop]:
            preds[number[id(target)]].append(number[id(source)])
        order = _topological(preds)
        return [nodes[index] for index in _dominance_compact(order, preds)]

    def _sort_into_levels(self) -> None:
        """The members of each level, its header first, and the forward edges between them."""
        self._members: dict[Loop | None, list[Block | Loop]] = {None: []}
        self._edges: dict[Loop | None, list[tuple[Block | Loop, Block | Loop]]] = {None: []}
        depth: dict[Loop | None, int] = {None: 0}
        for block in self.dominance.order:
            loop = self.loops.get(block)
            if loop is not None and loop.header is block:  # comes before all others of its loop
                self._members[loop.parent].append(loop)
                self._members[loop], self._edges[loop] = [], []
                depth[loop] = depth[loop.parent] + 1
            self._members[loop].append(block)
        for block in self.dominance.order:
            for succ in block.succs:
                self._sort_edge(block, succ, depth)

    def _sort_edge(self, block: Block, succ: Block, depth: dict[Loop | None, int]) -> None:
        """Add an edge to the level at which it leads from one member to another, unless it is a back edge."""
        source: Block | Loop = block
        target: Block | Loop = succ
        above, below = self.loops.get(block), self.loops.get(succ)
        while above is not below:
            if depth[above] >= depth[below]:
                assert above is not None
                source, above = above, above.parent
            else:
                assert below is not None
                target, below = below, below.parent
        if above is None or succ is not above.header:
            self._edges[above].append((source, target))

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


class Linear(Struct):
    """The linearized control flow for one set of divergent branches.

    ``waiting``: the pending blocks, as a set in which bit i stands for block i in linear order.  ``tested``: blocks that an edge
    enters through a mask test.  ``deferred``: blocks that are ever pending.
    """

    structure: Structure
    divergent: set[Block]
    waiting: dict[Block, int]
    tested: set[Block]
    deferred: set[Block]

    def pending(self, block: Block) -> list[Block]:
        """The blocks that may have waiting lanes when control enters ``block``, in linear order."""
        return self._blocks(self.waiting[block])

    def after(self, block: Block, direct: Iterable[Block]) -> Block | None:
        """Where control goes from ``block`` for lanes bound for ``direct``: what comes first of these and of the pending blocks,
        None if there is nothing (the warp is done)."""
        return self._first(self.waiting[block] | self._bits(direct))

    def waits(self, block: Block, target: Block) -> bool:
        """Whether lanes may already wait at ``target`` when control leaves ``block``."""
        return self.waiting[block] >> self.structure.index[target] & 1 == 1

    def _bits(self, blocks: Iterable[Block]) -> int:
        bits = 0
        for block in blocks:
            bits |= 1 << self.structure.index[block]
        return bits

    def _first(self, bits: int) -> Block | None:
        return self.structure.order[(bits & -bits).bit_length() - 1] if bits else None

    def _blocks(self, bits: int) -> list[Block]:
        return [self.structure.order[index] for index in members(bits)]


class _Pending:
    """What is pending, as a fixpoint over the back edges. Blocks are their numbers in linear order here.

    ``stale``: the blocks to look at, of which more is known than when they were looked at last.
    """

    def __init__(self, structure: Structure, divergent: set[Block]) -> None:
        self.structure = structure
        self.waiting = [0] * len(structure.order)
        self.tested = bytearray(len(structure.order))
        self.stale = bytearray(b"\1") * len(structure.order)
        self.ways = [self._ways(block, divergent) for block in structure.order]

    def _ways(self, block: Block, divergent: set[Block]) -> list[int]:
        """Sets of blocks for which lanes leave a block together; an empty one if only pending blocks come next."""
        if block in self.structure.latches:
            return [0]
        targets = [1 << self.structure.index[succ] for succ in block.succs]
        return [sum(targets)] if block in divergent or not targets else targets

    def solve(self) -> None:
        index = self.structure.index
        back = {index[latch]: index[loop.header] for latch, loop in self.structure.latches.items()}
        while any(self.stale):
            for number, ways in enumerate(self.ways):
                if self.stale[number]:
                    self.stale[number] = False
                    pending = self.waiting[number]
                    if number in back:
                        self._enter(back[number], pending)
                    for targets in (0, *ways) if self.tested[number] else ways:
                        self._leave(pending | targets, targets)

    def _leave(self, candidates: int, direct: int) -> None:
        """Control goes to the first of the candidates, through a test of its mask unless all lanes are bound for it."""
        first = candidates & -candidates
        if not first:
            return
        target = first.bit_length() - 1
        if direct != first and not self.tested[target]:
            self.tested[target] = self.stale[target] = True
        self._enter(target, candidates ^ first)

    def _enter(self, target: int, pending: int) -> None:
        if pending & ~self.waiting[target]:
            self.waiting[target] |= pending
            self.stale[target] = True


def unordered(structure: Structure, divergent: set[Block]) -> Linear:
    """For lanes that progress independently: everything may wait at any time."""
    everything = (1 << len(structure.order)) - 1
    return Linear(structure, divergent, dict.fromkeys(structure.order, everything), set(structure.order), set(structure.order))


def linearize(structure: Structure, divergent: set[Block]) -> Linear:
    """The linearized control flow if these branches diverge."""
    found = _Pending(structure, divergent)
    found.solve()
    ever = 0
    for bits in found.waiting:
        ever |= bits
    order = structure.order
    tested = {block for block, test in zip(order, found.tested) if test}
    return Linear(structure, divergent, dict(zip(order, found.waiting)), tested, {order[number] for number in members(ever)})
