"""Speed of the front end: the syntax stage and the checker on large modules, next to ptxas where it is installed.

    python bench/front.py [--runs N] [--size BYTES] [FILE ...]

Without files, a module of about 1.3 MB is made from kernels of bench/*.ptx, renamed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ptxemu.check import check
from ptxemu.errors import Diagnostics
from ptxemu.source import SourceFile
from ptxemu.syntax import parse

HERE = Path(__file__).resolve().parent
KERNEL = re.compile(r"\.visible \.entry (\w+)\(.*?^}$", re.S | re.M)
LABEL = re.compile(r"\$L__BB\w+")


def large_module(size: int) -> str:
    """The kernels of bench/*.ptx over and over, each time under another name."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.ptx"))]
    kernels = [match for text in texts for match in KERNEL.finditer(text)]
    parts = [texts[0][: texts[0].index(".visible")]]
    length = index = 0
    while length < size:
        match = kernels[index % len(kernels)]
        text = re.sub(rf"\b{match.group(1)}(?=\W|_param)", f"{match.group(1)}_{index}", match.group(0))
        parts.append(text)
        length += len(text)
        index += 1
    return "\n\n".join(parts) + "\n"


def seconds(action: Callable[[], object], runs: int) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure(name: str, text: str, runs: int) -> None:
    source = SourceFile(name, text)
    size = len(text.encode()) / 1e6

    def syntax() -> None:
        parse(source, Diagnostics(source))

    def both() -> None:
        diagnostics = Diagnostics(source)
        check(parse(source, diagnostics), source, diagnostics)

    syntax()
    rows = [("syntax", seconds(syntax, runs)), ("syntax and check", seconds(both, runs))]
    if shutil.which("ptxas"):
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            command = ["ptxas", "-arch=sm_90", "-O0", "-o", "/dev/null", file.name]
            rows.append(("ptxas -O0, whole", seconds(lambda: subprocess.run(command, check=True, capture_output=True), 1)))
    for what, taken in rows:
        print(f"{name:24} {size:6.2f} MB  {what:18} {taken:8.3f} s {size / taken:8.2f} MB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=1_300_000)
    options = parser.parse_args()
    for path in options.files:
        measure(path.name, path.read_text(encoding="utf-8"), options.runs)
    if not options.files:
        measure("generated", large_module(options.size), options.runs)


if __name__ == "__main__":
    main()
