"""What it costs until a kernel can be launched for the first time, how that grows with the kernel, and what ptxas -O3 takes.

    python bench/compile.py [--only NAME]... [--quick] [--best] [--rounds N] [--limit SECONDS] [--json FILE]

Each module is compiled in processes of their own: CPU seconds from its text to linked code, and peak memory. Of ``--rounds``
the least seconds count, as on a machine that does other things, too, all others are too many. ``--best`` also measures the
code that takes the place of the first one where that was made fast; ``--quick`` leaves out all but the two smallest sizes.
``growth`` is the exponent of the power of the size that the seconds follow, without the smallest size.
Python's bytecode is kept, as it is where a package is installed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from cliffs import CLIFFS, TARGET
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

BLOCK = (32, 1, 1)
MEMORY = 6 << 30
"""Bytes of address space that a process may take."""
BYTECODE_KEPT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True)
class Cost:
    """``seconds`` of CPU (user and system) and peak memory of one process; ``failure``: why there are none.

    ``start``: seconds for Python and its modules, which are not in ``seconds``. ``final``: there is no better code.
    """

    seconds: float | None = None
    mebibytes: int | None = None
    start: float = 0.0
    final: bool = True
    failure: str | None = None


@dataclass(frozen=True)
class Row:
    """One module: costs of ptxemu's first code, of its best code, and of ptxas; None where they were not asked for."""

    name: str
    size: int
    characters: int
    first: Cost
    best: Cost | None
    ptxas: Cost | None

    @property
    def ratio(self) -> float | None:
        if self.ptxas is None or not self.ptxas.seconds or self.first.seconds is None:
            return None
        return self.first.seconds / self.ptxas.seconds


def compile_here(path: str, tier: str) -> None:
    """Compile and link the kernel of a file, then print the cost. All is imported before."""
    import ptxemu.syntax.parser  # noqa: F401  # which the first parse imports
    from ptxemu.device.linked_code import LinkedCode
    from ptxemu.driver import compile

    text = Path(path).read_text(encoding="utf-8")
    start = time.process_time()
    made = compile.kernel(compile.front(text), "k", compile.Options(tier=tier), BLOCK)
    LinkedCode(made.object, made.symbol)
    print(json.dumps({"seconds": time.process_time() - start, "start": start, "final": made.final}))


def least(command: Sequence[str], limit: int, rounds: int) -> Cost:
    """The cost of a compiler in the best of several rounds."""
    costs = [cost_of(command, limit) for _ in range(rounds)]
    return min(costs, key=lambda cost: math.inf if cost.seconds is None else cost.seconds)


def cost_of(command: Sequence[str], limit: int) -> Cost:
    """Run a compiler within limits; it may print a part of its cost, as JSON."""

    def restrict() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, preexec_fn=restrict, env=BYTECODE_KEPT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0), errors.seek(0)
        printed, complaint = output.read(), errors.read().strip()
    seconds = used.ru_utime + used.ru_stime
    if process.returncode == 0:
        measured = {"seconds": seconds, "mebibytes": used.ru_maxrss >> 10}
        return Cost(**measured | (json.loads(printed) if printed.startswith("{") else {}))
    if process.returncode == -signal.SIGXCPU:
        return Cost(failure=f"more than {limit} s of CPU")
    lines = complaint.splitlines() or [f"exit status {process.returncode}"]
    return Cost(failure=lines[-1])


def measure(name: str, size: int, best: bool, limit: int, rounds: int) -> Row:
    text = CLIFFS[name][0](size)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.ptx"
        path.write_text(text, encoding="utf-8")
        ours = [sys.executable, __file__, "--compile", str(path)]
        first = least([*ours, "--tier", "fast"], limit, rounds)
        better = least([*ours, "--tier", "best"], limit, rounds) if best and not first.final else None
        theirs = ["ptxas", "-O3", f"-arch={TARGET}", "-o", os.devnull, str(path)]
        return Row(name, size, len(text), first, better, least(theirs, limit, rounds) if shutil.which("ptxas") else None)


def growth(rows: Sequence[Row]) -> float | None:
    """The slope of log time over log size by least squares, where the constant part of the time is small."""
    points = [(math.log(row.size), math.log(row.first.seconds)) for row in rows if row.first.seconds]
    points = points[1:] if len(points) > 2 else points
    if len(points) < 2:
        return None
    x, y = (sum(column) / len(points) for column in zip(*points))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def groups(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of one generator each."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row)
    return list(found.values())


def report(rows: Sequence[Row]) -> Table:
    starts = [row.first.start for row in rows if row.first.failure is None]
    caption = f"Start of ptxemu, not included: {median(starts):.2f} s" if starts else None
    title = "CPU seconds from PTX to the code of the first launch"
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, collapse_padding=True)
    for head in ("kernel", "size", "kB", "first", "MiB", "best", "ptxas", "ratio", "growth"):
        table.add_column(head, justify="left" if head == "kernel" else "right", no_wrap=True)
    for group in groups(rows):
        exponent = growth(group)
        for row in group:
            last = row is group[-1]
            table.add_row(row.name if row is group[0] else "", *cells(row), number(exponent) if last else "", end_section=last)
    return table


def cells(row: Row) -> list[str]:
    memory = "-" if row.first.mebibytes is None else str(row.first.mebibytes)
    best = row.first if row.first.final and not row.first.failure else row.best
    return [str(row.size), f"{row.characters / 1000:.0f}", seconds(row.first), memory, seconds(best), seconds(row.ptxas),
            number(row.ratio, 1)]  # fmt: skip


def seconds(cost: Cost | None) -> str:
    return "-" if cost is None else "failed" if cost.failure else number(cost.seconds)


def failures(row: Row) -> list[str]:
    """Lines that say which compilers failed, and why."""
    costs = {"first": row.first, "best": row.best, "ptxas": row.ptxas}
    return [f"{row.name} {row.size}, {which}: {cost.failure}" for which, cost in costs.items() if cost and cost.failure]


def number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=CLIFFS, metavar="NAME", help=f"one of: {', '.join(CLIFFS)}")
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes alone")
    parser.add_argument("--best", action="store_true", help="the best code too")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="take the least of N (default 1)")
    parser.add_argument("--limit", type=int, default=60, metavar="SECONDS", help="CPU time of each process (default 60)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--compile", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--tier", choices=("fast", "best"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compile:
        return compile_here(options.compile, options.tier)
    names = options.only or CLIFFS
    cases = [(name, size) for name in names for size in CLIFFS[name][1][: 2 if options.quick else None]]
    terminal = Console(stderr=True)
    shown = track(cases, "compiling", console=terminal, transient=True, disable=not terminal.is_terminal)
    rows = [measure(name, size, options.best, options.limit, options.rounds) for name, size in shown]
    console = Console()
    console.print(report(rows))
    for failure in (failure for row in rows for failure in failures(row)):
        console.print(failure, markup=False, highlight=False)
    if options.json:
        found = [{**asdict(row), "ratio": row.ratio} for row in rows]
        exponents = {group[0].name: growth(group) for group in groups(rows)}
        options.json.write_text(json.dumps({"rows": found, "growth": exponents}, indent=1) + "\n")


if __name__ == "__main__":
    main()
