"""A pytest plugin: every device has all checkers, which must find nothing in what the tests launch.

pytest -p tests.support.silence tests/kernels/test_corpus.py
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from typing import Any

import pytest

from ptxemu.checkers.checks import Checks
from ptxemu.device import device

made: list[Checks] = []
plain = device.Device.__init__


@wraps(plain)
def checked(self: device.Device, *arguments: Any, **options: Any) -> None:
    watched = not options.get("host_memory") and options.get("engine", "jit") == "jit"
    plain(self, *arguments, **{"check": "all" if watched else "", **options})
    if self.checks is not None:
        made.append(self.checks)


device.Device.__init__ = checked  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    for checks in made:
        checks.clear()
    yield
    assert [str(finding) for checks in made for finding in checks.findings] == []
