"""CuPy's own tests: says which fail, and which of these it should not.

``python -m tests.clients.cupy_suite CHECKOUT [TEST ...]``: a checkout of cupy of the installed version; files as paths from its
``tests/cupy_tests``, those of TESTS unless told. NVRTC compiles the kernels, for which it takes a second each. Left out are tests
of several devices, and those that CuPy calls slow, some of which take more memory than most machines have.
Exits with 1 if a test fails that is not in EXPECTED.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.clients.environment import CLIENTS, pytest_of, python_of, variables, verdict
from tests.clients.run_programs import CUPY
from tests.support.places import TESTS as OWN

PACKAGES = [*CUPY, "pytest", "pytest-timeout", "scipy", "nvidia-nvjitlink"]
TESTS = [
    *(f"cuda_tests/test_{name}.py" for name in (
        "stream", "runtime", "memory", "driver", "graph", "texture", "device", "pinned_memory")),
    *(f"core_tests/test_{name}.py" for name in ("core", "scan", "carray", "mdspan", "structured", "gufuncs")),
]  # fmt: skip
SECONDS_OF_A_TEST = 60
SELECTED = ["-m", "not slow"]
HEADLINE = re.compile(r"^_{3,} (\S.*?) _{3,}$", re.MULTILINE)
MISSING = re.compile(r'Failure finding "(lib\w+)')
FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?/(\w+/test_\w+\.py::.*?)(?: - .*)?$", re.MULTILINE)

EXPECTED = {
    r"test_per_device|test_device1|test_ctxGetDevice|TestDeviceSwitch|test_multi_gpu": "needs a second device",
    r"TestDeviceHandles|test_axes_matmul|capture_failure_cu|test_capture_run_on": "needs cuBLAS, cuFFT or another library",
    r"TestIncludesCompileCUDA::test_nvcc": "includes headers of CUB with those of another CUDA toolkit",
    r"TestMemoryAsyncPool::test_(free_bytes2|total_bytes|free_all_blocks_large)": "a pool has reserved what is used, and no more",
}
"""Tests that fail, by patterns of their names, with the reason."""


def lacking(said: str) -> dict[str, str]:
    """Of the tests that could not load a library, as headlines name them: which."""
    _, *parts = HEADLINE.split(said)
    found = ((name, MISSING.search(text)) for name, text in zip(parts[::2], parts[1::2], strict=True))
    return {name: f"needs {match[1]}" for name, match in found if match}


def reason_of(case: str, lacks: Mapping[str, str]) -> str:
    known = next((reason for pattern, reason in EXPECTED.items() if re.search(pattern, case)), "")
    return known or lacks.get(case.partition("::")[2].replace("::", "."), "")


def main() -> int:
    tests = Path(sys.argv[1]).resolve() / "tests"
    python = python_of("cupy-suite", PACKAGES)
    environment = variables(
        PTXEMU_ARCH="120",
        CUPY_CACHE_DIR=str(CLIENTS / "cupy-cache"),
        PYTHONPATH=str(OWN / "clients"),
        NVCC=shutil.which("nvcc") or "nvcc",
        CUPY_TEST_GPU_LIMIT="1",
    )
    failed: list[str] = []
    lacks: dict[str, str] = {}
    ended = True
    for name in sys.argv[2:] or TESTS:
        limits = ["--timeout", str(SECONDS_OF_A_TEST), *SELECTED]
        arguments = ["--rootdir", str(tests), "-p", "cupy_random", *limits, f"cupy_tests/{name}"]
        said, all_run = pytest_of(python, f"cupy-{name}", tests, arguments, environment)
        failed += FAILED.findall(said)
        lacks |= lacking(said)
        ended &= all_run
    return verdict(failed, partial(reason_of, lacks=lacks), ended)


if __name__ == "__main__":
    sys.exit(main())
