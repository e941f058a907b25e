"""``--check``: what checkers have found in a command's launches, as text, JSON and SARIF, and its exit code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ptxemu.cli.colours import say
from ptxemu.cli.options import DeviceChoice
from ptxemu.device.device import Device
from ptxemu.text.files import write_text

Command = Callable[..., Any]


def check_option(command: Command) -> Command:
    """Give a command ``--check`` and ``--suppress`` as parts of its argument ``device``: below :func:`device_options`."""

    @click.option("--check", metavar="NAMES", help="Look for errors: memory ... or all, with commas (docs/checkers.md).")
    @click.option(
        "--suppress", multiple=True, metavar="FINDINGS", help="Leave out: race:kernel=reduce:file=sum.cu:line=10-12 ..."
    )
    @functools.wraps(command)
    def wrapped(check: str | None, suppress: tuple[str, ...], device: DeviceChoice, **others: Any) -> Any:
        return command(device=replace(device, check=check, suppress=suppress), **others)

    return wrapped


@contextmanager
def reported(device: Device, sarif: Path | None) -> Iterator[None]:
    """Tell what was found within, however it ends: on standard error, and in a file of SARIF."""
    try:
        yield
    finally:
        if device.checks is not None:
            for finding in (*device.checks.findings, *device.checks.notes):
                say(str(finding), err=True)
            say(device.checks.summary, err=True)
            if sarif is not None:
                from ptxemu.checkers.report import sarif_of

                write_text(sarif, sarif_of((*device.checks.findings, *device.checks.notes)))


def exit_code(device: Device, code: int) -> int:
    """The exit code of a command that has run on a device and else ends with ``code``."""
    if code or device.checks is None or not device.checks.findings:
        return code
    from ptxemu.checkers.findings import FINDINGS_EXIT

    return FINDINGS_EXIT


def facts(device: Device) -> dict[str, Any]:
    """What ``--json`` says of it: nothing without checkers."""
    return {} if device.checks is None else device.checks.to_json()
