"""Errors that are planted in right programs, and how many of them the checkers find.

    python bench/seeded.py [--json FILE] [NAME ...]

In the kernels of the bench, at small sizes, and in those of fences.cu: each barrier, each fence and each store that fills shared
memory before the first barrier is taken out, one at a time; each fence, and each atomic or strong access of global memory, is
made one for the block alone, and each that releases or acquires does not. In those of the bench, each array is made one byte
shorter, and each that is read is left blank. A mutant counts as found if there is any finding. In the kernels as they are there
must be none.
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
CHANGED = {
    "fence for the block alone": (r"\b(?:(membar\.)(?:gl|sys)|(fence\.\w+\.)(?:gpu|sys|cluster))\b", r"\1\2cta"),
    "access that is strong in the block alone": (
        r"^(\s*(?:@!?%\w+\s+)?)(?:((?:atom|red)\.)(?=global)|((?:ld|st|atom|red)\.\w+\.)(?:gpu|sys|cluster)\.)", r"\1\2\3cta."
    ),
    "access that does not release": (r"\b(st|atom|red)\.(?:release|acq_rel)\b", r"\1.relaxed"),
    "access that does not acquire": (r"\bld\.acquire\b", "ld.relaxed"),
}  # fmt: skip
"""What is changed in place, and to what."""
FENCES = Path(__file__).parent / "fences.ptx"


def fenced_cases(random: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Launches of the kernels of fences.cu, of four blocks each."""
    x, words = random.integers(0, 1 << 20, 256, np.uint32), np.zeros(256, np.uint32)
    one = words[:1]
    yield "last_block", Case((4,), (64,), [x, words[:4], one, one], {})
    yield "look_back", Case((4,), (32,), [x[:4], words[:4], words[:4]], {})
    yield "lock", Case((4,), (32,), [one, one], {})
    yield "warps", Case((4,), (64,), [x[:128], words], {})
    yield "cluster", Case((4,), (32,), [x[:2], words[:2], words[:2], words[:4]], {}, cluster=2)
    yield "publish", Case((4,), (32,), [x[:1], one, one, words[:4]], {})


def programs(names: list[str]) -> Iterator[tuple[str, str, Case, bool]]:
    """The kernel, the text and the launch of each case, or of all, and whether its arrays are filled before."""
    header, *entries = re.split(r"^(?=\s*// \.globl)", FENCES.read_text(), flags=re.MULTILINE)
    texts = {name: header + text for text in entries for name in re.findall(r"\.entry (\w+)", text)}
    for name in CASES:
        if not names or name in names:
            yield kernel_of(name), (KERNELS / f"{kernel_of(name)}.ptx").read_text(), make(name, small=True), True
    for name, case in fenced_cases(np.random.default_rng(1)):
        if not names or name in names:
            yield name, texts[name], case, False


def mutants(text: str, case: Case, arrays: bool) -> Iterator[tuple[str, str, int]]:
    """What kind of error, the text with it, and the argument that it is in, or -1."""
    barrier = text.find("bar.sync")
    for match in TAKEN_OUT.finditer(text):
        if match[1] == STORE and match.start() > barrier:
            continue
        yield KINDS[match[1].partition(".")[0]], text[: match.start()] + text[match.end() :], -1
    for kind, (pattern, other) in CHANGED.items():
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield kind, text[: match.start()] + match.expand(other) + text[match.end() :], -1
    (kernel,) = ptxemu.loads(text).info.kernels.values()
    for index, argument in enumerate(case.arguments):
        if not (arrays and isinstance(argument, np.ndarray)):
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
            module[kernel][case.grid, case.block](*items, shared=case.shared, cluster=case.cluster, timeout=30)
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
    for kernel, text, case, arrays in programs(given.names):
        if is_found(kernel, text, case, "", -1):
            raise SystemExit(f"{kernel}: there is a finding in the kernel as it is")
        for number, (kind, mutant, index) in enumerate(mutants(text, case, arrays)):
            planted[kind] += 1
            if is_found(kernel, mutant, case, kind, index):
                seen[kind] += 1
            else:
                missed.append(f"{kernel}, number {number}: {kind}")
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
