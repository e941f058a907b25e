"""Rodinia's CUDA programs on ptxemu beside its OpenMP versions on one thread: CPU time of kernels and of parallel regions.

    python -m bench.rodinia CHECKOUT [NAME ...] [--rounds N] [--flags FLAGS] [--parts] [--json FILE]

CHECKOUT is one of https://github.com/yuhc/gpu-rodinia. Needs nvcc and gcc. A program has one CPU, so that ptxemu has one worker.
The versions take turns, and of the rounds the least counts for each kernel and each region (`regions.c`). Results are checked
first, as `tests/clients/rodinia.py` does. Times of ptxemu are those of launches that are waited for, with what a launch costs and
the faults of pages that a kernel is the first to touch. Code is the best from the start. What has no counterpart on the other
side is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import geometric_mean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ptxemu.process.cuda import library_path
from tests.clients import rodinia, rodinia_data
from tests.clients.environment import variables
from tests.clients.nvcc import Run, compiled
from tests.clients.rodinia import DATA, Version, Wrong

FOLDER = rodinia.BUILD / "bench"
NATIVE = "-O3 -march=native"
SECONDS = 300
GRID = 256
STEPS = 40

Times = dict[str, float]
"""Seconds of CPU in each kernel or region, by its name."""


@dataclass(frozen=True)
class Pair:
    """A program's arguments on both sides, and kernels and regions that are not compared.

    ``openmp`` is for programs whose results the client test does not compare with those of their OpenMP version; ``lines`` are
    those with results, at this size.
    """

    cuda: str
    cpu: str
    without: tuple[str, ...] = ()
    openmp: Version | None = None
    check: Callable[[str], None] | None = None
    lines: str = ""


SQUARE = f"{{}} {DATA}/temperatures.txt {DATA}/powers.txt /dev/stdout"
CUBE = f"{GRID} 8 50 {DATA}/powers.txt {DATA}/temperatures.txt out.txt"
TREE = f"file {DATA}/tree.txt command {DATA}/tree.commands"
PARTICLES = "-x 128 -y 128 -z 10 -np 5000"
CLUSTERS = "10 20 64 8192 8192 500 none output.txt 1"
PAIRS = {
    "b+tree": Pair(TREE, f"core 1 {TREE}"),
    "bfs": Pair(f"{DATA}/graph.txt", f"1 {DATA}/graph.txt"),
    "cfd": Pair(f"{DATA}/mesh.txt", f"{DATA}/mesh.txt"),
    "hotspot": Pair(
        SQUARE.format(f"{2 * GRID} 2 {STEPS}"),
        SQUARE.format(f"{2 * GRID} {2 * GRID} {STEPS} 1"),
        openmp=Version("hotspot/hotspot_openmp.cpp", ""),
        check=partial(rodinia.cooled, data=FOLDER / "data", cells=2 * GRID, steps=STEPS),
    ),
    "hotspot3D": Pair(CUBE, CUBE),
    "lavaMD": Pair("-boxes1d 5", "-cores 1 -boxes1d 5"),
    "lud": Pair(
        "-s 1024 -v",
        "-n 1 -s 1024 -v",
        openmp=Version("lud/omp/lud.c lud/omp/lud_omp.c lud/common/common.c", "", ("-I{cuda}/lud/common",)),
    ),
    "nw": Pair("2048 10", "2048 10 1"),
    "particlefilter_float": Pair(PARTICLES, PARTICLES, without=("1", "2", "8")),
    "particlefilter_naive": Pair(PARTICLES, PARTICLES, without=("1", "2", "3", "4", "5", "6", "7", "8", "9")),
    "pathfinder": Pair("100000 100 20", "100000 100", lines=r"(?:\d+ ){100000}"),
    "srad_v1": Pair(  # its sums are right where the pixels fill blocks of blocks of 512
        "20 0.5 512 512", "20 0.5 512 512 1", without=("extract", "prepare", "reduce", "compress")
    ),
    "srad_v2": Pair("1024 1024 0 127 0 127 0.5 10", "1024 1024 0 127 0 127 1 0.5 10", lines=r"(?:\d+\.\d+ ){1024}"),
    "streamcluster": Pair(CLUSTERS, CLUSTERS, without=("2",)),
}


def write_data() -> None:
    """Larger input than that of the client test, from the same generators."""
    data = FOLDER / "data"
    (data / "srad").mkdir(parents=True, exist_ok=True)
    rodinia_data.graph(data / "graph.txt", nodes=1 << 18, degree=6)
    rodinia_data.column(data / "temperatures.txt", 320, 340, 8 * GRID**2)
    rodinia_data.column(data / "powers.txt", 0, 0.01, 8 * GRID**2)
    rodinia_data.mesh(data / "mesh.txt", 64, 48)
    rodinia_data.image(data / "srad" / "image.pgm")
    rodinia_data.tree(data / "tree.txt", 1 << 18, "j 6000 3000\nk 10000\n")


def plain(name: str) -> str:
    """A kernel's name without what C++ puts around it."""
    mangled = re.match(r"_Z(\d+)", name)
    return name[mangled.end() :][: int(mangled[1])] if mangled else name


