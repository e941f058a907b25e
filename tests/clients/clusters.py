"""Clusters of cooperative groups, in a program of nvcc's that verifies itself: ``python -m tests.clients.clusters``."""

from __future__ import annotations

import subprocess
import sys

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS, variables
from tests.clients.nvcc import compiled
from tests.support.places import TESTS

SOURCE = TESTS / "clients" / "programs" / "clusters.cu"
FLAGS = ["-std=c++17", "-gencode=arch=compute_90,code=compute_90"]
SECONDS = 60


def main() -> int:
    program = compiled(CLIENTS / "clusters", [SOURCE], FLAGS)
    return subprocess.run([program], env=variables(library_path(), PTXEMU_ARCH="90"), timeout=SECONDS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
