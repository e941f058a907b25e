"""What it costs a CUDA program to start and to launch on ptxemu's libraries. Needs nvcc.

    python bench/launch.py [--rounds N] [--json FILE]

Starts are processes from start to exit, on the clock and of all CPUs, with what the compile server takes; launches are of an
empty kernel of one block, waited for. Of ``--rounds`` the least counts, as machines do other things, too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ptxemu.process.cuda import environment, library_path

SOURCE = Path(__file__).with_name("launch.cu")
KERNEL = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n"
PR_SET_CHILD_SUBREAPER = 36
SECONDS = 120


def built(folder: Path) -> Path:
    program = folder / "launch"
    flags = ["-O2", "-std=c++17", "-cudart", "shared", "-gencode=arch=compute_80,code=compute_80"]
    libraries = [f"-L{library_path()}", "-l:libcuda.so.1", f"-Xlinker=-rpath-link,{library_path().parents[1]}"]
    subprocess.run(["nvcc", *flags, "-o", program, SOURCE, *libraries], check=True)
    return program


def said(program: Path, variables: dict[str, str], *arguments: str | Path) -> str:
    done = subprocess.run([program, *arguments], env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        sys.exit(f"{program.name} {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def start(program: Path, variables: dict[str, str]) -> tuple[float, float]:
    """Seconds on the clock until the program has ended, and of all CPUs until its compile server has."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if said(program, variables, "add") != "right":
        sys.exit("vectorAdd: wrong")
    seconds = time.perf_counter() - began
    while True:  # a server that has lost its parent is ours
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def starts(program: Path, variables: dict[str, str], rounds: int, cold: bool) -> dict[str, float]:
    """The least of some starts, in milliseconds; each with an empty cache if it is to be cold."""
    costs = []
    for _ in range(rounds):
        if cold:
            shutil.rmtree(variables["PTXEMU_CACHE"], ignore_errors=True)
        costs.append(start(program, variables))
    clock, cpu = zip(*costs, strict=True)
    return {"clock_ms": round(1e3 * min(clock), 1), "cpu_ms": round(1e3 * min(cpu), 1)}


def measured(folder: Path, rounds: int) -> dict[str, object]:
    program, kernel = built(folder), folder / "nothing.ptx"
    kernel.write_text(KERNEL)
    variables = environment(os.environ) | {"PTXEMU_CACHE": str(folder / "cache")}
    alone = variables | {"PATH": "/nowhere", "PTXEMU_PYTHON": "/nowhere/python"}
    launches, loads = said(program, variables, "growth", kernel).split()
    return {
        "cold start": starts(program, variables, rounds, cold=True),
        "warm start": starts(program, variables, 10 * rounds, cold=False),
        "warm start without Python": starts(program, alone, rounds, cold=False),
        "launch, runtime": {"clock_us": min(float(said(program, variables, "runtime")) for _ in range(rounds))},
        "launch, driver": {"clock_us": min(float(said(program, variables, "driver", kernel)) for _ in range(rounds))},
        "growth of 10,000 launches": {"KiB": int(launches)},
        "growth of 1,000 loads": {"KiB": int(loads)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(Path(folder), given.rounds)
    for name, values in figures.items():
        print(f"{name}: {values}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
