"""Random kernels on both engines: what the compiler makes of them, in each of its forms, must do what the interpreter does.

    python -m tests.fuzz.engines --kernels 100000 [--seed FIRST] [--save FOLDER]

A kernel on which they differ is made small, by leaving out lines while the difference stays, and saved. The kernels run in a
child, so that one that kills the process is a result like any other.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import ptxemu
from ptxemu.driver import compile
from ptxemu.driver.effort import FAST, Effort
from ptxemu.text.errors import Error, UnsupportedError
from tests.fuzz.kernels.images import HEIGHT, SCENE, WIDTH
from tests.fuzz.kernels.memory import COMMON
from tests.fuzz.kernels.programs import Program, program
from tests.fuzz.kernels.writer import PLACES

TIMEOUT = 600.0  # of a launch, in seconds, which pass faster than the process gets to run where others use the machine
HANGS = 3600.0  # seconds after which a kernel is given up, launches and compilation included
CHUNK = 1000  # kernels of a child
COLLECTED = 200  # kernels between two collections of garbage, which cost an eighth of the time otherwise
ITS_OWN = re.compile(r"0x[0-9a-f]{8,}|thread \(\d+,\d+,\d+\)")  # addresses, and which thread of several is the first to fault
UNSUPPORTED = "not supported: "  # an outcome that begins so is no difference, and no success either
Results = dict[str, np.ndarray]
WORDS = 4096  # of the input
FIRST_VALUES = np.zeros(COMMON, np.uint32)  # of the common results
FIRST_VALUES[:8] = [0, 0xFFFFFFFF, 0x80000000, 0xFFFFFFFF, 0, 0, 0x7FFFFFFF, 0]


@dataclass(frozen=True)
class Form:
    """A form of compiled code; ``share`` of 16 kernels have it. ``effort`` is that for the routines of threaded code."""

    share: int
    tier: str
    opt: int = 2
    effort: Effort = compile.ROUTINES


FORMS = {
    "light": Form(9, "best", opt=0),
    "threaded": Form(5, "fast", effort=FAST),
    "optimized": Form(1, "best"),
    "routines": Form(1, "fast"),
}
DRAWN = [name for name, form in FORMS.items() for _ in range(form.share)]


def form_of(seed: int) -> str:
    return DRAWN[seed % len(DRAWN)]


@contextmanager
def compiling(form: Form) -> Iterator[None]:
    """Threaded code however small the kernel is, where the form is that."""
    before = compile.FIRST_LAUNCH, compile.ROUTINES
    compile.FIRST_LAUNCH, compile.ROUTINES = -1.0, form.effort
    try:
        yield
    finally:
        compile.FIRST_LAUNCH, compile.ROUTINES = before


def results(made: Program, module: ptxemu.Module) -> Results:
    """What a program leaves in memory."""
    values = np.arange(WORDS, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(5)
    found = {"out": np.zeros(2 * made.threads * PLACES, np.uint32), "sums": FIRST_VALUES.copy()}
    objects = {name: OBJECTS[name](module.device) for name in made.objects}
    try:
        module["k"][made.grid, made.block](values, *found.values(), 3, *objects.values(), timeout=TIMEOUT)
        if "image" in objects:
            found["image"] = objects["image"].copy_to_host().ravel()
    finally:
        for one in objects.values():
            one.close()
    return found


def scene() -> np.ndarray:
    return (np.arange(SCENE * SCENE, dtype=np.uint32) * np.uint32(2654435761)).reshape(SCENE, SCENE)


OBJECTS: dict[str, Callable[[ptxemu.Device], Any]] = {
    "image": lambda device: device.surface((HEIGHT, WIDTH), format="R32_UINT"),
    "scene": lambda device: device.surface(scene(), format="R32_UINT"),
    "picture": lambda device: device.texture(
        scene().view(np.uint8).reshape(SCENE, SCENE, 4), format="R8G8B8A8_UNORM", geometry="2d", filter="linear", normalized=True
    ),
}


def outcome(launch: Callable[[], Results]) -> Results | str:
    """The results, or how it failed, without what is the device's own."""
    try:
        return launch()
    except UnsupportedError as error:
        return f"{UNSUPPORTED}{error}"
    except Error as error:
        return ITS_OWN.sub("...", f"{type(error).__name__}: {error}".partition("\n")[0])


