"""Kernels of CUB, cooperative groups and libcu++ under all checkers, which must find nothing.

``python -m tests.clients.cub_checked``, with nvcc.

CUB's BlockMergeSort reads the key behind the last one of its shared memory, which nobody has written, and does not use it.
"""

from __future__ import annotations

import subprocess
import sys

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS, variables
from tests.clients.nvcc import compiled
from tests.support.places import TESTS

SOURCE = TESTS / "clients" / "programs" / "cub_and_groups.cu"
FLAGS = ["-std=c++17", "--extended-lambda", "-lineinfo", "-diag-suppress", "20054", "-Wno-deprecated-declarations"]
KNOWN = "init:file=*block_merge_sort.cuh"
SECONDS = 600


def main() -> int:
    program = compiled(CLIENTS / "cub_and_groups", [SOURCE], FLAGS)
    environment = variables(library_path(), PTXEMU_CHECK="all", PTXEMU_SUPPRESS=KNOWN)
    return subprocess.run([program], env=environment, timeout=SECONDS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
