"""CuPy's own tests: says which fail, and which of these it should not.

``python -m tests.clients.cupy_suite CHECKOUT [TEST ...]``: a checkout of cupy of the installed version; files as paths from its
``tests/cupy_tests``, those of TESTS unless told. NVRTC compiles the kernels, for which it takes a second each.
Exits with 1 if a test fails that is not in EXPECTED.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.clients.environment import CLIENTS, python_of, told, variables
from tests.clients.run_programs import CUPY
from tests.support.places import TESTS as OWN

PACKAGES = [*CUPY, "pytest", "pytest-timeout", "scipy", "nvidia-nvjitlink"]
TESTS = [
    *(f"cuda_tests/test_{name}.py" for name in (
        "stream", "runtime", "memory", "driver", "graph", "texture", "device", "pinned_memory")),
    *(f"core_tests/test_{name}.py" for name in ("core", "scan", "carray", "mdspan", "structured", "gufuncs")),
]  # fmt: skip
SECONDS, SECONDS_OF_A_TEST = 5400, 60
FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?/(\w+/test_\w+\.py::.*?)(?: - .*)?$", re.MULTILINE)

EXPECTED = {
    r"test_per_device|test_device1|test_ctxGetDevice|TestDeviceSwitch|test_multi_gpu": "needs a second device",
    r"TestDeviceHandles|test_axes_matmul|capture_failure_cu|test_capture_run_on": "needs cuBLAS, cuFFT or another library",
    r"TestMemoryAsyncPool::test_(free_bytes2|total_bytes|free_all_blocks_large)": "a pool has reserved what is used, and no more",
    r"test_debug_dot_str": "graphs are not drawn",
}
"""Tests that fail, by patterns of their names, with the reason."""


def reason_of(case: str) -> str:
    return next((reason for pattern, reason in EXPECTED.items() if re.search(pattern, case)), "")


def main() -> int:
    tests = Path(sys.argv[1]).resolve() / "tests"
    python = python_of("cupy-suite", PACKAGES)
    environment = variables(
        PTXEMU_ARCH="120",
        CUPY_CACHE_DIR=str(CLIENTS / "cupy-cache"),
        PYTHONPATH=str(OWN / "clients"),
        NVCC=shutil.which("nvcc") or "nvcc",
    )
    failed: list[str] = []
    ended = True
    for name in sys.argv[2:] or TESTS:
        alone = ["-c", os.devnull, "--rootdir", str(tests), "-p", "no:cacheprovider", "-p", "cupy_random"]
        limits = ["-W", "ignore", "--timeout", str(SECONDS_OF_A_TEST)]
        command = [python, "-m", "pytest", "-q", *alone, *limits, f"cupy_tests/{name}"]
        done = subprocess.run(command, cwd=tests, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
        (CLIENTS / f"cupy-{name.replace('/', '-')}.txt").write_text(done.stdout + done.stderr)
        failed += FAILED.findall(done.stdout)
        ended &= told(name, done.stdout, done.returncode)
    for case in failed:
        print(f"FAILED: {case}" + (f" (expected: {reason_of(case)})" if reason_of(case) else ""))
    return 0 if ended and all(map(reason_of, failed)) else 1


if __name__ == "__main__":
    sys.exit(main())
