"""A child process that runs hostile programs, one after another, and says what each did.

It reports every step before it begins, so that the parent knows what a process died of.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

import ptxemu
from ptxemu.device.module_info import Parameter
from tests.fuzz.hostile.program import Launch, Program
from tests.fuzz.hostile.world import MEMORY, SECRET, World

TIMEOUT = 0.4  # seconds that a launch may take
GRACE = 1.0  # seconds that it may take to end then
COMPILE_SECONDS = 40  # of CPU time; the process is killed then
LAUNCH_SECONDS = 20
DATA = 6 << 30  # bytes of private memory that the process may have
SLACK = 96 << 20  # bytes of memory that a launch may take beyond what the device has
KERNELS = 6  # of a module that are launched
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")  # which takes memory as it likes


@dataclass(frozen=True, slots=True)
class Step:
    """What is about to be done: ``compile``, or launch ``index``; ``done`` at the end."""

    name: str
    index: int = -1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step ended in. ``bad`` is what must not happen, and the details.

    ``seconds`` of CPU time for ``compile``; of a launch, those that it took without waiting for a processor.
    """

    step: Step
    result: str
    bad: tuple[str, str] | None = None
    seconds: float = 0.0
    memory: int = 0


Report = Callable[[Step | Outcome], None]


def limit_cpu(seconds: float) -> None:
    """A budget for what comes next, however much has been used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (spent, resource.RLIM_INFINITY))


class Stopwatch:
    """Time since, less what the threads spent waiting for a processor: the main one, and the one that waited longest."""

    def __init__(self) -> None:
        self._started, self._delays = time.monotonic(), self._waits()

    def seconds(self) -> float:
        elapsed = time.monotonic() - self._started
        waits = {thread: wait - self._delays.get(thread, 0.0) for thread, wait in self._waits().items()}
        own = waits.pop(str(os.getpid()), 0.0)
        return elapsed - own - max(waits.values(), default=0.0)

    @staticmethod
    def _waits() -> dict[str, float]:
        found = {}
        for path in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that ends meanwhile
                found[path.name] = int((path / "schedstat").read_text().split()[1]) / 1e9
        return found


class Peak:
    """The most memory that the process has had since, beyond what it had then."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self.before = self._read("VmRSS:")

    def bytes(self) -> int:
        return self._read("VmHWM:") - self.before

    @staticmethod
    def _read(name: str) -> int:
        text = Path("/proc/self/status").read_text()
        return int(text.partition(name)[2].split(None, 1)[0]) << 10


def judged(step: Step, action: Callable[[], str]) -> Outcome:
    """Do a step; any exception that is not one of ptxemu's own, or is a bug by its own account, is bad."""
    peak, started, watch, bad = Peak(), time.process_time(), Stopwatch(), None
    try:
        result = action()
    except ptxemu.InternalError as error:
        result, bad = "bug", ("internal error", str(error))
    except ptxemu.Error as error:
        result = str(error.record["kind"]) if isinstance(error, ptxemu.Fault) else type(error).__name__
    except Exception:
        result, bad = "exception", ("traceback", traceback.format_exc())
    seconds = watch.seconds() if step.name == "launch" else time.process_time() - started
    return Outcome(step, result, bad, seconds, peak.bytes())


def packed(world: World, parameter: Parameter, index: int, launch: Launch) -> object:
    """An argument for a parameter, whatever its type."""
    given = launch.arguments[index % len(launch.arguments)]
    column = given if isinstance(given, tuple) else (given,)
    if parameter.elements is not None:
        return np.resize(world.words([column]), -(-parameter.size // 8) or 1).tobytes()[: parameter.size]
    if parameter.opaque:
        return world.objects[{"surfref": "s.2d", "texref": "t.2d", "samplerref": "p.linear"}[parameter.type]]
    if parameter.row is not None:
        return np.resize(world.words(launch.data or ((0,),)), 1 << 14).view(f"u{parameter.row[0]}")
    value = world.value(column[0] if parameter.size >= 8 else launch.numbers[index % len(launch.numbers)])
    if parameter.type.startswith("f"):
        return float(value % 1000)
    value %= 1 << 8 * min(parameter.size, 8)
    return value if parameter.type[0] != "s" or value < 1 << 8 * parameter.size - 1 else value - (1 << 8 * parameter.size)


def run_launch(world: World, module: ptxemu.Module, launch: Launch, printf: Callable[[str], None]) -> str:
    for name in [launch.kernel] if launch.kernel else list(module)[:KERNELS]:
        kernel = module[name]
        world.fill(launch.data)
        arguments = [packed(world, parameter, index, launch) for index, parameter in enumerate(kernel.info.parameters)]
        kernel[launch.grid, launch.block](
            *arguments, shared=launch.shared, timeout=TIMEOUT, cooperative=launch.cooperative, printf=printf
        )
    return "ended"


def compile_all(module: ptxemu.Module, launches: tuple[Launch, ...]) -> None:
    """The machine code of every launch, so that launches take only the time that they take."""
    for launch in launches:
        for name in [launch.kernel] if launch.kernel in module else list(module)[:KERNELS]:
            module.program.load(name, launch.block)


def run(program: Program, report: Report) -> None:
    """Compile a program and launch its kernels, reporting each step and its outcome."""
    world = World()
    loaded: list[ptxemu.Module] = []

    def load() -> str:
        settings = {"dialect": program.dialect, "opt": program.opt, "options": program.options}
        module = ptxemu.loads(program.text, device=world.device, **settings)
        compile_all(module, program.launches)
        world.enter(module, program.bind)
        loaded.append(module)
        return "compiled"

    limit_cpu(COMPILE_SECONDS)
    step = Step("compile")
    report(step)
    report(judged(step, load))
    for index, launch in enumerate(program.launches if loaded else ()):
        step = Step("launch", index)
        report(step)
        limit_cpu(LAUNCH_SECONDS)
        report(_after(world, loaded[0], launch, step))
    loaded.clear()
    world.close()


def _after(world: World, module: ptxemu.Module, launch: Launch, step: Step) -> Outcome:
    """The outcome of a launch, judged by what it did to the process."""
    told: list[str] = []

    def printf(text: str) -> None:
        told.extend([text] if SECRET.decode() in text else [])

    found = judged(step, lambda: run_launch(world, module, launch, printf))
    kernels = 1 if launch.kernel else min(KERNELS, len(module))
    bad = found.bad
    if damage := world.damage("".join(told)):
        bad = ("escape", ", ".join(damage))
    elif found.seconds > kernels * TIMEOUT + GRACE:
        bad = bad or ("late", f"{found.seconds:.2f} s for {kernels} launches of up to {TIMEOUT} s")
    elif found.memory > MEMORY + SLACK and not SANITIZED:
        bad = bad or ("memory", f"{found.memory >> 20} MiB, of which the device has {MEMORY >> 20}")
    return Outcome(step, found.result, bad, found.seconds, found.memory)


def serve(connection: Connection, errors: str) -> None:
    """The process: programs come in, reports go out, until there is None."""
    os.environ |= {"PTXEMU_CACHE": "off", "PTXEMU_TIER": "fast"}
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_DATA, (DATA, DATA))
    file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 2)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    while (program := connection.recv()) is not None:
        run(program, connection.send)
        connection.send(Step("done"))
