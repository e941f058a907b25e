"""Dominators of random graphs are those that removing one node after the other finds."""

from __future__ import annotations

import random

import pytest

from ptxemu.ir.dominators import immediate_dominators, subtrees


def random_edges(seed: int) -> list[list[int]]:
    """Successors of each node; some nodes may not be reached, and loops may have several entries."""
    draw = random.Random(seed)
    nodes = draw.randint(1, 14)
    succs: list[list[int]] = [[] for _ in range(nodes)]
    for _ in range(draw.randint(nodes - 1, 2 * nodes + 2)):
        succs[draw.randrange(nodes)].append(draw.randrange(nodes))
    return succs


def reached(succs: list[list[int]], without: int | None = None) -> list[int]:
    """The nodes on ways from node 0 that avoid one, in reverse post-order."""
    order: list[int] = []
    seen = set[int]() if without is None else {without}

    def visit(node: int) -> None:
        if node not in seen:
            seen.add(node)
            for succ in succs[node]:
                visit(succ)
            order.append(node)

    visit(0)
    return order[::-1]


@pytest.mark.parametrize("first", range(0, 3000, 500))
def test_dominators(first: int) -> None:
    for seed in range(first, first + 500):
        succs = random_edges(seed)
        order = reached(succs)
        preds: list[list[int]] = [[] for _ in succs]
        for node, targets in enumerate(succs):
            for target in targets:
                preds[target].append(node)
        begin, end = subtrees(order, immediate_dominators(order, preds))
        for above in order:
            left = reached(succs, above)
            for node in order:
                assert (begin[above] <= begin[node] < end[above]) == (node not in left), (seed, above, node)
