"""Which tests are slow: those that were when all tests were timed, on a machine that did nothing else.

    make test-times

times them and writes the list anew. ``make test-fast`` leaves them out.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.support.places import DATA

LIST = DATA / "slow_tests.txt"
SLOW = 0.08
"""Seconds that the tests of one function take in the mean."""


def function_of(nodeid: str) -> str:
    """The test without its parameters."""
    return nodeid.partition("[")[0]


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
        found = {function for function, tests in self._tests.items() if self._seconds[function] > SLOW * len(tests)}
        names = sorted(found | (slow() - self._tests.keys()))
        LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
