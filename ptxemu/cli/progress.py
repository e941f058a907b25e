"""How far a command is: the times of its stages, and a bar on the terminal for a stage that takes long."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ptxemu.process.locks import importing
from ptxemu.process.stages import STAGES, listening

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE = 2.0  # seconds until there is a bar


class Stages:
    """A listener that adds up the time of each stage, without that of stages in it, and shows bars if stderr is a terminal."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._open: list[tuple[str, _Bar | None]] = []
        self._shows = sys.stderr.isatty()
        self._last = time.perf_counter()

    def begin(self, stage: str) -> None:
        self._count()
        self._open.append((stage, _Bar(stage) if self._shows else None))

    def reached(self, done: int, total: int) -> None:
        bar = self._open[-1][1] if self._open else None
        if bar is not None:
            bar.reached(done, total)

    def end(self) -> None:
        self._count()
        bar = self._open.pop()[1]
        if bar is not None:
            bar.close()

    def _count(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1][0]] += now - self._last
        self._last = now


@contextmanager
def watched() -> Iterator[Stages]:
    """Watch the stages of what is done within."""
    stages = Stages()
    with listening(stages):
        yield stages


class _Bar:
    """A bar, which another thread shows when its time has come: the work may be a call that takes long."""

    def __init__(self, stage: str) -> None:
        self._stage, self._started = stage, time.monotonic()
        self._done, self._total = 0, 0
        self._lock = threading.Lock()
        self._closed = False
        self._shown: tuple[Progress, TaskID] | None = None
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def reached(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = done, total
            self._update()

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown[0].stop()

    def _show(self) -> None:
        with importing:
            from ptxemu.cli.bars import blocks_bar
        with self._lock:
            if self._closed:
                return
            progress = blocks_bar()
            self._shown = progress, progress.add_task(self._stage, total=None, since=self._started)
            self._update()
            progress.start()

    def _update(self) -> None:
        if self._shown is not None and self._total:
            progress, task = self._shown
            progress.update(task, completed=self._done, total=self._total)
