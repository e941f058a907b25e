"""What the best code is tested with, run in the other ways: as threaded code (lower/functions/threaded.py) and interpreted.

The suite takes a share of the groups of forms; with PTXEMU_EVERY_FORM in the environment, as in `make fuzz`, all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

import ptxemu
from ptxemu.driver import compile
from tests.isa.forms import Form
from tests.isa.runner import File, Run, execute, execute_forms
from tests.isa.test_isa import groups, runs
from tests.kernels import test_calls as calls
from tests.kernels import test_calls_random as calls_random
from tests.kernels import test_control_flow as control_flow

pytestmark = pytest.mark.slow
EVERY_FORM = "PTXEMU_EVERY_FORM" in os.environ
ParameterSet = type(pytest.param())


def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every kernel threaded, however small."""
    monkeypatch.setenv("PTXEMU_TIER", "fast")
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    monkeypatch.setattr(compile, "FIRST_LAUNCH", -1.0)


def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxemu.default_device(), "engine", "interpreter")


@dataclass(frozen=True)
class Way:
    """What sets it up, and what it runs of the tests that are many: one of ``step`` groups of forms, and seeds of its own."""

    set_up: Callable[[pytest.MonkeyPatch], None]
    step: int
    graphs: range
    programs: range


WAYS = {
    "threaded": Way(threaded, 12, range(2000, 2060), range(100, 108)),
    "interpreter": Way(interpreted, 4, range(3000, 3060), range(200, 208)),
}


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    WAYS[request.param].set_up(monkeypatch)


def in_each_way(names: tuple[str, ...], chosen: Callable[[Way], Iterable[object]]) -> pytest.MarkDecorator:
    """Runs a test in each way with the cases chosen for it, which are parameter sets or single values."""
    cases = []
    for name, one in WAYS.items():
        for case in chosen(one):
            values, words = (case.values, case.id) if isinstance(case, ParameterSet) else ((case,), case)
            cases.append(pytest.param(name, *values, id=f"{name}-{words}"))
    return pytest.mark.parametrize(("way", *names), cases, indirect=["way"])


@in_each_way(("file", "run"), lambda way: runs())
def test_run(way: None, file: File, run: Run) -> None:
    execute(file, run)


@in_each_way(("file", "group"), lambda way: list(groups())[:: 1 if EVERY_FORM else way.step])
def test_forms(way: None, file: File, group: list[Form]) -> None:
    failures = execute_forms(file, group)
    assert not failures, "\n".join(failures)


@in_each_way(("seed",), lambda way: way.graphs)
def test_random_graph(way: None, seed: int) -> None:
    control_flow.test_random_graph(seed)


@in_each_way(("seed",), lambda way: way.programs)
def test_random_calls(way: None, seed: int) -> None:
    calls_random.test_random_programs(seed)


@in_each_way(("name",), lambda way: calls.MODULES)
def test_stacks(way: None, name: str) -> None:
    calls.test_stacks(name, "")


@in_each_way(("name",), lambda way: calls.INDIRECT)
def test_indirect_calls(way: None, name: str) -> None:
    calls.test_indirect_calls(name)
