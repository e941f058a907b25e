"""The pytest plugin: cases as tests, and fixtures for tests of kernels (docs/suites.md, "Tests with pytest").

pytest loads it wherever ptxemu is installed: what takes time to import is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ptxemu import Device
    from ptxemu.case import CaseResult

INI = "ptxemu_cases"
TIMEOUT = "ptxemu_timeout"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Settings of the plugin."""
    parser.addini(INI, "Names of files that are cases, such as *.case.toml", type="args", default=["case.toml"])
    parser.addini(TIMEOUT, "Seconds, for launches of cases that state none", default="60")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Cases are collected like tests."""
    if not any(fnmatch(file_path.name, pattern) for pattern in parent.config.getini(INI)):
        return None
    return CaseFile.from_parent(parent, path=file_path)


class CaseFile(pytest.File):
    """A case file, with one test, or one for each point of its sweep."""

    def collect(self) -> Iterator[pytest.Item]:
        from ptxemu.case import read_case
        from ptxemu.case.discovery import cases_of
        from ptxemu.text.errors import Error

        for case in cases_of(self.path):
            item = CaseItem.from_parent(self, name=f"case{str(case).removeprefix(str(self.path))}")
            item.case = case
            with suppress(Error):  # which running the case tells
                item.extra_keyword_matches.update(read_case(case).tags)
            yield item


class CaseItem(pytest.Item):
    """A case as a test: its tags can be chosen by ``-k``."""

    case: Path  # its file, or a point of a sweep

    def runtest(self) -> None:
        from ptxemu import Device
        from ptxemu.cli.options import DeviceChoice
        from ptxemu.cli.suite.one_case import Settings, run_one
        from ptxemu.cli.suite.outcome import EXPECTED, PASSED, SKIPPED

        settings = Settings(float(self.config.getini(TIMEOUT)), None, DeviceChoice())
        with Device() as device:
            outcome = run_one(self.case, settings, device)
        if outcome.output:
            self.add_report_section("call", "stdout", outcome.output)
        if outcome.status == SKIPPED:
            pytest.skip(outcome.message)
        if outcome.status == EXPECTED:
            pytest.xfail(outcome.message)
        if outcome.status != PASSED:
            raise CaseFailure(f"{outcome.status}: {outcome.message}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, CaseFailure) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.parent.name}: {self.name}"


class CaseFailure(AssertionError):
    """A case that did not pass."""


@pytest.fixture
def ptx_device() -> Iterator[Device]:
    """A device of the test's own."""
    from ptxemu import Device

    with Device() as device:
        yield device


@pytest.fixture
def ptx_case(ptx_device: Device, request: pytest.FixtureRequest) -> Callable[..., CaseResult]:
    """A function that runs a case, by its path or that of its folder beside the test, and asserts that it passes.

    Returns the :class:`ptxemu.case.CaseResult`, whose ``arrays`` are the final contents by name.
    """

    def run(path: str | Path) -> CaseResult:
        from ptxemu.case import read_case, run_case

        result = run_case(read_case(request.path.parent / path), device=ptx_device)
        wrong = [f"{item.name}: {item.message}" for item in result.comparisons if not item.passed]
        assert not wrong, "\n".join(wrong)
        return result

    return run


@pytest.fixture
def assert_array_ulp() -> Callable[..., None]:
    """``assert_array_ulp(actual, expected, ulp=1)``: floats are so many representable numbers apart at most.

    Integers must be equal, NaN is equal to NaN, infinities and shapes must be the same.
    """

    def check(actual: Any, expected: Any, ulp: int = 1) -> None:
        import numpy as np

        from ptxemu.case.compare import compare
        from ptxemu.case.tolerance import Tolerance

        found = compare("array", np.asarray(actual), expected, Tolerance(ulp=ulp))
        assert found.passed, found.message

    return check
