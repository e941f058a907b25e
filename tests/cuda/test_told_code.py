"""PTXEMU_SYMBOLS in programs of CUDA: what perf and gdb are told of kernels, whether or not they are cached."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT

PROGRAM = """
import os
import numpy as np
from tests.support.driver_api import context, function, launch, load, to_device, to_host

TEXT = '''
.version 8.0
.target sm_80
.address_size 64
.file 1 "/src/twice.cu"
.visible .entry _Z5twicePf(.param .u64 x)
{
  .reg .b64 %rd<3>; .reg .b32 %r; .reg .f32 %f;
  .loc 1 3 0
  ld.param.u64 %rd1, [x]; mov.u32 %r, %tid.x; mul.wide.u32 %rd2, %r, 4; add.u64 %rd1, %rd1, %rd2;
  .loc 1 4 0
  ld.global.f32 %f, [%rd1]; add.f32 %f, %f, %f; st.global.f32 [%rd1], %f;
  ret;
}
'''
with context():
    memory = to_device(np.arange(64, dtype=np.float32))
    launch(function(load(TEXT), "_Z5twicePf"), (1, 1, 1), (64, 1, 1), memory)
    print(os.getpid(), to_host(memory, 64, np.float32)[63])
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def run(cache: Path, tools: str, *before: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PTXEMU_CACHE": str(cache), "PTXEMU_SYMBOLS": tools, "DEBUGINFOD_URLS": "", **variables}
    command = [*before, sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=given, cwd=ROOT, capture_output=True, text=True, check=False)


def names(done: subprocess.CompletedProcess[str]) -> set[str]:
    """What perf's map calls the kernels of a program, which computed what it should."""
    assert done.stderr == ""
    process, value = done.stdout.split()
    assert float(value) == 126
    path = Path(f"/tmp/perf-{process}.map")
    if not path.exists():
        return set()
    lines = path.read_text().splitlines()
    path.unlink()
    return {line.split(" ", 2)[2] for line in lines}


def test_perf_gets_a_map_of_lines(cache: Path) -> None:
    for _ in range(2):  # the second time the kernel is cached
        assert names(run(cache, "perf")) >= {"twice twice.cu:3", "twice twice.cu:4"}


def test_code_has_lines_where_it_is_told_alone(cache: Path) -> None:
    assert names(run(cache, "")) == set()
    assert names(run(cache, "gdb")) == set()
    assert names(run(cache, "gdb,perf")) >= {"twice twice.cu:3", "twice twice.cu:4"}
    assert names(run(cache, "")) == set()


def test_other_tools_are_refused(cache: Path) -> None:
    assert "ptxemu: PTXEMU_SYMBOLS is a list of gdb and perf, not 'vtune'\n" in run(cache, "vtune").stderr
    run(cache, "gdb")
    assert run(cache, "vtune").stderr == "ptxemu: kernels have no names: PTXEMU_SYMBOLS is a list of gdb and perf\n"


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not here")
@pytest.mark.parametrize("cached", [False, True])
def test_gdb_stops_in_a_kernel(cached: bool, cache: Path) -> None:
    if cached:
        run(cache, "gdb")
    words = ("set breakpoint pending on", "break twice.cu:4", "run", "backtrace 1")
    options = [option for word in words for option in ("-ex", word)]
    done = run(cache, "gdb", "gdb", "-nx", "-quiet", "-batch", "-iex", "set auto-load no", *options, "--args")
    assert "#0  twice" in done.stdout and "at /src/twice.cu:4" in done.stdout, done.stdout + done.stderr
