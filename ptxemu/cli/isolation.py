"""Commands in a process of their own, with limits of memory and time: for input that may do anything (docs/commands.md)."""

from __future__ import annotations

import functools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from msgspec import Struct

from ptxemu.cli.colours import say
from ptxemu.text.errors import Error, InputError, shown

Command = Callable[..., Any]

LEAST_MEMORY = 256 << 20
MAX_SECONDS = 10**6
GRACE = 5  # seconds of processor time between the signal to end and the end
VARIABLE = "PTXEMU_ISOLATED"  # tells a child its limits


class IsolationError(Error):
    """An isolated command died, or ran over its time."""

    exit_code = 4


class Limits(Struct, frozen=True):
    """What an isolated command may take: bytes of memory that it can write to, and seconds."""

    memory: int
    seconds: float


def isolation_options(command: Command) -> Command:
    """``--isolate`` and its limits, as the arguments ``isolate``, ``max_memory`` and ``max_seconds``."""
    command = click.option(
        "--max-seconds", type=float, default=60.0, show_default=True, metavar="SECONDS", help="What --isolate allows."
    )(command)
    command = click.option("--max-memory", default="4 GiB", show_default=True, metavar="SIZE", help="What --isolate allows.")(
        command
    )
    text = "For input that is not trusted: run in a process of its own with limits, and no Python of cases."
    return click.option("--isolate", is_flag=True, help=text)(command)


def isolable(command: Command) -> Command:
    """Give a command ``--isolate``, which runs all of it in a child process."""

    @functools.wraps(command)
    def wrapped(isolate: bool, max_memory: str, max_seconds: float, **others: Any) -> Any:
        if not isolate or is_isolated():
            return command(**others)
        return run_isolated(click.get_current_context().find_root().obj, limits_of(max_memory, max_seconds))

    return isolation_options(wrapped)


def limits_of(memory: str, seconds: float) -> Limits:
    """The limits that the options give."""
    from ptxemu.device.device import parse_size

    if not 0 < seconds <= MAX_SECONDS:
        raise InputError(f"--max-seconds must be more than 0 and at most {MAX_SECONDS}, not {shown(seconds)}")
    return Limits(parse_size(memory, LEAST_MEMORY), seconds)


def is_isolated() -> bool:
    """Whether this process is the child of an isolated command."""
    return VARIABLE in os.environ


def restrict() -> None:
    """In the child of an isolated command: take no more than its limits."""
    if not is_isolated():
        return
    memory, seconds = map(int, os.environ[VARIABLE].split(","))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + GRACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_isolated(arguments: Sequence[str], limits: Limits, quiet: bool = False) -> int:
    """Run a command of ptxemu in a child process, to the same output; its exit code. Raises IsolationError if it is killed."""
    command = [sys.executable, "-m", "ptxemu", *arguments]
    seconds = int(limits.seconds * (os.cpu_count() or 1)) + 1  # all its threads may be busy all the time
    environment = {**os.environ, VARIABLE: f"{limits.memory},{seconds}"}
    output = subprocess.DEVNULL if quiet else None
    with subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, env=environment) as child:
        try:
            messages = child.communicate(timeout=limits.seconds)[1]
        except subprocess.TimeoutExpired:
            raise IsolationError(_over_time(limits)) from None
        finally:
            child.kill()
    if child.returncode < 0:
        raise IsolationError(_over_time(limits) if child.returncode == -signal.SIGXCPU else _killed(-child.returncode, limits))
    if not quiet:
        say(messages.decode(errors="replace"), nl=False, err=True)
    return child.returncode


def _over_time(limits: Limits) -> str:
    return f"stopped after {limits.seconds:g} s, the limit of an isolated command (--max-seconds)"


def _killed(number: int, limits: Limits) -> str:
    memory = f"; it may have needed more than {limits.memory >> 20} MiB (--max-memory)"
    return f"the isolated process died of {signal.Signals(number).name}{memory if number != signal.SIGSEGV else ''}"
