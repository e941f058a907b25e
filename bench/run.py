"""Speed of kernels beside the same ones in C and in OpenCL, and the start-up time of the command line.

    python bench/run.py [--runs N] [--json FILE] [NAME ...]

The sides take turns, so that a busy machine slows all, and each has all CPUs. Every result is checked first. Seconds are
minima: of wall time, and of the CPU time of all threads, which is the fairer figure where others use the machine.

OpenCL takes part where pyopencl is installed, with each platform that has a CPU: PoCL of a Linux distribution, Intel's of
``pip install intel-opencl-rt intel-cmplr-lib-rt``, whose library a file in /etc/OpenCL/vendors names. A platform that computes
something else, or fails, is named below the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean, median

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads of C that wait leave the CPUs to the other side

from cases import CASES, Case, make
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sides import CC, FLAGS, RELAXED, Emulated, Native, Side

import ptxemu

try:
    import opencl
except ImportError:
    opencl = None

START_UP = "start"
WIDTH = 120
"""Columns of a file."""
SAMPLE = 0.01
"""Seconds that a sample lasts at least: short kernels run several times."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one launch."""

    wall: float
    cpu: float


@dataclass(frozen=True)
class Row:
    """One kernel on all sides, and what kept those from it that have no costs."""

    name: str
    costs: dict[str, Cost]
    failures: dict[str, str]

    def ratio(self, side: str, measure: str) -> float | None:
        """To C. None without costs."""
        if side not in self.costs:
            return None
        return float(getattr(self.costs[side], measure) / getattr(self.costs["C"], measure))


def sample(side: Side, launches: int) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(launches):
        side.run()
    return Cost((time.perf_counter() - wall) / launches, (time.process_time() - cpu) / launches)


def measure(sides: Mapping[str, Side], runs: int) -> dict[str, Cost]:
    """The least that each side takes, in ``runs`` rounds of one sample each."""
    launches = {name: max(1, round(SAMPLE / sample(side, 1).wall)) for name, side in sides.items()}
    rounds = [{name: sample(side, launches[name]) for name, side in sides.items()} for _ in range(runs)]
    return {name: Cost(min(found[name].wall for found in rounds), min(found[name].cpu for found in rounds)) for name in sides}


def checked(side: Side, case: Case) -> Side:
    """Raises AssertionError if it computes what it must not."""
    side.run()
    for index in case.expected:
        case.check(index, side.result(index))
    return side


def row_of(name: str, device: ptxemu.Device, folder: Path, runs: int) -> Row:
    """Raises AssertionError if ptxemu or C computes what it must not."""
    case = make(name)
    sides = {"C": checked(Native(name, case, folder), case), "ptxemu": checked(Emulated(name, case, device), case)}
    failures = {}
    for platform, cpu in opencl.platforms().items() if opencl else ():
        try:
            sides[platform] = checked(opencl.OpenCL(name, case, cpu), case)
        except (AssertionError, opencl.cl.Error) as failure:
            failures[platform] = str(failure).strip().partition("\n")[0]
    return Row(name, measure(sides, runs), failures)


def start_up(runs: int) -> dict[str, float]:
    """Medians of whole processes: ``ptxemu run samples/saxpy`` with an empty and with a full cache."""
    command = [sys.executable, "-m", "ptxemu", "run", str(Path(__file__).resolve().parents[1] / "samples" / "saxpy")]

    def process(cache: str) -> float:
        started = time.perf_counter()
        subprocess.run(command, env={**os.environ, "PTXEMU_CACHE": cache}, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(process(cache))
            warm.append(process(cache))
    return {"cold": median(cold), "warm": median(warm)}


def table_of(rows: list[Row]) -> Table:
    """Times of C and ptxemu, and the ratio to C of all that is not C."""
    sides = list(dict.fromkeys(side for row in rows for side in (*row.costs, *row.failures) if side != "C"))
    columns = [(side, measure) for side in sides for measure in ("wall", "cpu")]
    table = Table(box=SIMPLE_HEAD)
    table.add_column("kernel", no_wrap=True)
    for title in ("C, ms", "ptxemu, ms", *(f"{side}, {measure}" for side, measure in columns)):
        table.add_column(title, justify="right")
    for row in rows:
        times = (f"{row.costs[side].wall * 1e3:.2f}" for side in ("C", "ptxemu"))
        table.add_row(row.name, *times, *(shown(row.ratio(*column)) for column in columns))
    if len(rows) > 1:
        known = [[ratio for row in rows if (ratio := row.ratio(*column)) is not None] for column in columns]
        add_means(table, ["", ""], known)
    return table


def add_means(table: Table, between: list[str], columns: list[list[float]]) -> None:
    """A last row with the geometric means of some columns, behind others."""
    table.add_section()
    table.add_row("geometric mean", *between, *(shown(geometric_mean(column) if column else None) for column in columns))


def shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join([*CASES, START_UP])}")
    parser.add_argument("--runs", type=int, default=15, help="rounds of samples (default: 15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, in seconds")
    options = parser.parse_args()
    names = options.names or [*CASES, START_UP]
    if unknown := set(names) - {*CASES, START_UP}:
        parser.error(f"no kernel is called {', '.join(sorted(unknown))}")
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(f"{os.cpu_count()} CPUs; C: {CC} {' '.join(FLAGS + RELAXED)}; minima of {options.runs} rounds", highlight=False)
    device = ptxemu.Device()
    with tempfile.TemporaryDirectory() as folder:
        kernels = [name for name in names if name in CASES]
        rows = [
            row_of(name, device, Path(folder), options.runs)
            for name in track(kernels, "kernels", console=console, transient=True)
        ]
    if rows:
        console.print(table_of(rows))
        for row in rows:
            for side, failure in row.failures.items():
                console.print(f"{row.name} on {side}: {failure}", highlight=False, markup=False)
    started = start_up(max(3, options.runs // 3)) if START_UP in names else {}
    for kind, seconds in started.items():
        console.print(f"run samples/saxpy, {kind}: {seconds:.2f} s", highlight=False)
    if options.json:
        options.json.write_text(json.dumps({"kernels": [asdict(row) for row in rows], START_UP: started}, indent=2) + "\n")


if __name__ == "__main__":
    main()
