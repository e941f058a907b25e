"""Which tests are slow: those that were when all tests were timed, on a machine that did nothing else.

    make test-times

times them and writes the list anew. ``make test-fast`` leaves them out.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.support.places import DATA
from tests.support.scheduling import IN_ONE_PROCESS

LIST = DATA / "slow_tests.txt"
EACH, TOGETHER = 0.03, 1.0
"""Seconds that a test of a function that is not slow may take in the mean, and all its tests."""
WANTED = frozenset({"tests/isa/test_isa.py::test_first_form"})
"""Functions that are not slow however long they take: they are all there is of an area."""


def function_of(nodeid: str) -> str:
    """The test without its parameters, or its file where all tests share what takes long to make."""
    function = nodeid.partition("[")[0]
    file = function.partition("::")[0]
    return file if file in IN_ONE_PROCESS else function


@cache
def slow() -> frozenset[str]:
    return frozenset(LIST.read_text(encoding="utf-8").split())


class Timer:
    """A plugin that times tests, set-up included, and writes the list. Functions of which no test has run stay as they were."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._tests: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        function = function_of(report.nodeid)
        self._seconds[function] += report.duration
        self._tests.setdefault(function, set()).add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        found = {name for name, tests in self._tests.items() if self._seconds[name] > min(TOGETHER, EACH * len(tests))}
        names = sorted((found | (slow() - self._tests.keys())) - WANTED)
        LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
