"""Random kernels on both engines: what the compiler makes of them, in each of its schemes, must do what the interpreter does.

    python -m tests.fuzz.engines --kernels 100000 [--seed FIRST] [--save FOLDER]

Kernels of one scheme are compiled together, those of a GROUP, as one LLVM module whose routines they share: half of what LLVM
would do for each is the same for all. A kernel on which the engines differ runs again alone, is made small, by leaving out lines
while the difference stays, and is saved. The kernels run in a child, so that one that kills the process is a result like any
other.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import ptxemu
from ptxemu.device.code import KernelCode
from ptxemu.device.linked_code import LinkedCode
from ptxemu.driver import compile, lowering
from ptxemu.driver.effort import FAST, Effort
from ptxemu.ir.block_shape import variant_of
from ptxemu.text.errors import Error, LaunchTimeout, UnsupportedError
from tests.fuzz.kernels.images import HEIGHT, SCENE, WIDTH
from tests.fuzz.kernels.memory import COMMON
from tests.fuzz.kernels.programs import Program, program
from tests.fuzz.kernels.writer import PLACES, Extent

TIMEOUT = 100.0  # of a launch, in seconds, which pass faster than the process gets to run where others use the machine
HANGS = 3600.0  # seconds after which a kernel is given up, launches and compilation included
CHUNK = 2048  # kernels of a child, which collects no garbage: that costs an eighth of the time, and leaving it 100 KiB a kernel
GROUP = 256  # kernels that are compiled together
ITS_OWN = re.compile(r"0x[0-9a-f]{8,}|thread \(\d+,\d+,\d+\)")  # addresses, and which thread of several is the first to fault
UNSUPPORTED = "not supported: "  # an outcome that begins so is no difference, and no success either
Results = dict[str, np.ndarray]
WORDS = 4096  # of the input
FIRST_VALUES = np.zeros(COMMON, np.uint32)  # of the common results
FIRST_VALUES[:8] = [0, 0xFFFFFFFF, 0x80000000, 0xFFFFFFFF, 0, 0, 0x7FFFFFFF, 0]


@dataclass(frozen=True)
class Scheme:
    """How code is made and runs; ``share`` of 64 kernels have it. ``effort`` is LLVM's."""

    share: int
    threaded: bool
    effort: Effort


SCHEMES = {
    "light": Scheme(26, False, FAST),
    "threaded": Scheme(37, True, FAST),
    "optimized": Scheme(1, False, Effort(2, standard=True)),
}
DRAWN = [
    name for _, name in sorted((turn / scheme.share, name) for name, scheme in SCHEMES.items() for turn in range(scheme.share))
]


def scheme_of(seed: int) -> str:
    return DRAWN[seed % len(DRAWN)]


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
    except Error as error:
        return told(error)


def told(error: Error) -> str:
    if isinstance(error, UnsupportedError):
        return f"{UNSUPPORTED}{error}"
    return ITS_OWN.sub("...", f"{type(error).__name__}: {error}".partition("\n")[0])


def differ(a: Results | str, b: Results | str) -> str:
    """What is different, or ""; where the compiler does not support a kernel, or it does not end, that."""
    if isinstance(a, str) and a.startswith((UNSUPPORTED, LaunchTimeout.__name__)):
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


class Compiled:
    """A program whose kernel is compiled already."""

    def __init__(self, program: Any, code: KernelCode) -> None:
        self._program, self._code = program, code

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def load(self, kernel: str, block: Extent) -> tuple[KernelCode, LinkedCode]:
        return self._code, LinkedCode(self._code.object, self._code.symbol)


@dataclass
class Case:
    """A program on its way: read, interpreted, lowered, compiled. ``wrong`` is what ended it."""

    made: Program
    scheme: str
    module: Any = None
    interpreted: Results | str = ""
    lowered: lowering.Lowered | None = None
    code: KernelCode | None = None
    wrong: str = ""

    def read(self, device: ptxemu.Device) -> None:
        try:
            self.module = ptxemu.loads(self.made.text, filename="fuzz.ptx", device=device)
        except Error as error:  # what is wrong with the text is a difference
            self.wrong = told(error)

    def lower(self, beside: Any) -> Any:
        """Join a unit, or begin one; the unit."""
        options = compile.Options()
        try:
            module = self.module.program.ir
            bodies = compile.prepare(module, compile.find_entry(module, "k"), variant_of(self.made.block))
            self.lowered = lowering.lower_bodies(bodies, options, SCHEMES[self.scheme].threaded, beside=beside)
        except Error as error:
            self.wrong = told(error)
            return beside
        return self.lowered.unit

    def outcomes(self, jit: ptxemu.Device) -> tuple[Results | str, Results | str]:
        """Of the compiled and of the interpreted program."""
        if self.code is None:
            return self.wrong, self.interpreted
        module = ptxemu.Module(Compiled(self.module.program, self.code), jit)
        return outcome(lambda: results(self.made, module)), self.interpreted


