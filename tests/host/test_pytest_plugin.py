"""The pytest plugin, in projects outside of this one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import api_kernels as ptx

CASE = """
title = "saxpy"
{keys}
ptx = "saxpy.ptx"
grid = 1
block = 32
args = {{ n = 4, a = 2, x = {{ values = [1, 2, 3, 4], dtype = "f32" }}, y = {{ zeros = {{ dtype = "f32", shape = 4 }} }} }}
[expect.outputs.y]
expression = "{expression}"
"""
TESTS = """
import numpy as np, pytest, ptxemu

def test_case(ptx_case):
    np.testing.assert_array_equal(ptx_case("good").arrays["y"], [2, 4, 6, 8])

def test_wrong_case(ptx_case):
    with pytest.raises(AssertionError, match="y: 4 of 4 differ"):
        ptx_case("bad/case.toml")

def test_device(ptx_device, assert_array_ulp):
    y = np.zeros(4, np.float32)
    ptxemu.load("good/saxpy.ptx", device=ptx_device)["saxpy"][1, 32](4, 1.0, np.ones(4, np.float32), y)
    assert_array_ulp(y, np.nextafter(np.ones(4, np.float32), np.float32(2)))
    with pytest.raises(AssertionError, match="4 of 4 differ"):
        assert_array_ulp(y, np.full(4, 1 + 2**-22, np.float32))
    assert_array_ulp(y, np.full(4, 1 + 2**-22, np.float32), ulp=2)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with cases and tests."""
    for name, expression, keys in (
        ("good", "a * x", 'tags = ["quick"]'),
        ("bad", "a * x + 1", ""),
        ("skipped", "x", 'skip = "too long"'),
        ("known", "x", 'xfail = "is off"'),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "saxpy.ptx").write_text(ptx.SAXPY)
        (folder / "case.toml").write_text(CASE.format(keys=keys, expression=expression))
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\nversion = "1"\n')
    return tmp_path


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-rA", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_cases_are_collected_and_fixtures_are_there(project: Path) -> None:
    done = pytest_in(project)
    assert "1 failed, 4 passed, 1 skipped, 1 xfailed" in done.stdout
    assert "failed: y: 4 of 4 differ; first at [0]: 2.0, expected 3.0" in done.stdout
    assert "PASSED good/case.toml::case" in done.stdout
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_cases_are_chosen_by_tag_and_by_pattern(project: Path) -> None:
    assert "1 passed, 6 deselected" in pytest_in(project, "-k", "quick").stdout
    (project / "broken.case.toml").write_text(CASE.format(keys="", expression="x").replace('"saxpy"', "3"))
    done = pytest_in(project, "-o", "ptxemu_cases=*.case.toml", "--deselect", "test_it.py")
    assert "error: " in done.stdout and "title: must be a string, not 3" in done.stdout
    assert "1 failed, 3 deselected" in done.stdout
    (project / "sweep.toml").write_text(CASE.format(keys="block = '${block}'", expression="a * x").replace("block = 32\n", ""))
    with (project / "sweep.toml").open("a") as file:
        file.write("\n[[matrix]]\nblock = [32, 64]\n")
    (project / "saxpy.ptx").write_text(ptx.SAXPY)
    done = pytest_in(project, "-o", "ptxemu_cases=sweep.toml", "sweep.toml::case[block=64]")
    assert "PASSED sweep.toml::case[block=64]" in done.stdout and "1 passed" in done.stdout