def differ(a: Results | str, b: Results | str) -> str:
    """What is different, or ""; where the compiler does not support a kernel, that."""
    if isinstance(a, str) and a.startswith(UNSUPPORTED):
        return a
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

    def outcomes(self, made: Program, form: str) -> tuple[Results | str, Results | str]:
        """Of the compiled and of the interpreted program, which is read once; what is wrong with its text is a difference."""
        how = FORMS[form]
        try:
            module = ptxemu.loads(made.text, filename="fuzz.ptx", device=self.interpreter, tier=how.tier, opt=how.opt)
        except Error as error:
            return f"{type(error).__name__}: {error}", ""
        interpreted = outcome(lambda: results(made, module))
        with compiling(how):
            compiled = outcome(lambda: results(made, ptxemu.Module(module.program, self.jit)))
        return compiled, interpreted

    def difference(self, made: Program, form: str) -> str:
        return differ(*self.outcomes(made, form))

    def is_different(self, made: Program, form: str) -> bool:
        """Whether results differ, of a program that is valid."""
        a, b = self.outcomes(made, form)
        return not isinstance(a, str) and not isinstance(b, str) and bool(differ(a, b))


def save(folder: Path, seed: int, text: str, found: str) -> None:
    made, form = program(seed), form_of(seed)
    folder.mkdir(parents=True, exist_ok=True)
    heading = f"// seed {seed}, {form}, grid {made.grid}, block {made.block}: {found}"
    (folder / f"{seed}-{form}.ptx").write_text(f"{heading}\n{text}\n")


def check(seed: int, comparison: Comparison, folder: Path) -> str:
    """Compare the engines on the kernel of a seed, in one of the compiler's forms; what is different, or ""."""
    made, form = program(seed), form_of(seed)
    found = comparison.difference(made, form)
    if found and not found.startswith(UNSUPPORTED):
        save(folder, seed, made.text, found)
    if found and comparison.is_different(made, form):
        small = smaller(made, lambda candidate: comparison.is_different(candidate, form))
        save(folder, seed, small.text, found)
    return found


def work(seeds: range, state: Any, folder: Path) -> None:
    """A child: ``state`` is the seed at work, how many kernels differ, and how many are not supported."""
    os.environ["PTXEMU_CACHE"] = "off"
    comparison = Comparison()
    gc.disable()
    for seed in seeds:
        state[0] = seed
        if seed % COLLECTED == 0:
            gc.collect()
        found = check(seed, comparison, folder)
        if found.startswith(UNSUPPORTED):
            state[2] += 1
        elif found:
            state[1] += 1
            print(f"seed {seed}: {found}", flush=True)


def run_chunk(seeds: range, folder: Path) -> tuple[int, int]:
    """Run the kernels of some seeds; how many differ, kill their process or do not end, and how many are not supported."""
    bad, unsupported, first = 0, 0, seeds.start
    while first < seeds.stop:
        context = get_context("spawn")
        state = context.Array("q", [first, 0, 0])
        child = context.Process(target=work, args=(range(first, seeds.stop), state, folder))
        child.start()
        end = _wait(child, state)
        bad, unsupported = bad + state[1], unsupported + state[2]
        if not end:
            break
        bad, first = bad + 1, state[0] + 1
        print(f"seed {state[0]}: {end}", flush=True)
        save(folder, state[0], program(state[0]).text, end)
    return bad, unsupported


def _wait(child: Any, state: Any) -> str:
    """Until a child ends; why, if not in good order."""
    seed, since = state[0], time.monotonic()
    while child.is_alive():
        child.join(1.0)
        if state[0] != seed:
            seed, since = state[0], time.monotonic()
        elif time.monotonic() - since > HANGS:
            child.kill()
            child.join()
            return "does not end"
    if child.exitcode == 0:
        return ""
    return f"ends with {signal.Signals(-child.exitcode).name if child.exitcode < 0 else child.exitcode}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kernels", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, default=Path("out/engines"))
    options = parser.parse_args()
    started, different, unsupported, done = time.monotonic(), 0, 0, 0
    while done < options.kernels and time.monotonic() - started < options.seconds:
        first = options.seed + done
        seeds = range(first, first + min(CHUNK, options.kernels - done))
        counts = run_chunk(seeds, options.save)
        different, unsupported, done = different + counts[0], unsupported + counts[1], done + len(seeds)
        said = f"{done} kernels from seed {options.seed}, {different} differ, {unsupported} not supported"
        print(f"{said}, {time.monotonic() - started:.0f} s", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
