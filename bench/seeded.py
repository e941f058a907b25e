"""Errors that are planted in right programs, and how many of them the checkers find.

    python bench/seeded.py [--json FILE] [NAME ...]

In the kernels of the bench, at small sizes: each barrier, each fence and each store that fills shared memory before the first
barrier is taken out, one at a time, each array is made one byte shorter, and each that is read is left blank. A mutant counts as
found if there is any finding.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, Case, kernel_of, make
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sides import KERNELS, Emulated

import ptxemu
from ptxemu.text.errors import Fault, LaunchTimeout

TAKEN_OUT = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(bar\.sync|barrier\.sync|bar\.warp\.sync|membar|fence|st\.shared)\b[^;\n]*;", re.MULTILINE
)
KINDS = {"bar": "barrier", "barrier": "barrier", "membar": "fence", "fence": "fence", "st": "store to shared memory"}
STORE = "st.shared"
SHORTER, BLANK = "shorter array", "blank array"


def mutants(text: str, case: Case) -> Iterator[tuple[str, str, int]]:
    """What kind of error, the text with it, and the argument that it is in, or -1."""
    barrier = text.find("bar.sync")
    for match in TAKEN_OUT.finditer(text):
        if match[1] == STORE and match.start() > barrier:
            continue
        yield KINDS[match[1].partition(".")[0]], text[: match.start()] + text[match.end() :], -1
    (kernel,) = ptxemu.loads(text).info.kernels.values()
    for index, argument in enumerate(case.arguments):
        if not isinstance(argument, np.ndarray):
            continue
        yield SHORTER, text, index
        if any(use.reads for use in kernel.parameters[index].uses):
            yield BLANK, text, index


def is_found(kernel: str, text: str, case: Case, kind: str, index: int) -> bool:
    with ptxemu.Device(memory="1 GiB", check="all") as device:
        items: list[Any] = [Emulated._item(device, argument) for argument in case.arguments]
        if index >= 0:
            array = case.arguments[index]
            assert isinstance(array, np.ndarray)
            data = array.reshape(-1).view(np.uint8)
            items[index] = device.to_device(data[:-1]) if kind == SHORTER else device.empty(data.size, "u8")
        module = ptxemu.loads(text, device=device)
        try:
            module[kernel][case.grid, case.block](*items, shared=case.shared, timeout=30)
        except (Fault, LaunchTimeout):
            return True
        return device.checks is not None and bool(device.checks.findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    planted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    missed = []
    for name in given.names or CASES:
        case, text = make(name, small=True), (KERNELS / f"{kernel_of(name)}.ptx").read_text()
        for number, (kind, mutant, index) in enumerate(mutants(text, case)):
            planted[kind] += 1
            if is_found(kernel_of(name), mutant, case, kind, index):
                seen[kind] += 1
            else:
                missed.append(f"{name}, number {number}: {kind}")
    table = Table("planted", "mutants", "found", box=SIMPLE_HEAD)
    for kind, count in planted.items():
        table.add_row(kind, str(count), str(seen[kind]))
    Console().print(table)
    for text in missed:
        print(f"missed: {text}")
    if given.json is not None:
        given.json.write_text(json.dumps({kind: [seen[kind], count] for kind, count in planted.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
