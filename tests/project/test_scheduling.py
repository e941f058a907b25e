"""How the tests are dealt out to processes (tests/support/scheduling.py)."""

from __future__ import annotations

from argparse import Namespace

import pytest

from tests import conftest
from tests.support.places import ROOT
from tests.support.scheduling import IN_ONE_PROCESS, NEIGHBOURS, Neighbours


def scheduler(dist: str) -> object:
    config = Namespace(option=Namespace(loadscopereorder=True), getvalue={"dist": dist, "tx": ["popen"], "numprocesses": 1}.get)
    return conftest.pytest_xdist_make_scheduler(config, lambda *_: None)


@pytest.mark.parametrize("dist", ["load", "loadgroup"])
def test_files_are_whole_or_cut_into_neighbours(dist: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Neighbours.__mro__[1], "__init__", lambda self, config, log: setattr(self, "config", config))
    made = scheduler(dist)
    for file in IN_ONE_PROCESS:
        assert (ROOT / file).exists()
        assert len({made._split_scope(f"{file}::test[{number}]") for number in range(100)}) == 1
    names = [f"tests/isa/test_isa.py::test[{number}]" for number in range(2 * NEIGHBOURS)]
    scopes = [made._split_scope(name) for name in names]
    assert len(set(scopes[:NEIGHBOURS])) == len(set(scopes[NEIGHBOURS:])) == 1 and scopes[0] != scopes[-1]
    assert [made._split_scope(name) for name in reversed(names)] == scopes[::-1]


def test_what_the_command_line_asks_for_goes_first() -> None:
    assert scheduler("loadfile") is None


def test_files_in_one_process_come_first(request: pytest.FixtureRequest) -> None:
    files = [item.nodeid.partition("::")[0] for item in request.session.items]
    late = next((number for number, file in enumerate(files) if file not in IN_ONE_PROCESS), len(files))
    assert not set(files[late:]) & set(IN_ONE_PROCESS)
