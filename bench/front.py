"""Speed of the front end, next to ptxas where it is installed.

    python bench/front.py [--runs N] [--size BYTES] [FILE ...]

The first table is about large modules: MB/s of the syntax stage for the first time and with the shapes of the statements
known, of syntax and check together, of ptxas when it only checks (``compute_*``) and when it compiles.  Without files, a
module of about 1.3 MB is made from the kernels of bench/ and of the corpus, renamed.  The second table is about small
files, each checked by a process of its own.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ptxemu.check import check
from ptxemu.driver.front import lint
from ptxemu.process.gc_pause import collector_paused
from ptxemu.syntax.parser import parse
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "tests" / "data" / "corpus"
KERNEL = re.compile(r"\.visible \.entry (\w+)\(.*?^}$", re.S | re.M)
SMALL = ("int_ops.ptx", "suq_sustp_asm.ptx", "saxpy.ptx")
HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


def kernels() -> list[re.Match[str]]:
    """Kernels that stand alone: what they mention, they declare."""
    paths = [*sorted(HERE.glob("*.ptx")), *sorted(CORPUS.glob("*.ptx"))]
    found = [match for path in paths for match in KERNEL.finditer(path.read_text(encoding="utf-8"))]
    return [match for match in found if len(match[0]) < 40_000 and accepted(HEADER + match[0] + "\n")]


def accepted(text: str) -> bool:
    """Whether strict mode accepts a text."""
    source = SourceFile("kernel", text)
    diagnostics = Diagnostics(source, strict=True)
    check(parse(source, diagnostics), source, diagnostics)
    return not diagnostics.errors


def large_module(size: int) -> str:
    """The kernels over and over, each time under another name."""
    parts, length, index = [HEADER], 0, 0
    chosen = kernels()
    while length < size:
        match = chosen[index % len(chosen)]
        text = re.sub(rf"\b{match.group(1)}(?=[\s(]|_param)", f"{match.group(1)}_{index}", match.group(0))
        parts.append(text)
        length += len(text)
        index += 1
    return "\n\n".join(parts) + "\n"


def seconds(action: Callable[[], object], runs: int) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        made = action()
        taken.append(time.perf_counter() - start)
        del made  # the time to free a tree is not the stage's
    return statistics.median(taken)


def process(command: Sequence[str], runs: int) -> float | None:
    """How long a process takes; None where the program is missing or fails."""
    if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True).returncode:
        return None
    return seconds(lambda: subprocess.run(command, check=True, capture_output=True), runs)


def ptxas(path: str, architecture: str, runs: int) -> float | None:
    return process(["ptxas", f"-arch={architecture}", "-O0", "-o", "/dev/null", path], runs)


def large(name: str, text: str, runs: int) -> list[str]:
    source = SourceFile(name, text)
    size = len(text.encode()) / 1e6

    def syntax() -> object:
        with collector_paused():
            return parse(source, Diagnostics(source))

    def both() -> object:
        return lint(text, filename=name)

    taken: list[float | None] = [seconds(syntax, 1), seconds(syntax, runs), seconds(both, runs)]
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        taken += [ptxas(file.name, "compute_90", 1), ptxas(file.name, "sm_90", 1)]
    return [name, f"{size:.2f}", *(f"{size / one:.2f}" if one else "-" for one in taken)]


def small(path: Path, runs: int) -> list[str]:
    times = [process([sys.executable, "-m", "ptxemu", "lint", str(path)], runs),
             ptxas(str(path), "compute_90", runs), ptxas(str(path), "sm_90", runs)]  # fmt: skip
    return [path.name, f"{path.stat().st_size / 1e3:.1f}", *(f"{1000 * one:.0f}" if one else "-" for one in times)]


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    print(title)
    for row in (heads, *rows):
        print("  ".join(text.ljust(width) if index == 0 else text.rjust(width)
                        for index, (text, width) in enumerate(zip(row, widths))))  # fmt: skip
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=1_300_000)
    options = parser.parse_args()
    texts = {path.name: path.read_text(encoding="utf-8") for path in options.files}
    texts = texts or {"generated": large_module(options.size)}
    heads = ("module", "MB", "syntax, first", "syntax", "syntax and check", "ptxas, check only", "ptxas -O0")
    table("MB/s of large modules", heads, [large(name, text, options.runs) for name, text in texts.items()])
    heads = ("file", "KB", "ptxemu lint", "ptxas, check only", "ptxas -O0")
    table("Milliseconds of one process", heads, [small(CORPUS / name, options.runs) for name in SMALL])


if __name__ == "__main__":
    main()
