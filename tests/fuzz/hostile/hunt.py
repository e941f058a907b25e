"""A fuzz target for all that runs: no program may kill or hang the process, raise a foreign exception, or touch host memory.

    python -m tests.fuzz.hostile.hunt [--runs N] [--seconds S] [--seed K] [--workers W] [--kinds KIND,KIND] [--sanitize]
    python -m tests.fuzz.hostile.hunt --replay FILE...
    python -m tests.fuzz.hostile.hunt --minimize FILE

Programs are kernels of instructions with hostile operands (``rows``), and real modules of PTX (``mutants``) and of the sister
instruction sets (``dialects``) with tokens changed.
Each is run in a child process; a launch is one run.  What must not happen is saved in a file under ``--folder``, which
``--replay`` runs again and ``--minimize`` makes smaller.  ``--sanitize`` builds the runtime with ASan and UBSan and uses that.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from tests.fuzz.hostile import dialects, minimize, mutants, rows
from tests.fuzz.hostile.pool import Child, Finding, Tally
from tests.fuzz.hostile.program import Program, read
from tests.support import sanitize
from tests.support.places import ROOT

SEED = 11
RUNS = 50_000
SAME = 5  # findings of one signature that are kept
REPORT = 60.0  # seconds between lines on how far the hunt is
KINDS: dict[str, Callable[[random.Random], Program]] = {
    "rows": rows.program,
    "mutants": mutants.program,
    "dialects": dialects.program,
}


def made(kind: str, seed: int) -> Program:
    """Program number ``seed`` of a kind."""
    return KINDS[kind](random.Random(f"{kind} {seed}"))


class Hunt:
    """Programs run by several children at once until there have been ``runs`` launches."""

    def __init__(self, kinds: list[str], runs: int, seconds: float, seed: int, folder: Path) -> None:
        self.kinds, self.runs, self.folder = kinds, runs, folder
        self.stop_at = time.monotonic() + seconds
        self.tally, self.findings, self.unconfirmed = Tally(), dict[tuple[str, str], list[Finding]](), list[Finding]()
        self._numbers: Iterator[int] = itertools.count(seed * 1_000_000)
        self._lock = Lock()
        self._reported = time.monotonic()

    def work(self) -> None:
        """One child's share."""
        child = Child()
        try:
            while time.monotonic() < self.stop_at and self.tally.launches < self.runs:
                with self._lock:
                    number = next(self._numbers)
                    kind = self.kinds[number % len(self.kinds)]
                    program = made(kind, number)
                    self._report()
                if (found := child.run(program, self.tally)) is not None:
                    self._keep(found, f"{kind}-{number}", child)
        finally:
            child.close()

    def _report(self) -> None:
        if time.monotonic() > self._reported + REPORT:
            self._reported = time.monotonic()
            print(f"{self.tally.launches} launches of {self.tally.compiled} programs", file=sys.stderr, flush=True)

    def _keep(self, found: Finding, name: str, child: Child) -> None:
        """Save what happens again in a process of its own; what does not is noise, or needs the programs before it."""
        again = child.run(found.program, Tally())
        child.stop()
        with self._lock:
            if again is None or again.kind != found.kind:
                self.unconfirmed.append(found)
                if found.kind == "late":
                    return
                name += "-once"
            same = self.findings.setdefault(found.signature, [])
            same.append(found)
            if len(same) <= SAME:
                path = save(found, self.folder / f"{found.kind.replace(' ', '-')}-{name}.ptx")
                print(f"{path}: {found.kind} in {found.step.name} {found.step.index}: {last_line(found.details)}", flush=True)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:300]


def save(found: Finding, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    note = "".join(f"// {line}\n" for line in (found.kind, *found.details.strip().splitlines()[-40:]))
    path.write_text(f"{found.program.written()}\n{note}", encoding="utf-8", errors="surrogatepass")
    return path


def hunt(options: argparse.Namespace) -> int:
    arguments = options.kinds.split(","), options.runs, options.seconds, options.seed, options.folder
    job, started = Hunt(*arguments), time.monotonic()
    with ThreadPoolExecutor(options.workers) as pool:
        for future in [pool.submit(job.work) for _ in range(options.workers)]:
            future.result()
    tally, elapsed = job.tally, time.monotonic() - started
    print(f"{tally.launches} launches of {tally.compiled} programs ({tally.programs} made) in {elapsed:.0f} s")
    for outcome, count in sorted(tally.outcomes.items(), key=lambda item: -item[1]):
        print(f"  {count:8} {outcome}")
    for number, (seconds, program) in enumerate(sorted(tally.slow, key=lambda item: -item[0])[:SAME]):
        path = save(Finding("slow", f"{seconds:.1f} s", program), options.folder / f"slow-{number}.ptx")
        print(f"  slow to compile: {seconds:.1f} s of CPU time: {path}")
    print(f"{len(job.unconfirmed)} findings did not happen again")
    for (kind, details), found in job.findings.items():
        print(f"FOUND {len(found)} x {kind} {details}")
    return 1 if job.findings else 0


def replay(paths: Iterable[Path]) -> int:
    bad = 0
    for path in paths:
        child, tally = Child(), Tally()
        found = child.run(read(path), tally)
        child.close()
        bad += found is not None
        print(f"{path}: {dict(tally.outcomes)}" if found is None else f"{path}: {found.kind} in {found.step}\n{found.details}")
    return 1 if bad else 0


def sanitized_run(arguments: list[str], saved: Path) -> int:
    """Run this command in a copy whose runtime is built with ASan and UBSan."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sanitize.build(folder, "address")
        command = [sys.executable, "-P", "-m", "tests.fuzz.hostile.hunt"]
        command += [*(word for word in arguments if word != "--sanitize"), "--folder", str(saved.resolve())]
        return subprocess.run(command, env=sanitize.environment(folder, "address"), cwd=os.getcwd()).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="launches")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="child processes at a time")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of programs")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "fuzz", help="where findings are saved")
    parser.add_argument("--sanitize", action="store_true", help="use a runtime built with ASan and UBSan")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--minimize", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.sanitize:
        return sanitized_run(sys.argv[1:], options.folder)
    if options.replay:
        return replay(options.replay)
    if options.minimize:
        return minimize.command(options.minimize)
    return hunt(options)


if __name__ == "__main__":
    sys.exit(main())
