"""The Indigo suite under the checkers: which of its planted errors are found, and what is said of kernels that have none.

``python -m tests.clients.indigo DIRECTORY [PATTERN ...]``: a checkout of https://github.com/burtscher/IndigoSuite; only patterns
whose name has one of the words in it. nvcc compiles all kernels of a pattern together. Each is run with several graphs.

The name of a kernel says what is planted: ``atomicBug``, ``guardBug``, ``syncBug`` and ``raceBug`` are races, ``boundsBug`` is an
access out of bounds: of the edges of a vertex that has none, or of a vertex that does not exist.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ptxemu

PLANTED = {"race": ("atomicBug", "guardBug", "syncBug", "raceBug"), "memory": ("boundsBug",)}
BLOCKS, THREADS = 48, 64
TIMEOUT = 60.0
UNIT = 'namespace {name} {{\n#define test_kernel {name}\n#include "{path}"\n#undef test_kernel\n}}\n'
HEADER = "#include <cstdio>\n"
Graph = tuple[NDArray[np.int32], NDArray[np.int32]]


def graphs(vertices: int = 40) -> Iterator[Graph]:
    """Undirected ones, of many shapes, as rows of an adjacency matrix; they have fewer vertices than there are blocks."""
    random = np.random.default_rng(1)
    i, j = np.indices((vertices, vertices))
    yield rows((i == 0) ^ (j == 0))  # a star
    yield rows(abs(i - j) == 1)  # a path
    yield rows(i != j)  # all edges there are
    for share in (0.05, 0.3):
        some = np.triu(random.random(i.shape) < share, 1)
        yield rows(some | some.T)
    inner = (i > 0) & (i < vertices - 1)
    yield rows((abs(i - j) == 1) & inner & inner.T)  # the first and the last vertex have no edges


def rows(edges: NDArray[np.bool_]) -> Graph:
    first = np.concatenate([[0], edges.sum(axis=1).cumsum()])
    return first.astype(np.int32), np.nonzero(edges)[1].astype(np.int32)


def generated(folder: Path, pattern: Path, target: Path) -> list[Path]:
    """The kernels of a pattern, as the suite's own script makes them."""
    script = [sys.executable, "generate_CUDA_codes.py", pattern, folder / "copyright.txt", target]
    subprocess.run(script, cwd=folder / "Generators", check=True, capture_output=True)
    return sorted((target / pattern.stem).glob("*.cu"))


def compiled(kernels: list[Path], target: Path) -> str:
    """Their PTX. The suite's header has a host program, which is not needed."""
    (target / "indigo_cuda.h").write_text("")
    unit = target / "all.cu"
    unit.write_text(HEADER + "".join(UNIT.format(name=path.stem, path=path) for path in kernels))
    command = ["nvcc", "-ptx", "-lineinfo", "-O3", "-arch=sm_80", f"-I{target}", "-o", unit.with_suffix(".ptx"), unit]
    subprocess.run(command, check=True, capture_output=True)
    return unit.with_suffix(".ptx").read_text()


@dataclass
class Tally:
    """How many kernels have a planted error of a kind or not, and were told to have one or not."""

    counts: Counter[tuple[bool, bool]] = field(default_factory=Counter)

    def add(self, planted: bool, found: bool) -> None:
        self.counts[planted, found] += 1

    def __str__(self) -> str:
        found, missed = self.counts[True, True], self.counts[True, False]
        alarms, silent = self.counts[False, True], self.counts[False, False]
        return f"{found} of {found + missed} planted errors found; {alarms} false alarms in {alarms + silent} kernels without"


def findings(module: ptxemu.Module, device: ptxemu.Device, name: str) -> list[str]:
    """What the device's checkers say of a kernel."""
    assert device.checks is not None
    device.checks.clear()
    for first, neighbours in graphs():
        vertices, random = len(first) - 1, np.random.default_rng(2)
        size = max(vertices, len(neighbours))
        data = [np.concatenate([[0], random.integers(0, most, size - 1)]).astype(np.int32) for most in (vertices, size)]
        given = [device.to_device(array) for array in (first, neighbours, *data)]
        with suppress(ptxemu.Fault):  # which an access far beyond the arrays is without the checker `memory`
            module[f"{name}::{name}"][BLOCKS, THREADS](*given, vertices, timeout=TIMEOUT)
    return [str(finding) for finding in device.checks.findings]


def judge(folder: Path, pattern: Path, tallies: dict[str, Tally], wordy: bool) -> None:
    """All kernels of a pattern under each checker; those are named that are not judged as they should be."""
    with tempfile.TemporaryDirectory() as made:
        kernels = generated(folder, pattern, Path(made))
        text = compiled(kernels, Path(made))
        for checker, errors in PLANTED.items():
            with ptxemu.Device(check=checker, memory="1 GiB") as device:
                module = ptxemu.loads(text, device=device)
                for kernel in kernels:
                    planted, found = any(error in kernel.stem for error in errors), findings(module, device, kernel.stem)
                    tallies[checker].add(planted, bool(found))
                    if planted != bool(found):
                        print(f"{checker}: {kernel.stem}: {'missed' if planted else 'false alarm'}", flush=True)
                        if wordy:
                            print(*found, sep="\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--findings", action="store_true", help="what is said where nothing is planted")
    given = parser.parse_intermixed_args()
    tallies = {checker: Tally() for checker in PLANTED}
    for pattern in sorted((given.folder / "Generators/CUDA_sources").glob("*.idg")):
        if not given.patterns or any(part in pattern.stem for part in given.patterns):
            judge(given.folder.resolve(), pattern.resolve(), tallies, given.findings)
            print(f"{pattern.stem}: done", flush=True)
    for checker, tally in tallies.items():
        print(f"{checker}: {tally}")
    return int(any(planted != found for tally in tallies.values() for planted, found in tally.counts))


if __name__ == "__main__":
    sys.exit(main())
