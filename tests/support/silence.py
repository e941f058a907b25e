"""A pytest plugin: every device has all checkers, which must find nothing in what the tests launch.

Tests in ``RACES`` do race: ``race`` may find something there.

pytest -p tests.support.silence tests/kernels/test_corpus.py

``PTXEMU_SILENCE`` names other checkers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest
from msgspec.structs import replace

from ptxemu import api
from ptxemu.checkers.checks import Checks
from ptxemu.device import device
from ptxemu.driver.program import Program

NAMES = os.environ.get("PTXEMU_SILENCE", "all")
# How the names of tests begin that launch what races, and why it does.
RACES = {
    "test_const_and_global_variables": "each thread adds 1 to `man` by a load and a store",
    "test_atomics_on_shared_memory": "each thread loads b[255], which others exchange in the same loop",
    "test_switch": "each thread of case 1 stores its own number to the same word",
    **{
        f"test_read_and_write[{prefix}-clamp-30-": "lanes beyond the edge all write to the last texel"
        for prefix in ("surf1d", "surf2d", "surf3d", "surf1dl", "surf2dl")
    },
    "test_forbidden_outcomes_are_never_seen[mp_release_acquire-": "the data are loaded even if the flag is not seen",
    "test_forbidden_outcomes_are_never_seen[mp_atomics-": "the data are loaded even if the flag is not seen",
}
made: list[Checks] = []
plain, plain_module = device.Device.__init__, api.Module.__init__


@wraps(plain)
def checked(self: device.Device, *arguments: Any, **options: Any) -> None:
    watched = not options.get("host_memory") and options.get("engine", "jit") == "jit"
    plain(self, *arguments, **{"check": NAMES if watched else "", **options})
    if self.checks is not None:
        made.append(self.checks)


@wraps(plain_module)
def observed(self: api.Module, program: Program, given: device.Device | None = None, *others: Any) -> None:
    """Those without a device take the default one, whose checkers code must know of."""
    own = given or device.default_device()
    if own.checks is not None:
        program.settings = replace(program.settings, observed=own.checks.observed)
    plain_module(self, program, own, *others)


device.Device.__init__ = checked  # type: ignore[method-assign]
api.Module.__init__ = observed  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def silence(request: pytest.FixtureRequest) -> Iterator[None]:
    for checks in made:
        checks.clear()
    yield
    races = request.node.name.startswith(tuple(RACES))
    findings = [finding for checks in made for finding in checks.findings]
    assert [str(finding) for finding in findings if not (races and finding.check == "race")] == []
