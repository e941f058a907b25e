"""PyCUDA's own tests on libcuda.so.1: says which fail, and which of these it should not.

``python -m tests.clients.pycuda_suite [TEST ...]``: names as pytest takes them; ``test_driver.py`` and ``test_gpuarray.py``
unless told. PyCUDA is built from source, for which it takes nvcc, a C++ compiler and some minutes.
Exits with 1 if a test fails that is not in EXPECTED.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS, packages_of, pytest_of, python_of, variables, verdict
from tests.support.places import ROOT

VERSION = "2026.1"
PACKAGES = ["numpy", "pytest", "mako", "platformdirs", "pytools", "siphash24", "nvidia-curand"]
TESTS = ["test_driver.py", "test_gpuarray.py"]
TOOLKIT = os.environ.get("CUDA_HOME", "/usr/local/cuda")
STAND_IN = ROOT / "docs" / "examples" / "pycuda"
LARGE = "big_array or 8gb or 16gb"
"""Tests that are left out: they take from 8 to 18 GB of memory."""
FAILED = re.compile(r"^(?:FAILED|ERROR) \S+::(\S+)", re.MULTILINE)

EXPECTED: dict[str, str] = {}
"""Tests that fail, with the reason."""


def source() -> Path:
    """The unpacked source."""
    folder = CLIENTS / "pycuda-source"
    unpacked = folder / f"pycuda-{VERSION}"
    if not unpacked.exists():
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pycuda"]
        subprocess.run([*download, "--dest", folder, f"pycuda=={VERSION}"], check=True)
        with tarfile.open(folder / f"pycuda-{VERSION}.tar.gz") as packed:
            packed.extractall(folder, filter="data")
    return unpacked


def linked(folder: Path, name: str, library: Path) -> None:
    """A name by which the linker finds a library."""
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / name
    link.unlink(missing_ok=True)
    link.symlink_to(library)


def build(python: Path) -> None:
    nvidia = next((packages_of(python) / "nvidia").glob("*/include/curand.h")).parents[1]
    libraries = CLIENTS / "pycuda-libraries"
    linked(libraries, "libcuda.so", library_path() / "libcuda.so.1")
    linked(libraries, "libcurand.so", next((nvidia / "lib").glob("libcurand.so.*")))
    options = [f"--cuda-root={TOOLKIT}", f"--cudadrv-lib-dir={libraries}", f"--curand-lib-dir={libraries}"]
    subprocess.run([python, "configure.py", *options, f"--cxxflags=-O1,-w,-I{nvidia / 'include'}"], cwd=source(), check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "."], cwd=source(), check=True)


def toolkit() -> Path:
    """A toolkit with the stand-in of nvcc: PyCUDA looks for libraries of kernels beside nvcc."""
    place = CLIENTS / "pycuda-toolkit"
    (place / "bin").mkdir(parents=True, exist_ok=True)
    for name, target in (("bin/nvcc", STAND_IN / "nvcc"), ("lib64", Path(TOOLKIT) / "lib64")):
        (place / name).unlink(missing_ok=True)
        (place / name).symlink_to(target)
    return place


def pycuda_environment() -> tuple[Path, dict[str, str]]:
    """A Python with PyCUDA, and its environment."""
    python = python_of("pycuda", PACKAGES)
    if not (packages_of(python) / "pycuda").exists():
        build(python)
    nvidia = next((packages_of(python) / "nvidia").glob("*/include/curand.h")).parents[1]
    cache = CLIENTS / "pycuda-cache"  # machine code in the user's own would not run
    cache.mkdir(exist_ok=True)
    return python, variables(
        nvidia / "lib",
        PATH=f"{toolkit() / 'bin'}:{os.environ['PATH']}",
        PYCUDA_CACHE_DIR=str(cache),
        PYCUDA_DEFAULT_NVCC_FLAGS=f"-I{nvidia / 'include'}",
    )


def main() -> int:
    python, environment = pycuda_environment()
    failed: list[str] = []
    ended = True
    for tests in sys.argv[1:] or TESTS:
        name = f"pycuda-{tests.partition('::')[0]}"
        said, all_run = pytest_of(python, name, source() / "test", ["-k", f"not ({LARGE})", tests], environment)
        failed += FAILED.findall(said)
        ended &= all_run
    return verdict(failed, lambda case: EXPECTED.get(case.split("::")[-1], ""), ended)


if __name__ == "__main__":
    sys.exit(main())
