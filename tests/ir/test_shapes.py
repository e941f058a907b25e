"""No shape claims more than those of the values that it follows from."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxemu.analysis.shape import meet
from ptxemu.analysis.uniformity import UNKNOWN, Uniformity
from ptxemu.driver import compile, pipeline
from ptxemu.ir.ops import Reg
from tests.fuzz.engines import program
from tests.support.places import CORPUS, SAMPLES

MODULES = sorted([*CORPUS.rglob("*.ptx"), *SAMPLES.rglob("*.ptx")])


def doubtful(found: Uniformity) -> list[Reg]:
    """Values whose shape is not what it has in common with what they follow from."""
    wrong: list[Reg] = []
    for block in found.structure.order:
        for op in block.ops:
            made = found.results(op)
            wrong += [dst for dst in op.dsts if dst is not None and made is not UNKNOWN and not _covers(found, dst, made)]
        for dst, args in block.phis.rows():
            wrong += [dst for arg in args if not _covers(found, dst, found.shape(arg))]
    return wrong


def _covers(found: Uniformity, reg: Reg, shape: object) -> bool:
    known = found.shape(reg)
    return meet(known, shape) == known  # type: ignore[arg-type]


def check(text: str) -> int:
    """How many graphs were looked at."""
    module, looked = compile.front(text), 0
    for entry in module.entries:
        shapes, _ = pipeline.analyse(compile.prepare(module, entry, "row"))
        for found in shapes:
            assert not doubtful(found), found.structure.graph.name
            looked += 1
    return looked


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_of_modules(path: Path) -> None:
    assert check(path.read_text())


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_of_random_kernels(first: int) -> None:
    assert sum(check(program(seed).text) for seed in range(first, first + 50)) >= 50
