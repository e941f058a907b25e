"""NVIDIA's samples of Compute Sanitizer under the checkers: what its manual says that its tools find must be found, and no more.

``python -m tests.clients.sanitizer_samples DIRECTORY``: a checkout of https://github.com/NVIDIA/compute-sanitizer-samples. nvcc
builds its programs. Each has the checkers that are the tools with which the manual shows it ("Compute Sanitizer Tool Examples").
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptxemu.process.cuda import library_path
from tests.clients.environment import CLIENTS, variables
from tests.clients.nvcc import compiled

SECONDS = 120
NAMES = {"memcheck": "memory,leak", "racecheck": "race", "initcheck": "init", "synccheck": "sync"}


@dataclass(frozen=True)
class Published:
    """A finding: its message, and the lines of the accesses in the program, as patterns; how many threads do it, if that is said.

    Of a race, either access may come second.
    """

    message: str
    lines: frozenset[str] = frozenset()
    count: int | None = None


def at(message: str, *lines: str, count: int | None = None) -> Published:
    return Published(message, frozenset(lines), count)


EXPECTED = {
    "Memcheck/memcheck_demo": ("memcheck", [
        at("4-byte write .* not a multiple of 4", "*(int*) ((char*)&x + 1) = 42;", count=1),
        at("4-byte write at 0x87654320", "*(int*) 0x87654320 = 42;", count=1),
        at("1,024 bytes in 1 allocation"),
    ]),
    "Racecheck/block_error": ("racecheck", [at("shared memory", "*sum_out += smem[i];", "smem[tx] = data_in[tx] + tx;")]),
    "Racecheck/warp_error": ("racecheck", [
        at("shared memory", "smem_second[wx] += smem_first[wx * WarpSize + i];", "smem_first[tx] = data_in[tx] + tx;"),
    ]),
    "Initcheck/memset_error": ("initcheck", [at("4-byte read", "v[tx] += tx;", count=48)]),
    "Suppressions/suppressions_initcheck_demo": ("initcheck", [at("4-byte read", "b[tid] = a[tid] * 2;", count=1)]),
    "Synccheck/divergent_threads": ("synccheck", [at("16 of the 32 threads of warp 1", "__syncthreads();")]),
    "Synccheck/illegal_syncwarp": ("synccheck", [at("membermask", "__syncwarp(mask);", count=1)]),
}  # fmt: skip


def findings(folder: Path, name: str, tool: str) -> list[dict[str, Any]]:
    program = compiled(CLIENTS / "sanitizer_samples" / Path(name).name, [folder / f"{name}.cu"], ["-lineinfo"])
    with tempfile.TemporaryDirectory() as place:
        told = Path(place) / "findings.json"
        given = {"PTXEMU_CHECK": NAMES[tool], "PTXEMU_CHECK_FILE": str(told)}
        subprocess.run([program], env=variables(library_path(), **given), timeout=SECONDS, check=False, capture_output=True)
        found: list[dict[str, Any]] = json.loads(told.read_text())["findings"]
        return found


def lines_of(finding: dict[str, Any]) -> set[str]:
    """Those of the program, of both accesses; not those of functions of CUDA's headers and of callers."""
    both = [finding.get("lines", []), (finding.get("other") or {}).get("lines", [])]
    return {line["text"] for lines in both for line in lines}


def is_told(one: Published, finding: dict[str, Any]) -> bool:
    counted = one.count is None or finding["count"] == one.count
    return counted and re.search(one.message, finding["message"]) is not None and one.lines <= lines_of(finding)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    folder, wrong = parser.parse_args().folder.resolve(), 0
    for name, (tool, published) in EXPECTED.items():
        found = findings(folder, name, tool)
        missed = [one for one in published if not any(is_told(one, finding) for finding in found)]
        more = [finding for finding in found if not any(is_told(one, finding) for one in published)]
        wrong += len(missed) + len(more)
        print(f"{name}, {tool}: {len(published) - len(missed)} of {len(published)} found, {len(more)} others")
        for one in (*missed, *(finding["message"] for finding in more)):
            print(f"  {one}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
