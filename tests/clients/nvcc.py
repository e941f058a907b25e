"""Programs that nvcc builds: how they are built, and run on ptxemu's libcudart."""

from __future__ import annotations

import argparse
import resource
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ptxemu.process.cuda import library_path
from tests.clients.environment import variables

FLAGS = ["-cudart", "shared"]
ARCHITECTURE = "-gencode=arch=compute_80,code=compute_80"  # unless a program asks for another
HEADERS = {".h", ".cuh"}


class NotBuilt(Exception):
    """A compiler refused a program; the text is what it said first."""


@dataclass(frozen=True)
class Run:
    """What a program did: its exit status, what it wrote, seconds on the clock and of all CPUs."""

    status: int
    output: str
    errors: str
    seconds: float
    cpu_seconds: float

    @property
    def failed(self) -> str:
        """That it failed, and the last that it said."""
        said = (self.errors.strip() or self.output.strip()).splitlines()[-2:]
        return f"FAILED ({self.status}): " + " / ".join(said)[:250]

    @property
    def passed(self) -> str:
        return f"passed in {self.seconds:.1f} s, {self.cpu_seconds:.1f} s of CPU"


def compiled(
    program: Path, sources: Sequence[Path], flags: Iterable[str], compiler: str = "nvcc", libraries: Iterable[str] = ()
) -> Path:
    """A program of some sources and headers, built unless it is newer than they are and was built by the same command."""
    inputs = [path for path in sources if path.suffix not in HEADERS]
    given = list(flags)
    usual = FLAGS if any(flag.startswith("-gencode") for flag in given) else [*FLAGS, ARCHITECTURE]
    command = [compiler, *(usual if compiler == "nvcc" else ()), *given, "-o", program, *inputs, *libraries]
    kept, said = program.with_name(f"{program.name}.command"), " ".join(map(str, command))
    if not kept.exists() or kept.read_text() != said or kept.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        program.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines() or ["?"]
            raise NotBuilt(next((line for line in lines if "error" in line), lines[0])[:150])
        kept.write_text(said)
    return program


def written_smaller(path: Path, changes: Mapping[str, str], copy: Path) -> Path:
    """A copy of a source file with other sizes."""
    text = path.read_text(errors="replace")
    for old, new in changes.items():
        text = text.replace(old, new)
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.exists() or copy.read_text(errors="replace") != text:
        copy.write_text(text)
    return copy


def run(command: Sequence[str | Path], folder: Path, limit: float) -> Run:
    """Runs a program on ptxemu's libraries; raises TimeoutExpired after ``limit`` seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = variables(library_path())
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=limit, check=False)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), seconds, used)


def report(
    usage: str, names: Iterable[str], outcome: Callable[[Path, str], str], expected: Mapping[str, str] | None = None
) -> int:
    """Runs programs of a checkout, all of them or those named on the command line, and says what came of each.

    Returns the exit status: 1 if a program fails that is not in ``expected``, which says why it does.
    """
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkout")
    parser.add_argument("names", nargs="*")
    given = parser.parse_intermixed_args()
    reasons = expected or {}
    failed = 0
    for name in given.names or names:
        try:
            result = outcome(given.folder.resolve(), name)
        except NotBuilt as problem:
            result = f"FAILED: not built: {problem}"
        except subprocess.TimeoutExpired as late:
            result = f"FAILED: more than {late.timeout:.0f} s"
        wrong = result.startswith("FAILED")
        failed += wrong and name not in reasons
        print(f"{name}: {result}" + (f" (expected: {reasons[name]})" if wrong and name in reasons else ""), flush=True)
    return 1 if failed else 0
