"""Launches in clusters by the command line and by case files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxemu.cli import run
from tests.support.places import KERNELS

RING = ["--entry", "ring", "--block", "64", "--arg", "out=zeros:u32:256", "--arg", "turns=1"]
CASE = """
ptx = "{ptx}"
entry = "ring"
grid = 4
block = 64
cluster = {cluster}

[args]
out = {{ zeros = {{ dtype = "u32", shape = 256 }} }}
turns = 1

[expect]
reference = "reference.py"
"""


def values() -> np.ndarray:
    """Each block has those of the other one of its cluster."""
    blocks = np.arange(4, dtype=np.uint32)[:, None] ^ 1
    return (blocks * 1000 + np.arange(64, dtype=np.uint32)).reshape(-1).astype(np.uint32)


def test_run(tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    assert run(["run", str(KERNELS / "clusters.ptx"), *RING, "--grid", "4", "--cluster", "2x1", "--out", f"out={out}"]) == 0
    np.testing.assert_array_equal(np.load(out), values())


def test_a_grid_that_is_no_multiple(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(KERNELS / "clusters.ptx"), *RING, "--grid", "4", "--cluster", "3"]) == 2
    assert "grid.x is 4, which clusters of 3 blocks do not make up" in capsys.readouterr().err


@pytest.mark.parametrize("cluster", ["2", "[2, 1, 1]"])
def test_case(tmp_path: Path, cluster: str) -> None:
    wanted = values().tolist()
    text = f"import numpy\ndef reference(inputs):\n    return {{'out': numpy.array({wanted}, 'u4')}}\n"
    (tmp_path / "reference.py").write_text(text)
    (tmp_path / "clusters.ptx").write_bytes((KERNELS / "clusters.ptx").read_bytes())
    case = tmp_path / "case.toml"
    case.write_text(CASE.format(ptx="clusters.ptx", cluster=cluster))
    assert run(["run", str(case)]) == 0
