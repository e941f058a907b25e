"""Dominators, post-dominators, dominance frontiers and natural loops of a graph of nodes with ``succs``/``preds``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ptxemu.ir.graph import Block, Graph


def members(bits: int) -> Iterator[int]:
    """The numbers in a set of numbers, of which bit i stands for i, from the least on."""
    while bits:
        least = bits & -bits
        yield least.bit_length() - 1
        bits ^= least


def postorder(entry: Block) -> list[Block]:
    """Reverse of this is a topological order of the forward edges."""
    order: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(entry.succs))]
    while stack:
        block, successors = stack[-1]
        for succ in successors:
            if succ not in seen:
                seen.add(succ)
                stack.append((succ, iter(succ.succs)))
                break
        else:
            order.append(block)
            stack.pop()
    return order


def has_loops(graph: Graph) -> bool:
    """Whether any block can be entered again."""
    left = {block: index for index, block in enumerate(postorder(graph.entry))}
    return any(left[succ] >= left[block] for block in left for succ in block.succs)


def immediate_dominators(order: list[int], preds: list[list[int]]) -> list[int]:
    """Cooper, Harvey and Kennedy's algorithm on node numbers.

    ``order`` is a reverse post-order starting at the root; the result maps each node to its immediate dominator
    (the root to itself, unreachable nodes to -1).
    """
    position = [-1] * len(preds)
    for index, node in enumerate(order):
        position[node] = index
    idom = [-1] * len(preds)
    root = order[0]
    idom[root] = root

    def common(a: int, b: int) -> int:
        while a != b:
            while position[a] > position[b]:
                a = idom[a]
            while position[b] > position[a]:
                b = idom[b]
        return a

    back = [(pred, node) for node in order for pred in preds[node] if position[pred] >= position[node]]
    while True:
        changed = False
        for node in order[1:]:
            new = -1
            for pred in preds[node]:
                if idom[pred] != -1:
                    new = pred if new == -1 else common(pred, new)
            if idom[node] != new:
                idom[node] = new
                changed = True
        first, end = subtrees(order, idom)
        if not changed or all(first[node] <= first[pred] < end[node] for pred, node in back):
            return idom  # edges to a dominator are part of no shortest way to any node


def subtrees(order: Sequence[int], parents: list[int]) -> tuple[list[int], list[int]]:
    """Numbers for the nodes of a tree, and the ends of subtrees: those in one have the numbers from its root's up to its end.

    ``order`` begins with the root, and all nodes come behind their parents.
    """
    size, first = [1] * len(parents), [0] * len(parents)
    for node in reversed(order[1:]):
        size[parents[node]] += size[node]
    free = [1] * len(parents)  # the number of the next child
    for node in order[1:]:
        first[node] = free[parents[node]]
        free[node], free[parents[node]] = first[node] + 1, first[node] + size[node]
    return first, [begin + nodes for begin, nodes in zip(first, size)]


class Loop(Struct, eq=False):
    """A natural loop: ``header``, all its blocks (nested loops included), its parent and its latches."""

    header: Block
    blocks: set[Block]
    parent: Loop | None = None
    latches: list[Block] = []

    def exits(self) -> list[Block]:
        """The blocks just outside that an edge out of the loop leads to."""
        found = {succ: None for block in self.blocks for succ in block.succs if succ not in self.blocks}
        return sorted(found, key=lambda block: block.name)


def exits_of(loops: Mapping[Block, Loop]) -> dict[Loop, list[Block]]:
    """:meth:`Loop.exits` of all loops, given the innermost loop of each block, in one look at the edges."""
    found: dict[Loop, dict[Block, None]] = {loop: {} for loop in loops.values()}
    for block, innermost in loops.items():
        for succ in block.succs:
            loop: Loop | None = innermost
            while loop is not None and succ not in loop.blocks:
                found[loop][succ] = None
                loop = loop.parent
    return {loop: sorted(exits, key=lambda block: block.name) for loop, exits in found.items()}


class Dominance:
    """Dominator tree and loops of a graph; valid until the graph changes."""

    def __init__(self, graph: Graph) -> None:
        self.order = postorder(graph.entry)[::-1]
        self.number = {block: index for index, block in enumerate(self.order)}
        preds = [[self.number[p] for p in block.preds] for block in self.order]
        self.idom = immediate_dominators(list(range(len(self.order))), preds)
        self.children: list[list[int]] = [[] for _ in self.order]
        for node in range(1, len(self.order)):
            self.children[self.idom[node]].append(node)
        self._first, self._end = subtrees(range(len(self.order)), self.idom)

    def dominates(self, a: Block, b: Block) -> bool:
        x, y = self.number[a], self.number[b]
        return self._first[x] <= self._first[y] < self._end[x]

    def dominated(self, block: Block) -> list[Block]:
        """A block and those that it dominates."""
        found = [self.number[block]]
        for node in found:  # which grows meanwhile
            found += self.children[node]
        return [self.order[node] for node in found]

    def frontiers(self) -> list[int]:
        """The dominance frontier of every node, by number, as a set in which bit i stands for node i."""
        result = [0] * len(self.order)
        for node, block in enumerate(self.order):
            if len(block.preds) < 2:
                continue
            for pred in block.preds:
                runner = self.number[pred]
                while runner != self.idom[node]:
                    result[runner] |= 1 << node
                    runner = self.idom[runner]
        return result

    def loops(self) -> dict[Block, Loop]:
        """Innermost loop of every block that is in one, in the order of blocks. Back edges are edges to a dominator."""
        by_header: dict[Block, Loop] = {}
        for block in self.order:
            for succ in block.succs:
                if self.dominates(succ, block):
                    by_header.setdefault(succ, Loop(succ, {succ})).latches.append(block)
        innermost: dict[Block, Loop] = {}
        for header in sorted(by_header, key=self.number.__getitem__, reverse=True):  # those inside come first
            loop = by_header[header]
            for member in _members(loop, innermost):
                inner = innermost.get(member)
                if inner is None:
                    innermost[member] = loop
                    loop.blocks.add(member)
                else:
                    inner.parent = loop
                    loop.blocks |= inner.blocks
            innermost[header] = loop
        return {block: innermost[block] for block in self.order if block in innermost}

    def reducible(self) -> bool:
        """Every retreating edge goes to a dominator."""
        position = self.number
        return all(
            position[succ] > position[block] or self.dominates(succ, block) for block in self.order for succ in block.succs
        )


def _members(loop: Loop, innermost: dict[Block, Loop]) -> set[Block]:
    """The blocks of a loop but its header; of each loop directly inside, which must be known, the header alone."""
    found: set[Block] = set()
    work = list(loop.latches)
    while work:
        block = work.pop()
        inner = innermost.get(block)
        while inner is not None and inner.parent is not None:
            inner = inner.parent
        block = block if inner is None else inner.header
        if block is not loop.header and block not in found:
            found.add(block)
            work.extend(block.preds)
    return found


def post_dominators(blocks: list[Block], loops: Mapping[Block, Loop]) -> dict[Block, Block | None]:
    """Immediate post-dominator of every block; None where only the virtual exit post-dominates it.

    Within an iteration: what a later trip around a loop passes through does not count, so a back edge is taken for edges
    to the blocks after the loop.

    Loops without an exit are tied to the virtual exit so that every block has a path to it.
    """
    number = {block: index + 1 for index, block in enumerate(blocks)}
    after = {latch: exits for loop, exits in exits_of(loops).items() for latch in loop.latches}
    forward: list[list[int]] = [[]] + [[number[s] for s in after.get(block, block.succs)] for block in blocks]
    backward: list[list[int]] = [[] for _ in range(len(blocks) + 1)]
    for node, targets in enumerate(forward):
        for target in targets:
            backward[target].append(node)
    for block in blocks:
        if not forward[number[block]]:
            backward[0].append(number[block])
            forward[number[block]].append(0)
    _tie_endless(forward, backward)
    order = _reverse_postorder(0, backward)
    idom = immediate_dominators(order, forward)
    return {block: None if idom[number[block]] <= 0 else blocks[idom[number[block]] - 1] for block in blocks}


def tree_intervals(parents: dict[Block, Block | None]) -> dict[Block, tuple[int, int]]:
    """Pre-order number of every node of a forest, and the largest one below it: a subtree is an interval."""
    children: dict[Block | None, list[Block]] = {}
    for node, parent in parents.items():
        children.setdefault(parent, []).append(node)
    first: dict[Block, int] = {}
    intervals: dict[Block, tuple[int, int]] = {}
    stack: list[tuple[Block, bool]] = [(root, False) for root in children.get(None, ())]
    while stack:
        node, done = stack.pop()
        if done:
            intervals[node] = first[node], len(first) - 1
            continue
        first[node] = len(first)
        stack.append((node, True))
        stack.extend((child, False) for child in children.get(node, ()))
    return intervals


def _tie_endless(forward: list[list[int]], backward: list[list[int]]) -> None:
    """Give blocks that cannot reach the exit an edge to it, last block of each such region first."""
    reached = _reach(0, backward)
    for node in range(len(forward) - 1, 0, -1):
        if node not in reached:
            backward[0].append(node)
            forward[node].append(0)
            reached |= _reach(node, backward)


def _reach(start: int, edges: list[list[int]]) -> set[int]:
    seen = {start}
    work = [start]
    while work:
        for target in edges[work.pop()]:
            if target not in seen:
                seen.add(target)
                work.append(target)
    return seen


def _reverse_postorder(root: int, edges: list[list[int]]) -> list[int]:
    seen = {root}
    order: list[int] = []
    stack = [(root, iter(edges[root]))]
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(edges[target])))
                break
        else:
            order.append(node)
            stack.pop()
    return order[::-1]
