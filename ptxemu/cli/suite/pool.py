"""Cases in several processes, each of which runs one after another. A case that kills its process is told, and the rest go on."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path

from ptxemu.cli.streams import prepare
from ptxemu.cli.suite.one_case import Settings, run_one, share_of
from ptxemu.cli.suite.outcome import KILLED, CaseOutcome

CONTEXT = multiprocessing.get_context("spawn")  # a fork would take locks and threads of this process along


def run_in_processes(
    paths: Sequence[Path], settings: Settings, count: int, seconds: float | None = None
) -> Iterator[CaseOutcome]:
    """The outcomes of cases as they come, from ``count`` processes that share the processors.

    A case that takes longer than ``seconds``, with all that it does besides launches, is killed with its process.
    """
    settings = share_of(settings, count)
    waiting = deque(paths)
    busy: dict[Connection, _Process] = {}
    try:
        for _ in range(min(count, len(paths))):
            _start(_Process(settings), waiting, busy)
        while busy:
            for connection, process in _ended(busy, seconds):
                del busy[connection]
                outcome = process.outcome()
                if waiting:
                    _start(process if process.lives else _Process(settings), waiting, busy)
                else:
                    process.end()
                yield outcome
    finally:
        for process in busy.values():
            process.kill()


def _ended(busy: dict[Connection, _Process], seconds: float | None) -> list[tuple[Connection, _Process]]:
    """The processes whose cases have ended, or ended now because they took too long; waits until there are some."""
    if seconds is None:
        ready = wait(list(busy))
    else:
        soonest = min(process.started for process in busy.values()) + seconds
        ready = wait(list(busy), max(0.0, soonest - time.perf_counter()))
        for connection, process in busy.items():
            if connection not in ready and time.perf_counter() >= process.started + seconds:
                process.kill(f"stopped after {seconds:g} s, the limit of a case (--max-case-seconds)")
                ready.append(connection)
    return [(connection, process) for connection, process in busy.items() if connection in ready]


def _start(process: _Process, waiting: deque[Path], busy: dict[Connection, _Process]) -> None:
    process.run(waiting.popleft())
    busy[process.connection] = process


class _Process:
    """A process that runs cases."""

    def __init__(self, settings: Settings) -> None:
        self.connection, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=serve, args=(theirs, settings), daemon=True)
        self._process.start()
        theirs.close()
        self.lives = True
        self._reason = ""

    def run(self, path: Path) -> None:
        """Begin a case; the connection is ready when it has ended."""
        self._path, self.started = path, time.perf_counter()
        with suppress(OSError):  # of one that is dead, which outcome() tells
            self.connection.send(path)

    def outcome(self) -> CaseOutcome:
        """What became of the case; waits for it."""
        try:
            found: CaseOutcome = self.connection.recv()
        except (EOFError, OSError):
            self.lives = False
            self._process.join()
            code, seconds = self._process.exitcode or 0, time.perf_counter() - self.started
            died = f"the process that ran it died of {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
            found = CaseOutcome(self._path, str(self._path), KILLED, self._reason or died, seconds)
        return found

    def end(self) -> None:
        self.connection.close()
        self._process.join()

    def kill(self, reason: str = "") -> None:
        self._reason = reason
        self._process.kill()
        self._process.join()


def serve(connection: Connection, settings: Settings) -> None:
    """Run the cases that come, until none do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    prepare()
    device = settings.device.make()
    while True:
        try:
            path = connection.recv()
        except EOFError:
            return
        connection.send(run_one(path, settings, device))
