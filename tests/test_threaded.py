"""Threaded code (lower/functions/threaded.py): every instruction and the shapes of control flow, as in the other form."""

from __future__ import annotations

import pytest
import test_calls as calls
import test_calls_random as calls_random
import test_control_flow as control_flow
import test_sass as sass
from isa_forms import Form
from isa_runner import File, Run, execute, execute_forms
from test_isa import groups, runs

from ptxemu.driver import compile

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every kernel threaded, however small."""
    monkeypatch.setenv("PTXEMU_TIER", "fast")
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    monkeypatch.setattr(compile, "FIRST_LAUNCH", -1.0)


@pytest.mark.parametrize(("file", "run"), list(runs()))
def test_run(file: File, run: Run) -> None:
    execute(file, run)


@pytest.mark.parametrize(("file", "group"), list(groups())[::12])
def test_forms(file: File, group: list[Form]) -> None:
    failures = execute_forms(file, group)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("seed", range(2000, 2060))
def test_random_graph(seed: int) -> None:
    control_flow.test_random_graph(seed)


@pytest.mark.parametrize("seed", range(100, 108))
def test_random_calls(seed: int) -> None:
    calls_random.test_random_programs(seed)


@pytest.mark.parametrize("name", calls.MODULES)
def test_stacks(name: str) -> None:
    calls.test_stacks(name, "")


@pytest.mark.parametrize("name", calls.INDIRECT)
def test_indirect_calls(name: str) -> None:
    calls.test_indirect_calls(name)


def test_a_guard_may_be_a_constant() -> None:
    sass.test_registers_and_predicates_start_as_zero()
