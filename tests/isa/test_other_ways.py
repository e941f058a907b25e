"""What the best code is tested with, run in the other ways: as threaded code (lower/functions/threaded.py) and interpreted.

The suite takes the forms that have every line, modifier and operand of a file; with PTXEMU_EVERY_FORM in the environment, as in
`make fuzz`, all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

import ptxemu
from ptxemu.driver import lowering
from tests.isa.forms import Form
from tests.isa.runner import File, Run, execute, execute_forms
from tests.isa.test_isa import EVERY_FORM, groups, runs
from tests.kernels import test_calls as calls
from tests.kernels import test_calls_random as calls_random
from tests.kernels import test_control_flow as control_flow

pytestmark = pytest.mark.sampled(6)

ParameterSet = type(pytest.param())


def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every kernel threaded, however small."""
    monkeypatch.setenv("PTXEMU_TIER", "fast")
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    monkeypatch.setattr(lowering, "FIRST_LAUNCH", -1.0)


def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxemu.default_device(), "engine", "interpreter")


@dataclass(frozen=True)
class Way:
    """What sets it up, and what it runs of the tests that are many: seeds of its own."""

    set_up: Callable[[pytest.MonkeyPatch], None]
    graphs: range
    programs: range


WAYS = {
    "threaded": Way(threaded, range(2000, 2060), range(100, 108)),
    "interpreter": Way(interpreted, range(3000, 3060), range(200, 208)),
}


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    WAYS[request.param].set_up(monkeypatch)
    return request.param


def in_each_way(names: tuple[str, ...], chosen: Callable[[Way], Iterable[object]]) -> pytest.MarkDecorator:
    """Runs a test in each way with the cases chosen for it, which are parameter sets or single values."""
    cases = []
    for name, one in WAYS.items():
        for case in chosen(one):
            values, words = (case.values, case.id) if isinstance(case, ParameterSet) else ((case,), case)
            cases.append(pytest.param(name, *values, id=f"{name}-{words}"))
    return pytest.mark.parametrize(("way", *names), cases, indirect=["way"])


@in_each_way(("file", "run"), lambda way: runs())
def test_run(way: str, file: File, run: Run) -> None:
    execute(file, run, way)


@in_each_way(("file", "group"), lambda way: groups(lambda file: file.forms if EVERY_FORM else file.chosen))
def test_forms(way: str, file: File, group: list[Form]) -> None:
    failures = execute_forms(file, group)
    assert not failures, "\n".join(failures)


@in_each_way(("seed",), lambda way: way.graphs)
def test_random_graph(way: str, seed: int) -> None:
    control_flow.test_random_graph(seed)


@in_each_way(("seed",), lambda way: way.programs)
def test_random_calls(way: str, seed: int) -> None:
    calls_random.test_random_programs(seed)


@in_each_way(("name",), lambda way: calls.MODULES)
def test_stacks(way: str, name: str) -> None:
    calls.test_stacks(name, "")


@in_each_way(("name",), lambda way: calls.INDIRECT)
def test_indirect_calls(way: str, name: str) -> None:
    calls.test_indirect_calls(name)
