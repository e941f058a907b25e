"""The kernels of the bench on one worker instead of all, and in code for AVX2 instead of this processor's.

    python bench/ways.py [--runs N] [--json FILE] [NAME ...]

The ways take turns; results are checked first. Wall time, minima. Code for AVX2 has all workers.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cases import CASES, make
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table
from run import add_means, checked, measure, shown
from sides import Emulated

import ptxemu
from ptxemu.driver import jit

AVX2 = "+avx2,+bmi2,+fma"
USUAL, ALONE, NARROW = "all workers", "one worker", "AVX2"


@contextmanager
def for_avx2() -> Iterator[None]:
    """Code that is compiled meanwhile is for x86-64-v3, and kept nowhere."""
    triple, host, cache = jit.host()[0], jit.host, os.environ.get("PTXEMU_CACHE")
    os.environ["PTXEMU_CACHE"] = "off"
    jit.host = lambda: (triple, "x86-64-v3", AVX2)
    jit._idle_machines.clear()
    yield
    jit.host = host
    jit._idle_machines.clear()
    del os.environ["PTXEMU_CACHE"]
    os.environ.update({} if cache is None else {"PTXEMU_CACHE": cache})


def seconds_of(name: str, runs: int) -> dict[str, float]:
    """Raises AssertionError if a way computes what it must not."""
    case = make(name)
    sides = {
        USUAL: checked(Emulated(name, case, ptxemu.Device()), case),
        ALONE: checked(Emulated(name, case, ptxemu.Device(workers=1)), case),
    }
    if set(AVX2.split(",")) <= set(jit.host()[2].split(",")):
        with for_avx2():
            sides[NARROW] = checked(Emulated(name, case, ptxemu.Device()), case)
    return {way: cost.wall for way, cost in measure(sides, runs).items()}


def table_of(found: dict[str, dict[str, float]]) -> Table:
    """Milliseconds in the usual way, and what the others take as multiples of it."""
    ways = [ALONE, NARROW]
    table = Table(box=SIMPLE_HEAD)
    for title in ("kernel", f"{USUAL}, ms", *ways):
        table.add_column(title, justify="left" if title == "kernel" else "right")
    ratios = {name: [costs[way] / costs[USUAL] if way in costs else None for way in ways] for name, costs in found.items()}
    for name, costs in found.items():
        table.add_row(name, f"{costs[USUAL] * 1e3:.2f}", *map(shown, ratios[name]))
    columns = [[ratio for ratio in column if ratio is not None] for column in zip(*ratios.values(), strict=True)]
    add_means(table, [""], columns)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(CASES)}")
    parser.add_argument("--runs", type=int, default=15, help="rounds of samples (default: 15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, in seconds")
    options = parser.parse_args()
    names = options.names or list(CASES)
    if unknown := set(names) - set(CASES):
        parser.error(f"no kernel is called {', '.join(sorted(unknown))}")
    console = Console()
    found = {name: seconds_of(name, options.runs) for name in track(names, "kernels", console=console, transient=True)}
    console.print(f"{os.cpu_count()} CPUs; minima of {options.runs} rounds", table_of(found), sep="\n", highlight=False)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
