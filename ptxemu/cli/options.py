"""Options that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click

from ptxemu.device.device import ENGINES, Device, default_device

Command = Callable[..., Any]
PROCESSES = click.IntRange(1, 256)


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """What a command says of the device."""

    memory: str | None = None
    workers: int | None = None
    engine: str | None = None
    like: str | None = None
    check: str | None = None

    def make(self) -> Device:
        """The device that is asked for: the default one, if nothing is said."""
        if self == DeviceChoice():
            return default_device()
        return Device(self.memory, self.workers, engine=self.engine or ENGINES[0], like=self.like or "", check=self.check or "")

    def share_of(self, count: int) -> DeviceChoice:
        """The choice of one of several processes that share the processors of this machine."""
        return self if self.workers is not None else replace(self, workers=max(1, (os.cpu_count() or 1) // count))

    def arguments(self) -> list[str]:
        """The options that say the same."""
        options = {"--memory": self.memory, "--workers": self.workers, "--engine": self.engine, "--like": self.like}
        given = {**options, "--check": self.check}.items()
        return [text for name, value in given if value is not None for text in (name, str(value))]


def device_options(command: Command) -> Command:
    """Give a command ``--memory``, ``--workers``, ``--engine`` and ``--like``, as the argument ``device``."""

    @click.option("--memory", metavar="SIZE", help="Device memory, such as '4 GiB'.")
    @click.option("--workers", type=int, metavar="N", help="Threads; by default one for each CPU.")
    @click.option("--engine", type=click.Choice(ENGINES), help="What executes kernels; by default jit.")
    @click.option("--like", metavar="ARCH", help="Whose results where PTX leaves bits open: sm_89 or exact.")
    @functools.wraps(command)
    def wrapped(memory: str | None, workers: int | None, engine: str | None, like: str | None, **others: Any) -> Any:
        return command(device=DeviceChoice(memory, workers, engine, like), **others)

    return wrapped


timeout_option = click.option(
    "--timeout", type=float, default=60.0, show_default=True, help="Seconds, for launches that state none."
)
