"""The interpreter on what the compiler is tested with: launches and forms of ``tests/isa``, and random programs."""

from __future__ import annotations

import pytest

import ptxemu
from tests.isa.forms import Form
from tests.isa.runner import File, Run, execute, execute_forms
from tests.isa.test_isa import groups, runs
from tests.kernels import test_calls as calls
from tests.kernels import test_calls_random as calls_random
from tests.kernels import test_control_flow as control_flow

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxemu.default_device(), "engine", "interpreter")


@pytest.mark.parametrize(("file", "run"), list(runs()))
def test_run(file: File, run: Run) -> None:
    execute(file, run)


@pytest.mark.parametrize(("file", "group"), list(groups())[::4])
def test_forms(file: File, group: list[Form]) -> None:
    failures = execute_forms(file, group)
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("seed", range(3000, 3060))
def test_random_graph(seed: int) -> None:
    control_flow.test_random_graph(seed)


@pytest.mark.parametrize("seed", range(200, 208))
def test_random_calls(seed: int) -> None:
    calls_random.test_random_programs(seed)


@pytest.mark.parametrize("name", calls.MODULES)
def test_stacks(name: str) -> None:
    calls.test_stacks(name, "")


@pytest.mark.parametrize("name", calls.INDIRECT)
def test_indirect_calls(name: str) -> None:
    calls.test_indirect_calls(name)
