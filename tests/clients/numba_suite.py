"""Numba's own tests of its CUDA target, run on libcuda.so.1: says which fail, and which of these it should not.

``python -m tests.clients.numba_suite [TEST ...]``: names of modules, classes or tests. Each CPU runs a part of them.
Exits with 1 if a test fails that is not in EXPECTED.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.clients.environment import CLIENTS, SECONDS, packages_of, python_of, told, variables

PACKAGES = [
    "numba==0.61.2",
    "nvidia-cuda-nvcc-cu12==12.4.131",  # whose libnvvm takes all architectures that the tests compile for
    "nvidia-cuda-nvrtc-cu12==12.9.86",
]
TESTS = [f"numba.cuda.tests.{part}" for part in ("cudadrv", "cudapy", "doc_examples", "nocuda")]
FAILED = re.compile(r"^(?:FAIL|ERROR): \S+ \((\S+)\)", re.MULTILINE)

EXPECTED = {
    "numba.cuda.tests.cudadrv.test_linker.TestLinker.test_set_registers_no_max": "no registers are counted: a kernel has 32",
}
"""Tests that fail, with the reason."""


def numba_environment() -> tuple[Path, dict[str, str]]:
    """A Python with Numba, and its environment."""
    python = python_of("numba", PACKAGES)
    nvidia = packages_of(python) / "nvidia"
    names = (("cuda_nvcc/nvvm/lib64", "libnvvm.so.4", "libnvvm.so"), ("cuda_nvrtc/lib", "libnvrtc.so", "libnvrtc.so.12"))
    for folder, name, version in names:
        link = nvidia / folder / name  # by which Numba looks for it
        if not link.exists():
            link.symlink_to(version)
    return python, variables(nvidia / "cuda_nvrtc" / "lib", CUDA_HOME=str(nvidia / "cuda_nvcc"))


def run(tests: str, part: int, parts: int) -> tuple[list[str], bool]:
    """Run one part of some tests: which failed, and whether they ended by themselves."""
    python, environment = numba_environment()
    command = [python, "-m", "numba.runtests", "-v", "-j", f"{part}:{parts}", tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    name = f"{tests}-{part}"
    (CLIENTS / f"{name}.txt").write_text(done.stdout + done.stderr)
    return FAILED.findall(done.stderr), told(name, done.stderr, done.returncode)


def main() -> int:
    numba_environment()
    parts = len(os.sched_getaffinity(0))
    given = [(tests, part, parts) for tests in sys.argv[1:] or TESTS for part in range(parts)]
    with ThreadPoolExecutor(parts) as pool:
        found = list(pool.map(lambda one: run(*one), given))
    failed = [case for cases, _ in found for case in cases]
    for case in failed:
        print(f"{case}: {EXPECTED.get(case, 'NOT EXPECTED')}")
    return 0 if all(ended for _, ended in found) and set(failed) <= set(EXPECTED) else 1


if __name__ == "__main__":
    sys.exit(main())
