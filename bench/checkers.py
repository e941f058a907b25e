"""What checkers cost: the kernels of the bench beside themselves, unchecked.

    python bench/checkers.py [--runs N] [--check NAMES] [--small] [--json FILE] [NAME ...]

Each checker runs alone, and the last column is all together. Seconds are the least CPU time of all threads.
A finding is an error: these kernels are right.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import geometric_mean

from cases import CASES, make
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from run import checked, measure
from sides import Emulated, Side

import ptxemu
from ptxemu.checkers.kinds import KINDS, parse_checks

PLAIN, ALL = "unchecked", "all"


def ratios_of(name: str, checks: list[str], runs: int, small: bool) -> dict[str, float]:
    """Times of a kernel under checkers, as multiples of its own. Raises AssertionError for a wrong result or a finding."""
    case = make(name, small)
    devices = {check: ptxemu.Device(memory="4 GiB", check="" if check == PLAIN else check) for check in [PLAIN, *checks]}
    sides: dict[str, Side] = {check: checked(Emulated(name, case, device), case) for check, device in devices.items()}
    costs = measure(sides, runs)
    for check, device in devices.items():
        found = device.checks.findings if device.checks is not None else []
        assert not found, f"{name}, {check}: {found[0]}"
    return {check: costs[check].cpu / costs[PLAIN].cpu for check in checks}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--check", default=f"{','.join(KINDS)}")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    checks = list(parse_checks(given.check))
    checks += [ALL] if len(checks) > 1 else []
    table = Table("kernel", *checks, box=SIMPLE_HEAD)
    rows = {}
    for name in given.names or CASES:
        rows[name] = ratios_of(name, checks, given.runs, given.small)
        table.add_row(name, *(f"{rows[name][check]:.2f}" for check in checks))
    table.add_row("geometric mean", *(f"{geometric_mean(row[check] for row in rows.values()):.2f}" for check in checks))
    Console().print(table)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
