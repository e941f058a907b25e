"""libcudart.so.11.0: a program of CUDA 11, linked with it, and with a runtime of its own that is replaced."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ptxemu.images.fatbin import PTX
from ptxemu.process.cuda import environment, library_path
from tests.cuda.test_linked_in import compiled, stand_ins
from tests.images.test_fatbin import fat
from tests.support.places import TESTS

DATA = TESTS / "cuda" / "version_11"
SECONDS = 300


def image(folder: Path) -> Path:
    path = folder / "kernels.fatbin"
    path.write_bytes(fat((PTX, 70, (DATA / "kernels.ptx").read_bytes())))
    return path


@pytest.mark.parametrize("linked_in", [False, True])
def test_references_structures_and_graphs(tmp_path: Path, linked_in: bool) -> None:
    libraries = f"-Wl,-rpath-link,{library_path()}:{library_path().parents[1]}"
    runtime = stand_ins(tmp_path, "11") if linked_in else library_path() / "libcudart.so.11.0"
    program = compiled(tmp_path, [DATA / "host.c", runtime], libraries)
    done = subprocess.run(
        [program, image(tmp_path)], env=environment(os.environ), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
