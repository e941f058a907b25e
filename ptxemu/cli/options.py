"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ptxemu.device import Device, default_device

F = TypeVar("F", bound=Callable[..., Any])


def device_options(function: F) -> F:
    """``--memory`` and ``--workers``."""
    function = click.option("--workers", type=int, metavar="N", help="Threads; by default one for each CPU.")(function)
    return click.option("--memory", metavar="SIZE", help="Device memory, such as '4 GiB'.")(function)


def device_of(memory: str | None, workers: int | None) -> Device:
    """The device that the options ask for."""
    return default_device() if memory is None and workers is None else Device(memory, workers)
