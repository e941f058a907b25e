"""Random kernels on both engines: what the compiler makes of them, in each of its forms, must do what the interpreter does.

    python -m tests.fuzz.engines --kernels 100000 [--seed FIRST] [--save FOLDER]

A kernel on which they differ is made small, by leaving out lines while the difference stays, and saved.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import ptxemu
from ptxemu.driver import compile
from ptxemu.text.errors import Error
from tests.fuzz.engine_programs import PLACES, SUMS, WORDS, Program, program

FORMS = {"best": ("best", compile.FIRST_LAUNCH), "threaded": ("fast", -1.0)}
TIMEOUT = 60.0
ADDRESS = re.compile(r"0x[0-9a-f]{8,}")  # those of a device are its own
Results = dict[str, np.ndarray]
FIRST_VALUES = np.array([0, 0xFFFFFFFF, 0x80000000, 0xFFFFFFFF, 0, 0, 0x7FFFFFFF, 0], np.uint32)  # of the common results


def results(program: Program, device: ptxemu.Device) -> Results:
    """What a program leaves in memory."""
    values = np.arange(WORDS, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(5)
    out, sums = np.zeros(2 * program.threads * PLACES, np.uint32), FIRST_VALUES[:SUMS].copy()
    module = ptxemu.loads(program.text, filename="fuzz.ptx", device=device)
    module["k"][program.grid, program.block](values, out, sums, 3, timeout=TIMEOUT)
    return {"out": out, "sums": sums}


def outcome(program: Program, device: ptxemu.Device) -> Results | str:
    """The results, or how it failed, without addresses."""
    try:
        return results(program, device)
    except Error as error:
        return ADDRESS.sub("0x...", f"{type(error).__name__}: {error}".partition("\n")[0])


def compiled(program: Program, form: str, device: ptxemu.Device) -> Results | str:
    tier, compile.FIRST_LAUNCH = FORMS[form]
    os.environ["PTXEMU_TIER"] = tier
    return outcome(program, device)


def differ(a: Results | str, b: Results | str) -> str:
    """What is different, or ""."""
    if isinstance(a, str) or isinstance(b, str):
        return (
            ""
            if isinstance(a, str) and a == b
            else f"{a if isinstance(a, str) else 'results'} / {b if isinstance(b, str) else 'results'}"
        )
    for name, array in a.items():
        places = np.flatnonzero(array != b[name])
        if places.size:
            first = places[0]
            return f"{name}[{first}] is {array[first]:#x} compiled, {b[name][first]:#x} interpreted; {places.size} differ"
    return ""


def smaller(found: Program, fails: Callable[[Program], bool]) -> Program:
    """The program without lines that are not needed for it to fail."""
    lines = found.text.splitlines()
    size = len(lines) // 2
    while size:
        start = 0
        while start < len(lines):
            candidate = replace(found, text="\n".join(lines[:start] + lines[start + size :]))
            if fails(candidate):
                lines = candidate.text.splitlines()
            else:
                start += size
        size //= 2
    return replace(found, text="\n".join(lines))


class Comparison:
    def __init__(self) -> None:
        self.jit = ptxemu.Device("256 MiB", workers=1)
        self.interpreter = ptxemu.Device("256 MiB", engine="interpreter")

    def difference(self, program: Program, form: str) -> str:
        return differ(compiled(program, form, self.jit), outcome(program, self.interpreter))

    def is_different(self, program: Program, form: str) -> bool:
        """Whether results differ, of a program that is valid."""
        a, b = compiled(program, form, self.jit), outcome(program, self.interpreter)
        return not isinstance(a, str) and not isinstance(b, str) and bool(differ(a, b))


def check(seed: int, comparison: Comparison, save: Path) -> str:
    """Compare the engines on the kernel of a seed, in one of the compiler's forms; what is different, or ""."""
    form = list(FORMS)[seed % len(FORMS)]
    made = program(seed)
    found = comparison.difference(made, form)
    if found:
        small = smaller(made, lambda candidate: comparison.is_different(candidate, form))
        save.mkdir(parents=True, exist_ok=True)
        (save / f"{seed}-{form}.ptx").write_text(
            f"// seed {seed}, {form}, grid {made.grid}, block {made.block}: {found}\n{small.text}\n"
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kernels", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, default=Path("out/engines"))
    options = parser.parse_args()
    os.environ["PTXEMU_CACHE"] = "off"
    comparison, started, different, done = Comparison(), time.monotonic(), 0, 0
    for seed in range(options.seed, options.seed + options.kernels):
        if time.monotonic() - started > options.seconds:
            break
        if found := check(seed, comparison, options.save):
            different += 1
            print(f"seed {seed}: {found}", flush=True)
        done += 1
        if done % 500 == 0:
            print(f"{done} kernels, {different} differ, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{done} kernels, {different} differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