class Comparison:
    def __init__(self) -> None:
        self.jit = ptxemu.Device("256 MiB", workers=1)
        self.interpreter = ptxemu.Device("256 MiB", engine="interpreter")

    def cases(self, programs: Iterable[tuple[Program, str]]) -> list[Case]:
        """Programs with their schemes: what they do when they are interpreted, and their code."""
        found = [Case(made, scheme) for made, scheme in programs]
        for case in found:
            case.read(self.interpreter)
            if not case.wrong:
                case.interpreted = outcome(partial(results, case.made, case.module))
        for scheme in SCHEMES:
            compile_together([case for case in found if case.scheme == scheme and not case.wrong])
        return found

    def outcomes(self, made: Program, scheme: str) -> tuple[Results | str, Results | str]:
        """Of the compiled and of the interpreted program."""
        return self.cases([(made, scheme)])[0].outcomes(self.jit)

    def differences(self, programs: Iterable[tuple[Program, str]]) -> Iterator[str]:
        """For each program, compiled with the others of its scheme."""
        for case in self.cases(programs):
            yield differ(*case.outcomes(self.jit))

    def difference(self, made: Program, scheme: str) -> str:
        return differ(*self.outcomes(made, scheme))

    def is_different(self, made: Program, scheme: str) -> bool:
        """Whether a program that is valid, and ends as the interpreter has it, does anything else when it is compiled."""
        a, b = self.outcomes(made, scheme)
        found = differ(a, b)
        return not isinstance(b, str) and bool(found) and not found.startswith(UNSUPPORTED)


def compile_together(cases: list[Case]) -> None:
    """Compile programs of one scheme as one LLVM module."""
    unit = None
    for case in cases:
        unit = case.lower(unit)
    lowered = [case.lowered for case in cases if case.lowered is not None]
    if lowered:
        codes = iter(compile.assemble(lowered, None, SCHEMES[cases[0].scheme].effort))
        for case in cases:
            case.code = next(codes) if case.lowered is not None else None


def save(folder: Path, seed: int, text: str, found: str) -> None:
    made, scheme = program(seed), scheme_of(seed)
    folder.mkdir(parents=True, exist_ok=True)
    heading = f"// seed {seed}, {scheme}, grid {made.grid}, block {made.block}: {found}"
    (folder / f"{seed}-{scheme}.ptx").write_text(f"{heading}\n{text}\n")


def keep(seed: int, found: str, comparison: Comparison, folder: Path) -> None:
    """Save a kernel on which the engines differ, as small as it can be."""
    made, scheme = program(seed), scheme_of(seed)
    save(folder, seed, made.text, found)
    if comparison.is_different(made, scheme):
        small = smaller(made, lambda candidate: comparison.is_different(candidate, scheme))
        save(folder, seed, small.text, found)


def work(seeds: range, group: int, state: Any, folder: Path) -> None:
    """A child: ``state`` is the first seed of the group at work, how many kernels differ, and how many are not supported."""
    os.environ["PTXEMU_CACHE"] = "off"
    warnings.simplefilter("ignore", ptxemu.DtypeWarning)  # all memory is words
    comparison = Comparison()
    gc.disable()
    for first in seeds[::group]:
        together = range(first, min(first + group, seeds.stop))
        state[0] = first
        different = unsupported = 0
        for seed, found in zip(together, comparison.differences((program(seed), scheme_of(seed)) for seed in together)):
            if found.startswith(UNSUPPORTED):
                unsupported += 1
                print(f"seed {seed}: {found}", flush=True)
            elif found:
                different += 1
                print(f"seed {seed}: {found}", flush=True)
                keep(seed, found, comparison, folder)
        state[1] += different
        state[2] += unsupported


def run(seeds: range, folder: Path, group: int = GROUP) -> tuple[int, int]:
    """Run the kernels of some seeds; how many differ, kill their process or do not end, and how many are not supported.

    A group that ends badly runs again, one kernel at a time."""
    bad, unsupported, first = 0, 0, seeds.start
    while first < seeds.stop:
        context = get_context("spawn")
        state = context.Array("q", [first, 0, 0])
        child = context.Process(target=work, args=(range(first, seeds.stop), group, state, folder))
        child.start()
        end = _wait(child, state)
        bad, unsupported = bad + state[1], unsupported + state[2]
        if not end:
            break
        together = range(state[0], min(state[0] + group, seeds.stop))
        alone = run(together, folder, 1) if len(together) > 1 else (0, 0)
        bad, unsupported, first = bad + max(alone[0], 1), unsupported + alone[1], together.stop
        if not alone[0]:
            print(f"seeds {together.start} to {together.stop - 1}: {end}", flush=True)
            save(folder, together.start, program(together.start).text, end)
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
        counts = run(seeds, options.save)
        different, unsupported, done = different + counts[0], unsupported + counts[1], done + len(seeds)
        said = f"{done} kernels from seed {options.seed}, {different} differ, {unsupported} not supported"
        print(f"{said}, {time.monotonic() - started:.0f} s", flush=True)
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
