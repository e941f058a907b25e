"""Tiers of code in programs that know nothing of them: better code is taken once it is there, and PTXEMU_TIER chooses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.places import ROOT

TIMEOUT = 120


@pytest.mark.parametrize(
    ("tier", "planted", "again", "stored"),
    [
        ("fast", "best", [], "1 2\n"),  # while the program runs, once it is in the cache
        ("fast", "fast", [], "1 1\n"),  # code that is loaded stays where there is none that is better
        ("best", "fast", ["reload"], "1 1\n"),
    ],
)
def test_which_code_a_launch_runs(tmp_path, tier, planted, again, stored):
    variables = {**os.environ, "PTXEMU_CACHE": str(tmp_path), "PTXEMU_TIER": tier}
    command = [sys.executable, "-m", "tests.cuda.planted_code", planted, *again]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert (done.stdout, done.stderr) == (stored, "")


def test_a_tier_that_there_is_not_is_said(tmp_path):
    variables = {**os.environ, "PTXEMU_CACHE": str(tmp_path), "PTXEMU_TIER": "quick"}
    command = [sys.executable, "-m", "tests.cuda.planted_code", "best"]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert "ptxemu: PTXEMU_TIER must be one of auto, fast, best, not 'quick'\n" in done.stderr
