"""The parent's side: child processes that run programs, and findings: what a child died of, or reported."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.hostile.program import Program
from tests.fuzz.hostile.worker import COMPILE_SECONDS, LAUNCH_SECONDS, Outcome, Step, serve

PATIENCE = 6  # of wall-clock time for each second of CPU time that a child may use, on a busy machine
PROGRAMS = 300  # that a child runs before it is replaced
SLOW = 5.0  # seconds of CPU time that a compilation is noted for


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not happen: its class (``signal 11``, ``traceback``, ``escape`` ...), details, and where."""

    kind: str
    details: str
    program: Program
    step: Step = field(default_factory=lambda: Step("start"))

    @property
    def signature(self) -> tuple[str, str]:
        """What findings of one cause share, mostly."""
        lines = self.details.strip().splitlines() or [""]
        return self.kind, lines[-1][:120] if self.kind == "traceback" else ""


@dataclass(slots=True)
class Tally:
    """Counts of what programs ended in."""

    outcomes: Counter[str] = field(default_factory=Counter)
    launches: int = 0
    programs: int = 0
    compiled: int = 0
    slow: list[tuple[float, Program]] = field(default_factory=list)

    def add(self, outcome: Outcome, program: Program) -> None:
        self.outcomes[f"{outcome.step.name}: {outcome.result}"] += 1
        if outcome.step.name == "launch":
            self.launches += 1
            return
        self.programs += 1
        self.compiled += outcome.result == "compiled"
        if outcome.seconds > SLOW:
            self.slow.append((outcome.seconds, program))


class Child:
    """One child process, started when it is needed and after each that died."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.fuzz.hostile.preload"])
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for the process that is forked
        self.process: multiprocessing.process.BaseProcess | None = None
        handle, self._errors = tempfile.mkstemp(prefix="hostile-", suffix=".err")
        os.close(handle)
        self._left = 0

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self.process = self._context.Process(target=serve, args=(theirs, self._errors), daemon=True)
        self.process.start()
        theirs.close()
        self._left = PROGRAMS

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self._connection.close()
            self.process = None

    def close(self) -> None:
        self.stop()
        Path(self._errors).unlink(missing_ok=True)

    def run(self, program: Program, tally: Tally) -> Finding | None:
        """Run a program; the first thing that must not happen."""
        if self.process is None or self._left == 0:
            self.stop()
            self._start()
        self._left -= 1
        found = self._first(program, tally)
        if found is not None:
            self.stop()
        return found

    def _first(self, program: Program, tally: Tally) -> Finding | None:
        step = Step("start")
        try:
            self._connection.send(program)
            for message in self._messages():
                if isinstance(message, Outcome):
                    tally.add(message, program)
                    if message.bad is not None:
                        return Finding(*message.bad, program, message.step)
                elif message.name == "done":
                    return None
                else:
                    step = message
        except TimeoutError:
            return Finding("hang", f"no answer in {step.name} {step.index}", program, step)
        except (EOFError, OSError):
            return Finding(*self._death(), program, step)
        return None

    def _messages(self) -> Iterator[Step | Outcome]:
        while True:
            if not self._connection.poll(PATIENCE * max(COMPILE_SECONDS, LAUNCH_SECONDS)):
                raise TimeoutError
            yield self._connection.recv()

    def _death(self) -> tuple[str, str]:
        assert self.process is not None
        self.process.join(10)
        code = self.process.exitcode
        with open(self._errors, encoding="utf-8", errors="replace") as file:
            text = file.read()[-4000:]
        if code == -signal.SIGXCPU:
            return "endless", "the budget of CPU time is spent"
        return (f"signal {-code}" if code is not None and code < 0 else f"exit {code}"), text
