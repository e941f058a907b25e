"""The programs of iGUARD's paper under the checker ``race``: precompiled ones of CUDA 11, with races and without.

``python -m tests.clients.iguard DIRECTORY``: a checkout of https://github.com/csl-iisc/iGUARD-SOSP21, whose Table 4 is meant
("iGUARD: In-GPU Advanced Race Detection", SOSP 2021). They have PTX, and CUDA's runtime linked in: nothing is compiled. Those
that have machine code alone, or whose input is not part of the checkout, are left out.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ptxemu.process.cuda import environment
from tests.clients.indigo import Tally

TABLE = "benchmarks/Table_4/iGUARD"
SECONDS = 600


@dataclass(frozen=True)
class Program:
    """``racy``: the paper finds races in it."""

    suite: str
    command: str
    racy: bool
    given: str = ""  # a file for its standard input

    @property
    def name(self) -> str:
        return f"{self.suite}/{self.command.partition(' ')[0]}"


CUB = (
    *("b_radix_sort", "b_reduce", "b_scan", "d_part_flag", "d_part_if", "d_radix_sort", "d_reduce", "d_scan"),
    *("d_sel_flag", "d_sel_if", "d_sel_unique", "d_sort_find"),
)
FROM_INPUT = ("matrix-mult", "graph-con1", "graph-con2", "graph-con3", "graph-con4", "graph-color1", "reduction", "uts1")
PROGRAMS = [
    *(Program("ScoR", name, True, f"input/{name}") for name in FROM_INPUT),
    Program("CG", "conjugGMB", True),
    Program("CG", "reduceMB", True),
    Program("CG", "warpAA", False),
    Program("NVlib_CG", "grid_sync", True),
    Program("Kilo-TM", "interac", True),
    Program("Kilo-TM", "hashtable -noprompt -numThreads=8 -numBlocks=8 -quiet", True),
    Program("SHoC", "shoc_bfs", True),
    Program("SlabHash", "test_slab_hash", True),
    Program("CUB", "grid_barrier --quiet", True),
    *(Program("CUB", f"{name} --quiet", False) for name in CUB),
    Program("Rodinia", "dwt2d dwt2d -d 192x192 -f -5 -l 3", False),
    Program("Rodinia", "hotspot 512 2 2 data/hotspot1 data/hotspot2 output.out", False),
    Program("Rodinia", "hybridsort r", False),
    Program("Rodinia", "needle 2048 10", False),
    Program("Rodinia", "nn filelist_4 -r 5 -lat 30 -lng 90 -q", False),
    Program("Rodinia", "pathfinder 100000 100 20", False),
    Program("Rodinia", "srad 2048 2048 0 127 0 127 0.5 2", False),
]
STRONG = {"ScoR/reduction", "NVlib_CG/grid_sync"}
"""What races there are of ``volatile`` accesses, which are strong in the memory model of PTX: those are none."""


def run(program: Program, folder: Path) -> str:
    """``found``, ``nothing``, or how it ended."""
    suite = folder / TABLE / program.suite
    name, *arguments = program.command.split()
    given = suite / program.given if program.given else Path(os.devnull)
    variables = environment(os.environ) | {"PTXEMU_CHECK": "race"}
    try:
        with given.open("rb") as stdin:
            command = [suite / "bin" / name, *arguments]
            done = subprocess.run(
                command, cwd=suite, stdin=stdin, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
            )
    except subprocess.TimeoutExpired:
        return f"did not end within {SECONDS} s"
    if re.search(r"^checked race in .*: \d+ finding", done.stderr, re.MULTILINE):  # whatever the program makes of it
        return "found"
    return "nothing" if done.returncode == 0 else f"exit code {done.returncode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    parser.add_argument("names", nargs="*", help="programs, as ScoR/matrix-mult; all without any")
    given = parser.parse_args()
    tally, wrong = Tally(), []
    for program in PROGRAMS:
        if given.names and program.name not in given.names:
            continue
        planted = program.racy and program.name not in STRONG
        outcome = run(program, given.folder.resolve())
        print(f"{program.name}: {outcome}", flush=True)
        if outcome in ("found", "nothing"):
            tally.add(planted, outcome == "found")
        if outcome != ("found" if planted else "nothing"):
            wrong.append(program.name)
    print(f"race: {tally}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
