"""Programs over the driver API, with results checked: ``python -m tests.clients.run_programs [NAME ...]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.clients.environment import CLIENTS, packages_of, python_of, variables
from tests.clients.numba_suite import numba_environment
from tests.clients.pycuda_suite import pycuda_environment
from tests.support.places import TESTS

PROGRAMS = TESTS / "clients" / "programs"
NUMBA_CUDA = ["numba-cuda[cu13]==0.30.4"]
CUDA_CORE = ["numpy", "cuda-core==1.2.2", "cuda-bindings==13.5.0", "nvidia-cuda-nvrtc"]
CUPY = ["numpy", "cupy-cuda13x==14.2.0", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-cuda-crt"]
TRITON = ["numpy", "setuptools", "triton==3.9.0"]
TORCH = [*TRITON, "torch==2.13.0"]
LIGER = [*TORCH, "packaging", "liger-kernel==0.8.5"]
MODULES = [TESTS / "cuda" / "data" / name for name in ("references.ptx", "kernels.ptx")]
"""Modules for the clients that load PTX: with references to surfaces and textures, and with simple kernels."""
SECONDS = 1200
"""What a program may take."""


def numba_cuda() -> tuple[Path, dict[str, str]]:
    return python_of("numba-cuda", NUMBA_CUDA), variables()


def cuda_core() -> tuple[Path, dict[str, str]]:
    python = python_of("cuda-core", CUDA_CORE)
    return python, variables(*(path.parent for path in (packages_of(python) / "nvidia").rglob("libnvrtc.so.1?")))


def cupy() -> tuple[Path, dict[str, str]]:
    return python_of("cupy", CUPY), variables(PTXEMU_ARCH="120", CUPY_CACHE_DIR=str(CLIENTS / "cupy-cache"))


def triton(name: str, packages: list[str], **options: str) -> tuple[Path, dict[str, str]]:
    return python_of(name, packages), variables(PTXEMU_HOST_MEMORY="1", TRITON_DEFAULT_FP_FUSION="1", **options)


ENVIRONMENTS = {
    "numba": numba_environment,
    "numba_cuda": numba_cuda,
    "pycuda": pycuda_environment,
    "cuda_core": cuda_core,
    "cupy": cupy,
    "triton": partial(triton, "triton", TRITON),
    "triton_torch": partial(triton, "torch", TORCH),
    "triton_hopper": partial(triton, "torch", TORCH, PTXEMU_ARCH="90"),
    "triton_blackwell": partial(triton, "torch", TORCH, PTXEMU_ARCH="100"),
    "triton_scaled": partial(triton, "torch", TORCH, PTXEMU_ARCH="120"),
    "triton_scaled_blackwell": partial(triton, "torch", TORCH, PTXEMU_ARCH="100"),
    "liger": partial(triton, "liger", LIGER, CUDA_LAUNCH_BLOCKING="1"),
    "torch_first": partial(triton, "torch", TORCH),
}
FILES = {"numba_cuda": "numba", "triton_blackwell": "triton_hopper", "triton_scaled_blackwell": "triton_scaled"}
"""What runs the file of another."""


def problem_of(command: Sequence[str | Path], environment: Mapping[str, str]) -> str:
    """The last that a program said that is not right; empty if it is."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not end in {SECONDS} s"
    right = done.returncode == 0 and done.stdout.splitlines()[-1:] == ["right"]
    return "" if right else (done.stderr.strip().splitlines() or ["?"])[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*ENVIRONMENTS, []])
    failed = 0
    for name in parser.parse_args().names or ENVIRONMENTS:
        python, environment = ENVIRONMENTS[name]()
        problem = problem_of([python, PROGRAMS / f"{FILES.get(name, name)}_program.py", *MODULES], environment)
        failed += bool(problem)
        print(f"{name}: {'FAILED: ' + problem if problem else 'passed'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
