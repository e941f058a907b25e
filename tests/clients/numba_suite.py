"""Numba's own tests of its CUDA target, run on libcuda.so.1: says which fail, and which of these it should not.

``python -m tests.clients.numba_suite [TEST ...]``: names of modules, classes or tests; all of them take half an hour on two CPUs.
Exits with 1 if a test fails that is not in EXPECTED.
"""

from __future__ import annotations

import re
import subprocess
import sys
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


def main() -> int:
    python, environment = numba_environment()
    failed: list[str] = []
    ended = True
    for tests in sys.argv[1:] or TESTS:
        command = [python, "-m", "numba.runtests", "-v", tests]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        (CLIENTS / f"{tests}.txt").write_text(done.stdout + done.stderr)
        failed += FAILED.findall(done.stderr)
        ended &= told(tests, done.stderr, done.returncode)
    for case in failed:
        print(f"{case}: {EXPECTED.get(case, 'NOT EXPECTED')}")
    return 0 if ended and set(failed) <= set(EXPECTED) else 1


if __name__ == "__main__":
    sys.exit(main())
