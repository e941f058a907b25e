"""HeCBench's programs on ptxemu: builds those that check themselves with nvcc, runs each at a small size, and says how it ended.

``python -m tests.clients.hecbench DIRECTORY [NAME ...]``: a checkout of https://github.com/zjin-lcf/HeCBench. Needs nvcc.
Programs are kept in ``build/clients`` between runs. One passes that says PASS and not FAIL.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.clients.environment import CLIENTS
from tests.clients.nvcc import compiled, report, run

BUILD = CLIENTS / "hecbench"
SECONDS = 60

# name: arguments that make it small enough for a CPU
PROGRAMS: dict[str, list[str]] = {
    "accuracy": ["64", "100", "5", "2"],
    "adam": ["1000", "20", "10"],
    "aidw": ["1", "1", "2"],
    "all-pairs-distance": ["2"],
    "asta": ["-w", "0", "-r", "1"],
    "atomicReduction": ["100000", "2"],
    "bezier-surface": ["-n", "64"],
    "bitonic-sort": ["10", "2"],
    "colorwheel": ["10", "64", "2"],
    "compute-score": ["-p=2"],
    "cross": ["1000", "5"],
    "dct8x8": ["256", "256", "2"],
    "entropy": ["128", "128", "3"],
    "epistasis": ["20", "640", "2"],
    "filter": ["100000", "256", "2"],
    "floydwarshall": ["64", "2", "16"],
    "gaussian": ["-q", "-t", "-s", "64"],
    "haccmk": ["2"],
    "histogram": ["--i=1"],
    "interval": ["0", "2"],
    "is": ["16", "16", "16"],
    "keccaktreehash": [],
    "lif": ["100", "32", "50"],
    "matrix-rotate": ["200", "2"],
    "merge": ["1000", "2"],
}


def outcome(checkout: Path, name: str) -> str:
    folder = checkout / "src" / f"{name}-cuda"
    sources = sorted(path for pattern in ("*.cu", "*.cpp") for path in folder.glob(pattern))
    done = run([compiled(BUILD / name, sources, ["-std=c++17", "-O3", f"-I{folder}"]), *PROGRAMS[name]], folder, SECONDS)
    said = done.output + done.errors
    return done.passed if not done.status and "PASS" in said and "FAIL" not in said else done.failed


def main() -> int:
    return report(__doc__, PROGRAMS, outcome)


if __name__ == "__main__":
    sys.exit(main())
