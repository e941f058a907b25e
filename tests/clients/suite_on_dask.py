"""``ptxemu test --dask local`` on processes, one of which is killed: ``python -m tests.clients.suite_on_dask``.

Dask is installed beside ptxemu, under ``build/clients``. A case waits until the process that runs it has been killed; when it
runs again it passes. Another one kills each process that it comes to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.environment import packages_of, python_of
from tests.support import api_kernels as ptx

DASK = ["distributed==2026.8.0"]
CASES = 8
SECONDS = 480
CASE = """
ptx = "k.ptx"
grid = 1
block = 32
args = { n = 4, a = 2, x = { full = { dtype = "f32", shape = 4, value = 1 } }, y = { zeros = { dtype = "f32", shape = 4 } } }
[expect]
reference = "reference.py"
"""
RIGHT = "def reference(inputs):\n    return {'y': 2 * inputs['x']}\n"
WAITS = """
import os, time

RUNS = os.path.join(os.path.dirname(__file__), "runs")

def reference(inputs):
    runs = 1
    with open(RUNS, "a+") as file:
        file.write(f"{os.getpid()}\\n")
        while runs == 1:
            time.sleep(0.1)
            file.seek(0)
            runs = len(file.read().split())
    return {'y': 2 * inputs['x']}
"""
KILLS = "import os\n\ndef reference(inputs):\n    os.kill(os.getpid(), 9)\n"


def make_suite(folder: Path) -> None:
    for number in range(CASES):
        _write(folder / f"right{number}", RIGHT)
    _write(folder / "waits", WAITS)
    _write(folder / "kills", KILLS)


def _write(folder: Path, reference: str) -> None:
    folder.mkdir()
    (folder / "k.ptx").write_text(ptx.SAXPY)
    (folder / "reference.py").write_text(reference)
    (folder / "case.toml").write_text(CASE)


def kill_the_first(runs: Path, suite: subprocess.Popen[str]) -> None:
    """Kill the process that a case waits in."""
    while suite.poll() is None:
        first = runs.read_text().split() if runs.exists() else []
        if first:
            os.kill(int(first[0]), signal.SIGKILL)
            return
        time.sleep(0.1)


def main() -> int:
    python = python_of("dask", DASK)
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as name:
        folder, report = Path(name, "suite"), Path(name, "report.json")
        folder.mkdir()
        make_suite(folder)
        command = [sys.executable, "-m", "ptxemu", "test", str(folder), "--dask", "local", "-j", "2", "--json", str(report)]
        environment = {**os.environ, "PYTHONPATH": str(packages_of(python)), "PTXEMU_CACHE": str(Path(name, "cache"))}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
            try:
                kill_the_first(folder / "waits" / "runs", suite)
                said = suite.communicate(timeout=SECONDS)[0]
            finally:
                suite.kill()
        statuses = {Path(case["path"]).parent.name: case["status"] for case in json.loads(report.read_text())["cases"]}
        runs = (folder / "waits" / "runs").read_text().split()
    wanted = {**{f"right{number}": "passed" for number in range(CASES)}, "waits": "passed", "kills": "killed"}
    right = statuses == wanted and suite.returncode == 4 and len(set(runs)) == 2
    print(f"a suite on Dask: {'passed' if right else f'FAILED: {statuses}, code {suite.returncode}, runs {runs}'}")
    if not right:
        print(said)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
