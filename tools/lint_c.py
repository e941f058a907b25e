"""Compiles each file of the runtime with warnings as errors, and most with gcc's static analyser: ``python tools/lint_c.py``.

Files that have not changed since they were last found clean are skipped.  Exits with 1 if there are findings.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from native import FLAGS, INCLUDES, MACROS, SOURCES

import cuda

OBJECTS = Path("build/lint")

# The analyser mistakes elements of vectors for uninitialised memory in the first, takes minutes for the second and
# 10 to 30 s for each of the others.
NOT_ANALYSED = {"matrix_mma", "matrix_aligned", "atomic_lanes", "texture_warp"}
# Memory that only thread-local storage points to is a leak to it.
ANALYSIS = ["-fanalyzer", "-Wno-analyzer-malloc-leak"]


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def has_analyser() -> bool:
    """Whether the compiler has gcc's analyser: clang, for one, has not."""
    command = [*compiler(), *ANALYSIS, "-x", "c", "-c", os.devnull, "-o", os.devnull]
    return subprocess.run(command, capture_output=True).returncode == 0


def command(source: Path, made: Path, analyser: bool) -> list[str]:
    macros = [f"-D{name}={value}" for name, value in MACROS]
    includes = [f"-I{folder}" for folder in (*cuda.FOLDERS, *INCLUDES)]
    analysis = ANALYSIS if analyser and source.stem not in NOT_ANALYSED else []
    return [*compiler(), *FLAGS, "-Werror", *analysis, *macros, *includes, "-MMD", "-c", str(source), "-o", str(made)]


def is_clean(made: Path) -> bool:
    """Whether an object is newer than this script and all files that the compiler made it of."""
    try:
        parts = shlex.split(made.with_suffix(".d").read_text().partition(": ")[2].replace("\\\n", " "))
        return made.stat().st_mtime_ns > max(Path(part).stat().st_mtime_ns for part in (*parts, __file__))
    except FileNotFoundError:
        return False


def lint(source: Path, analyser: bool) -> str:
    """What the compiler has to say about a file: nothing if it is clean."""
    made = OBJECTS / "-".join(source.with_suffix(".o").parts)
    if is_clean(made):
        return ""
    done = subprocess.run(command(source, made, analyser), capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main() -> int:
    OBJECTS.mkdir(parents=True, exist_ok=True)
    analyser = has_analyser()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        findings = "".join(pool.map(lambda source: lint(Path(source), analyser), [*SOURCES, *cuda.SOURCES]))
    print(findings, end="", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
