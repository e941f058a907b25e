"""Blocks that run with the same lanes: what the structure finds at once is what a search of all dominators finds."""

from __future__ import annotations

import random

import pytest

from ptxemu.analysis.linear import Structure
from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.ops import Reg
from ptxemu.ir.types import PRED
from ptxemu.passes.loops import canonicalize


def drawn(seed: int) -> Graph:
    """A graph of up to 14 blocks, mostly in a row, with branches anywhere."""
    draw = random.Random(seed)
    blocks = [Block(f"b{index}") for index in range(draw.randint(2, 14))]
    for index, block in enumerate(blocks):
        count = draw.choice([0, 1, 1, 2, 2, 2])
        following = blocks[min(index + 1, len(blocks) - 1)]
        block.succs = [following if draw.random() < 0.7 else draw.choice(blocks[1:])][:count]
        block.succs += [draw.choice(blocks[1:]) for _ in range(count - 1)]
        block.cond = Reg("%p", PRED) if count == 2 else None
    graph = Graph("graph", blocks, [])
    graph.link()
    canonicalize(graph)
    return graph


def searched(structure: Structure, block: Block) -> Block | None:
    """The closest of all dominators in the same loop that the block post-dominates."""
    dominance, node = structure.dominance, structure.dominance.number[block]
    while node != dominance.idom[node]:
        node = dominance.idom[node]
        candidate = dominance.order[node]
        if structure.loops.get(candidate) is structure.loops.get(block) and structure._post_dominates(block, candidate):
            return candidate
    return None


@pytest.mark.parametrize("start", range(0, 2000, 200))
def test_against_a_search(start: int) -> None:
    found = 0
    for seed in range(start, start + 200):
        structure = Structure(drawn(seed))
        for block in structure.order:
            assert structure.equivalent(block) is searched(structure, block)
            found += structure.equivalent(block) is not None
    assert found > 100


def test_each_block_is_compared_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [Block(f"b{index}") for index in range(401)]
    for index in range(0, 400, 2):  # a row of branches around a block
        blocks[index].succs = [blocks[index + 2], blocks[index + 1]]
        blocks[index + 1].succs = [blocks[index + 2]]
    graph = Graph("graph", blocks, [])
    graph.link()
    structure = Structure(graph)
    compared: list[Block] = []
    test = Structure._post_dominates
    monkeypatch.setattr(
        Structure, "_post_dominates", lambda self, block, other: compared.append(block) or test(self, block, other)
    )
    assert [structure.equivalent(block) for block in blocks[2::2]] == blocks[0:-1:2]
    assert all(structure.equivalent(block) is None for block in blocks[1::2])
    assert len(compared) == 400
