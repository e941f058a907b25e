"""Checkers of programs on the CUDA libraries: PTXEMU_CHECK and the options of ``ptxemu cuda``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxemu.process.cuda import environment
from tests.checkers.planted import program
from tests.support.places import ROOT

SECONDS = 120
# The kernel writes 8 bytes after x; the program unloads it before it ends, and reads memory that it has registered.
KERNEL = program(
    ".loc 1 2 3\nst.global.f32 [%rd1+160], 0f00000000; ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd3+4], %r3", '.file 1 "k.cu"\n'
)
PROGRAM = """
import ctypes, sys
import numpy as np
from tests.support.driver_api import POINTER, call, context, function, get, load, to_device

with context():
    module = load(open("k.ptx").read())
    first, x, host = to_device(np.zeros(1, "f4")), to_device(np.zeros(38, "f4")), np.arange(7, 9, dtype="u4")
    call("cuMemHostRegister_v2", host.ctypes.data, host.nbytes, 0)
    values = [ctypes.c_uint64(x), ctypes.c_uint64(host.ctypes.data)]
    places = (POINTER * 2)(*(ctypes.cast(ctypes.byref(one), POINTER) for one in values))
    call("cuLaunchKernel", function(module, "k"), 2, 1, 1, 32, 1, 1, 0, None, places, None)
    call("cuCtxSynchronize")
    call("cuModuleUnload", module)
    print(host)
sys.exit(int(sys.argv[1]))
"""
REPORT = """\
memory: 4-byte write 8 bytes after allocation 2 of cudaMalloc (152 bytes)
  k.cu:2: x[40] = 0;
  <module>:12: st.global.f32 [%rd1+160], 0f00000000;
  in `k`: block (0,0,0), thread (0,0,0); 64 times
checked memory, sync in 1 launch: 1 finding
"""

FAILING = f"""#!{sys.executable}
import socket
from ptxemu.serve.__main__ import HELLO
from ptxemu.serve.protocol import Channel

channel = Channel(socket.socket(fileno=3))
channel.send([HELLO])
while channel.receive() is not None:
    channel.send([b"failed", b"no"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("checks")
    (made / "k.cu").write_text("__global__ void k(float *x, float *y) {\n  x[40] = 0;\n}\n")
    (made / "k.ptx").write_text(KERNEL)
    (made / "program.py").write_text(PROGRAM)
    return made


def run(folder: Path, *options: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ptxemu", "cuda", *options, "--", sys.executable, "program.py", str(code)]
    given = environment({**_plain(), **variables, "PYTHONPATH": str(ROOT)})
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS, check=False)


def _plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PTXEMU_CHECK")}


def test_findings_are_told_at_the_end(folder: Path) -> None:
    done = run(folder, "--check", "memory,sync", "--check-file", "found-%p.json")
    assert (done.returncode, done.stdout, done.stderr) == (5, "[7 7]\n", REPORT)
    (path,) = folder.glob("found-*.json")
    facts = json.loads(path.read_text())
    assert facts["checked"] == ["memory", "sync"] and [one["count"] for one in facts["findings"]] == [64]


def test_the_program_decides_if_it_fails_itself(folder: Path) -> None:
    done = run(folder, code=3, PTXEMU_CHECK="memory,sync", PTXEMU_CHECK_FILE="found.sarif")
    assert (done.returncode, done.stderr) == (3, REPORT)
    (result,) = json.loads((folder / "found.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "ptxemu.memory"


def test_what_is_known_is_left_out(folder: Path) -> None:
    done = run(folder, "--check", "memory", "--suppress", "memory:file=other.cu", "--suppress", "memory:line=2")
    assert (done.returncode, done.stderr) == (0, "checked memory in 1 launch: nothing found, 1 suppressed\n")


def test_what_is_never_freed(folder: Path) -> None:
    """A suppression of places is not about the host, one without is."""
    done = run(folder, "--check", "leak", PTXEMU_SUPPRESS="leak:line=1")
    kept = "leak: 156 bytes in 2 allocations of cudaMalloc are never freed: numbers 1, 2"
    assert (done.returncode, done.stderr) == (5, f"{kept}\nchecked leak in 1 launch: 1 finding\n")
    assert run(folder, "--check", "leak", "--suppress", "leak").returncode == 0


def test_without_checkers_the_slack_hides_it(folder: Path) -> None:
    done = run(folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[7 7]\n", "")


def test_a_server_that_fails_costs_only_the_lines(folder: Path) -> None:
    """Once the code is in the cache."""
    run(folder, "--check", "memory,sync")
    server = folder / "python"
    server.write_text(FAILING)
    server.chmod(0o755)
    done = run(folder, "--check", "memory,sync", "--check-exit", "9", PTXEMU_PYTHON=str(server))
    assert done.returncode == 9
    assert done.stderr.splitlines() == ["ptxemu: no", "ptxemu: no", f"ptxemu: {REPORT.partition(': ')[2].partition(chr(10))[0]}"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PTXEMU_CHECK": "memory,rac"}, "PTXEMU_CHECK: there is no checker 'rac'"),
        ({"PTXEMU_CHECK": "all", "PTXEMU_HOST_MEMORY": "1"}, "PTXEMU_HOST_MEMORY is set"),
    ],
)
def test_what_cannot_be_checked_does_not_run(folder: Path, variables: dict[str, str], said: str) -> None:
    done = run(folder, **variables)
    assert done.returncode == 1 and done.stderr.count(said) == 1 and "NOT_INITIALIZED" in done.stderr


@pytest.mark.parametrize("options", [["--check", "memroy"], ["--check", "all", "--suppress", "race:x=1"], ["--check-exit", "1"]])
def test_wrong_options(folder: Path, options: list[str]) -> None:
    done = run(folder, *options)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
