"""LLVM's tests of its PTX: what ptxas takes of it is taken and compiled, and functions of numbers compute what LLVM says.

``python -m tests.clients.llvm_tests DIRECTORY [NAME ...]``: ``llvm/test/CodeGen/NVPTX`` of a checkout of llvm-project; only files
whose name has one of the names in it. LLVM's programs are those of the PATH, with ``--suffix -22`` llc-22 and so on. Each file is
compiled as its RUN lines say; options for architectures that ptxas no longer knows are those of sm_75.

Functions of integers and floats without memory, target and calls are compiled for this machine, too, and called with random
arguments. Where results differ, or the machine's code ends in a fault, both are compiled once more from IR without what LLVM
leaves open (``tests/clients/llvm/defined.py``), and called without NaNs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.clients.llvm.accept import verdict
from tests.clients.llvm.compare import compared
from tests.clients.llvm.tools import Tools, configurations, parts

SHOWN = ("FAIL", "unsupported")


def taken(tools: Tools, source: str, folder: Path) -> Iterator[str]:
    """A class of results for each function, as each RUN line has it; the same PTX is looked at once."""
    seen: set[str] = set()
    for options in configurations(source):
        ptx = tools.run("llc", *options, text=source)
        if ptx is None:
            yield "llc refuses the file"
            continue
        whole = ptx not in seen and tools.accepts(ptx, folder) and verdict(ptx) == "ok"
        seen.add(ptx)
        for part in parts(ptx):
            if part in seen:
                continue
            seen.add(part)
            if whole:
                yield "ok"
            else:
                yield verdict(part) if tools.accepts(part, folder) else "ptxas refuses the function"


def judged(tools: Tools, file: Path) -> tuple[str, list[str]]:
    """A file's name, and what comes of its functions."""
    source = file.read_text()
    with TemporaryDirectory() as folder:
        found = list(taken(tools, source, Path(folder)))
        found += [f"computes: {said}" for said in compared(tools, source, Path(folder))]
    return file.name, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--suffix", default="", help="of the names of LLVM's programs")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_intermixed_args()
    chosen = [
        file for file in sorted(given.folder.glob("*.ll")) if not given.names or any(name in file.name for name in given.names)
    ]
    counted: Counter[str] = Counter()
    with ProcessPoolExecutor(given.workers) as pool:
        for name, found in pool.map(partial(judged, Tools(given.suffix)), chosen):
            for said, count in Counter(found).items():
                if any(word in said for word in SHOWN):
                    print(f"{name}: {said}" + (f" ({count} times)" if count > 1 else ""), flush=True)
            counted.update(said.replace("computes: ", "computes ").partition(":")[0] for said in found)
    for what, count in counted.most_common():
        print(f"{count:6} {what}")
    return 1 if any("FAIL" in what for what in counted) else 0


if __name__ == "__main__":
    sys.exit(main())