def ran(program: Path, arguments: str, timer: Path) -> tuple[Run, Path, Times]:
    """What a program did on one CPU, the folder with its files, and how long its kernels or regions took."""
    folder = FOLDER / "runs" / program.name / "files"
    folder.mkdir(parents=True, exist_ok=True)
    said = folder / "regions"
    said.unlink(missing_ok=True)
    environment = variables(library_path(), REGIONS=str(said), OMP_NUM_THREADS="1", PTXEMU_TIER="best")
    environment["LD_PRELOAD"] = f"{timer} {environment.get('LD_PRELOAD', '')}"
    one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    done = subprocess.run(
        [*one, program, *arguments.split()], cwd=folder, env=environment, capture_output=True, timeout=SECONDS, check=False
    )
    if not said.exists():
        raise Wrong(f"{program.name} has ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    times = {plain(name): int(nanoseconds) * 1e-9 for name, _, nanoseconds in map(str.split, said.read_text().splitlines())}
    return Run(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), 0, 0), folder, times


def verify(checkout: Path, name: str, timer: Path, cuda: Path) -> None:
    """Raises Wrong if results are not what they should be: those of the OpenMP version as the client test builds it."""
    pair, program = PAIRS[name], rodinia.PROGRAMS[name]
    done, folder, _ = ran(cuda, pair.cuda, timer)
    if check := pair.check or program.check:
        check(done.output)
    if program.cpu:
        program = replace(program, lines=pair.lines or program.lines)
        other = rodinia.built(checkout, f"{name}-checked", "openmp", program.cpu)
        wanted = rodinia.numbers(program, *ran(other, pair.cpu, timer)[:2])
        rodinia.compare(rodinia.numbers(program, done, folder), wanted, program.tolerance)


def measured(checkout: Path, name: str, flags: list[str], rounds: int, timer: Path) -> tuple[Times, Times]:
    """The least of some rounds on both sides, of what is compared."""
    pair, program = PAIRS[name], rodinia.PROGRAMS[name]
    openmp = pair.openmp or program.cpu
    assert openmp
    own = tuple(flag for flag in openmp.flags if flag != "-Dfloat=double")
    cuda = rodinia.built(checkout, f"{name}-bench", "cuda", program.cuda)
    cpu = rodinia.built(checkout, f"{name}-bench", "openmp", replace(openmp, flags=(*own, *flags)))
    verify(checkout, name, timer, cuda)
    found = [(ran(cuda, pair.cuda, timer)[2], ran(cpu, pair.cpu, timer)[2]) for _ in range(rounds)]
    least = [{part: min(times[side][part] for times in found) for part in found[0][side]} for side in (0, 1)]
    kernels, regions = ({part: time for part, time in times.items() if part not in pair.without} for times in least)
    return kernels, regions


def table_of(figures: dict[str, tuple[Times, Times]], parts: bool) -> Table:
    table = Table("program", box=SIMPLE_HEAD)
    for title in ("ptxemu, ms", "OpenMP, ms", "ratio"):
        table.add_column(title, justify="right")
    ratios = []
    for name, (kernels, regions) in figures.items():
        ours, theirs = sum(kernels.values()), sum(regions.values())
        ratios.append(ours / theirs)
        table.add_row(name, f"{ours * 1e3:.1f}", f"{theirs * 1e3:.1f}", f"{ratios[-1]:.2f}")
        for part, time in kernels.items() if parts else ():
            table.add_row(f"  {part}", f"{time * 1e3:.2f}")
        for part, time in regions.items() if parts else ():
            table.add_row(f"  region {part}", "", f"{time * 1e3:.2f}")
    if ratios:
        table.add_section()
        table.add_row("geometric mean", "", "", f"{geometric_mean(ratios):.2f}")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(PAIRS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flags", default=NATIVE, help=f"what gcc optimizes the OpenMP versions with (default: {NATIVE})")
    parser.add_argument("--parts", action="store_true", help="show each kernel and each region, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, in seconds")
    given = parser.parse_intermixed_args()
    if unknown := set(given.names) - set(PAIRS):
        parser.error(f"no program is called {', '.join(sorted(unknown))}")
    rodinia.write_headers()
    write_data()
    timer = compiled(FOLDER / "regions.so", [Path(__file__).with_name("regions.c")], ["-O2", "-shared", "-fPIC"], "gcc")
    figures, wrong = {}, 0
    for name in given.names or PAIRS:
        try:
            figures[name] = measured(given.checkout.resolve(), name, given.flags.split(), given.rounds, timer)
        except Wrong as problem:
            print(f"{name}: {problem}", file=sys.stderr)
            wrong += 1
    Console().print(table_of(figures, given.parts))
    if given.json:
        named = {name: {"ptxemu": kernels, "OpenMP": regions} for name, (kernels, regions) in figures.items()}
        given.json.write_text(json.dumps(named, indent=2) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
