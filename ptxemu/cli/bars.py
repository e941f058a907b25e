"""Bars on the terminal."""

from __future__ import annotations

import sys
import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text


class _Rate(ProgressColumn):
    """``1000 of 65536 blocks, 250/s, 0:04:18 left``, or the time until now of what is not counted."""

    def render(self, task: Task) -> Text:
        seconds = time.monotonic() - task.fields["since"]
        if task.total is None:
            return Text(_clock(seconds))
        rate = task.completed / seconds
        left = f", {_clock((task.total - task.completed) / rate)} left" if rate else ""
        return Text(f"{task.completed:.0f} of {task.total:.0f} blocks, {rate:.3g}/s{left}")


def blocks_bar() -> Progress:
    """A bar for blocks that are done, or for work that nobody counts; its tasks have a field ``since``, of time.monotonic."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), _Rate())
    return _bar(*columns)


def cases_bar() -> Progress:
    """A bar for the cases of a suite."""
    return _bar(*Progress.get_default_columns())


def _bar(*columns: ProgressColumn) -> Progress:
    """A bar on stderr, which is gone in the end. What is printed goes above it, where stdout is the same terminal."""
    console = Console(stderr=True, highlight=False)
    above = sys.stdout.isatty()
    return Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=above, redirect_stderr=True
    )


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
