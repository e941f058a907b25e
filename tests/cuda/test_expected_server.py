"""The compile server of Python programs: whether it is started before a module is loaded, and what comes of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.places import ROOT, TESTS

KERNELS = TESTS / "cuda" / "data" / "kernels.ptx"
PROGRAM = f"""
import glob
from tests.support.driver_api import context, function, load

def children():
    return sum(len(open(path).read().split()) for path in glob.glob("/proc/self/task/*/children"))

with context():
    print(children())
    function(load(open({str(KERNELS)!r}).read()), "add")
    print(children())
"""
"""How many children there are when there is a context, and when a module is loaded."""


def children(cache: Path, **variables: str) -> list[int]:
    environment = {**os.environ, "PTXEMU_CACHE": str(cache), **variables}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    return [int(line) for line in done.stdout.split()]


def test_it_waits_for_the_first_module_where_nothing_is_cached(tmp_path: Path) -> None:
    assert children(tmp_path / "none") == [1, 1]


@pytest.mark.parametrize(("minutes", "before"), [(1, 1), (20, 0)])
def test_it_is_expected_to_be_asked_where_it_was_lately(minutes: int, before: int, tmp_path: Path) -> None:
    children(tmp_path / "cache")
    then = time.time() - 60 * minutes
    os.utime(tmp_path / "cache", (then, then))
    assert children(tmp_path / "cache") == [before, before]  # what is cached needs none


def test_a_python_that_has_no_ptxemu_is_left_for_one_that_has(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\nexit 1\n")
    other.chmod(0o755)
    assert children(tmp_path / "cache", PTXEMU_PYTHON=str(other)) == [1, 1]
