"""How long ``ptxemu test`` takes for a suite of small cases with a kernel each, cold and warm.

    python bench/suite.py [--cases N] [--jobs N] [--rounds N]

The suite is generated: kernels of loads, chains of arithmetic, branches or loops, shared memory with a barrier, whose results
NumPy computes in the case files. Seconds of wall time and of CPU are minima of the rounds, each of which begins with an empty
cache; memory is the peak of the largest process.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODULE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{{
  .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p; .shared .b32 s[128];
  ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r0, 128, %r1;
  mul.wide.u32 %d2, %r2, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;
  ld.global.u32 %r3, [%d0];
{body}
  st.global.u32 [%d1], %r3;
  ret;
}}
"""
CASE = """ptx = "kernel.ptx"
grid = 8
block = 128
[args]
x = {{ random = {{ dtype = "u32", shape = 1024, seed = {seed}, low = 0, high = 1000000 }} }}
y = {{ zeros = {{ dtype = "u32", shape = 1024 }} }}
[expect.outputs.y]
expression = "{expression}"
"""
OPERATIONS = {"add.u32": "+", "sub.u32": "-", "mul.lo.u32": "*", "xor.b32": "^", "and.b32": "&", "or.b32": "|"}


def arithmetic(rng: random.Random) -> tuple[str, str]:
    lines, expression = [], "x"
    for _ in range(rng.randrange(5, 30)):
        operation, value = rng.choice(list(OPERATIONS)), rng.randrange(1 << 31)
        lines.append(f"  {operation} %r3, %r3, {value};")
        expression = f"({expression} {OPERATIONS[operation]} np.uint32({value}))"
    return "\n".join(lines), expression


def branch(rng: random.Random) -> tuple[str, str]:
    bound, step = rng.randrange(1_000_000), rng.randrange(1 << 16)
    either, other = f"mul.lo.u32 %r3, %r3, {step};", f"add.u32 %r3, %r3, {step};"
    body = f"  setp.lt.u32 %p, %r3, {bound}; @%p bra LESS; {other} bra END; LESS: {either} END:"
    return body, f"np.where(x < {bound}, x * np.uint32({step}), x + np.uint32({step}))"


def loop(rng: random.Random) -> tuple[str, str]:
    trips, step = rng.randrange(2, 50), rng.randrange(1 << 16)
    trip = f"add.u32 %r3, %r3, {step}; add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, {trips};"
    body = f"  mov.u32 %r4, 0; AGAIN: {trip} @%p bra AGAIN;"
    return body, f"x + np.uint32({trips * step})"


def exchange(rng: random.Random) -> tuple[str, str]:
    turn = rng.randrange(128)
    body = f"""  mov.u32 %r4, s; shl.b32 %r5, %r1, 2; add.u32 %r5, %r4, %r5; st.shared.u32 [%r5], %r3; bar.sync 0;
  add.u32 %r6, %r1, {turn}; and.b32 %r6, %r6, 127; shl.b32 %r6, %r6, 2; add.u32 %r6, %r4, %r6; ld.shared.u32 %r3, [%r6];"""
    return body, f"np.roll(x.reshape(8, 128), {-turn}, axis=1).ravel()"


KINDS: tuple[Callable[[random.Random], tuple[str, str]], ...] = (arithmetic, branch, loop, exchange)


def generate(folder: Path, count: int) -> None:
    for number in range(count):
        body, expression = KINDS[number % len(KINDS)](random.Random(number))
        place = folder / f"{KINDS[number % len(KINDS)].__name__}_{number}"
        place.mkdir()
        (place / "kernel.ptx").write_text(MODULE.format(body=body))
        (place / "case.toml").write_text(CASE.format(seed=number, expression=expression))


@dataclass(frozen=True)
class Cost:
    """Seconds of wall time and of CPU."""

    wall: float
    cpu: float


def run(folder: Path, jobs: int, count: int, cache: Path) -> Cost:
    """One run of the suite, all of which must pass."""
    command = [sys.executable, "-m", "ptxemu", "test", "-j", str(jobs), str(folder)]
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PTXEMU_CACHE": str(cache)}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or f"{count} passed" not in done.stdout:
        raise SystemExit((done.stdout + done.stderr)[-2000:])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(time.perf_counter() - start, cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        suite = Path(scratch, "suite")
        suite.mkdir()
        generate(suite, options.cases)
        caches = [Path(scratch, f"cache{number}") for number in range(options.rounds)]
        for name in ("cold", "warm"):
            costs = [run(suite, options.jobs, options.cases, cache) for cache in caches]
            print(f"{name}: {min(cost.wall for cost in costs):.2f} s, {min(cost.cpu for cost in costs):.2f} s of CPU", flush=True)
    print(f"largest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
