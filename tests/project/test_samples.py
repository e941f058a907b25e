"""Every sample passes, and holds what a sample must."""

from __future__ import annotations

import numpy as np
import pytest

from ptxemu.case import read_case, run_case
from tests.support.places import SAMPLES

NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())


def test_there_are_samples():
    assert len(NAMES) >= 10


@pytest.mark.parametrize("name", NAMES)
def test_sample(name, tmp_path):
    result = run_case(read_case(SAMPLES / name), output=tmp_path)
    assert result.passed, result.comparisons
    assert result.comparisons
    assert all(path.stat().st_size for path in result.saved)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_change(name):
    """A reference that agrees with the first contents would check nothing."""
    case = read_case(SAMPLES / name)
    result = run_case(case)
    for comparison in result.comparisons:
        if comparison.name in case.buffers:
            assert not np.array_equal(result.arrays[comparison.name], case.buffers[comparison.name].make())


@pytest.mark.parametrize("name", NAMES)
def test_sources_stand_side_by_side(name):
    case = read_case(SAMPLES / name)
    assert (SAMPLES / name / "reference.py").is_file()
    if case.programs[0].suffix != ".ptx":  # a dialect, which has no compiler
        return
    for file in ("kernel.cu", "kernel.ptx", "case.toml"):
        assert (SAMPLES / name / file).is_file()
    for entry in {launch.entry for launch in read_case(SAMPLES / name).launches}:
        assert f"__global__ void {entry}(" in (SAMPLES / name / "kernel.cu").read_text()
