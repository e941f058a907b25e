"""tinygrad's own tests of its backends, as its CI runs them on gpuocelot, on libgpuocelot.so.

``python -m tests.clients.tinygrad_suite CHECKOUT [TEST ...]``: a checkout of tinygrad, or a git repository of it, whose HEAD is
taken. The tests are not in its package. They need clang, or what CC names.
Exits with 1 if a test fails that is not in EXPECTED.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS, SECONDS, python_of, variables

PACKAGES = [
    "numpy", "torch==2.13.0", "pytest", "pytest-xdist", "hypothesis>=6.148.9", "z3-solver<4.15.4", "tqdm", "safetensors",
    "tabulate", "openai", "gguf>=0.18", "capstone",
]  # fmt: skip
TESTS = ["test/backend", "--ignore", "test/backend/test_multitensor.py"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)

EXPECTED: dict[str, str] = {}
"""Tests that fail, with the reason."""


def checkout(given: Path) -> Path:
    """The folder with the files; those of a repository without any are written below ``build/clients``."""
    if (given / "tinygrad").is_dir():
        return given
    command = ["git", "-C", given, "rev-parse", "HEAD"]
    place = CLIENTS / f"tinygrad-{subprocess.check_output(command, text=True).strip()[:12]}"
    if not place.exists():
        archive = subprocess.check_output(["git", "-C", given, "archive", "HEAD"])
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(place, filter="data")
    return place


def main() -> int:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    place, tests = checkout(Path(sys.argv[1]).resolve()), sys.argv[2:] or TESTS
    python = python_of("tinygrad", PACKAGES)
    ours = {"DEV": "MOCK+CUDA:PTX", "FORWARD_ONLY": "1", "OCELOT_PATH": str(library_path() / "libgpuocelot.so")}
    environment = variables(**ours, CC=os.environ.get("CC", "clang"))
    command = [python, "-m", "pytest", "-n", "auto", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    (CLIENTS / "tinygrad.txt").write_text(done.stdout + done.stderr)
    failed = FAILED.findall(done.stdout)
    print((done.stdout.strip().splitlines() or [done.stderr])[-1], flush=True)
    for case in failed:
        print(f"  {case}: {EXPECTED.get(case, 'SHOULD PASS')}", flush=True)
    return 0 if done.returncode in (0, 1) and all(case in EXPECTED for case in failed) else 1


if __name__ == "__main__":
    sys.exit(main())
