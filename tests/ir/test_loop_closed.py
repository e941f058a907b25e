"""Where lanes may leave a loop in different iterations, what it defines leaves through phis at its exits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxemu.analysis.uniformity import Uniformity
from ptxemu.driver import compile
from ptxemu.ir.graph import Block, Graph, reads, writes
from ptxemu.ir.ops import Reg
from tests.fuzz.engines import program
from tests.support.places import CORPUS, SAMPLES

MODULES = sorted([*CORPUS.rglob("*.ptx"), *SAMPLES.rglob("*.ptx")])


def uses(graph: Graph) -> Iterator[tuple[Reg, Block]]:
    """Registers, and the blocks in which they are read; phis read at the end of the block before."""
    for block in graph.blocks:
        yield from ((reg, block) for op in block.ops for reg in reads(op))
        if block.cond is not None:
            yield block.cond, block
        for phi in block.phis:
            yield from ((arg, pred) for pred, arg in phi.args.items() if isinstance(arg, Reg))


def leaks(graph: Graph, variant: str) -> list[Reg]:
    """What is read outside of a loop with a divergent branch, and defined inside."""
    uniformity = Uniformity(graph, variant)
    home = {reg: block for block in graph.blocks for op in block.ops for reg in writes(op)}
    home |= {phi.dst: block for block in graph.blocks for phi in block.phis}
    loops = {loop for loop in uniformity.structure.loops.values() if loop.blocks & uniformity.linear.divergent}
    return [reg for reg, block in uses(graph) for loop in loops if home.get(reg) in loop.blocks and block not in loop.blocks]


def check(text: str) -> int:
    """How many graphs were looked at."""
    module, looked = compile.front(text), 0
    for entry in module.entries:
        for graph in compile.prepare(module, entry, "row").graphs:
            assert not leaks(graph, "row"), graph.name
            looked += 1
    return looked


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_of_modules(path: Path) -> None:
    assert check(path.read_text())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_of_random_kernels(first: int) -> None:
    assert sum(check(program(seed).text) for seed in range(first, first + 50)) >= 50
