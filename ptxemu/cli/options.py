"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ptxemu.device.device import ENGINES, Device, default_device

F = TypeVar("F", bound=Callable[..., Any])


def device_options(function: F) -> F:
    """``--memory``, ``--workers`` and ``--engine``."""
    function = click.option("--engine", type=click.Choice(ENGINES), help="What executes kernels; by default jit.")(function)
    function = click.option("--workers", type=int, metavar="N", help="Threads; by default one for each CPU.")(function)
    return click.option("--memory", metavar="SIZE", help="Device memory, such as '4 GiB'.")(function)


def device_of(memory: str | None, workers: int | None, engine: str | None) -> Device:
    """The device that the options ask for."""
    if memory is None and workers is None and engine is None:
        return default_device()
    return Device(memory, workers, engine=engine or ENGINES[0])
