"""Options that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import replace

from ptxemu.cli.inputs import KernelOptions
from ptxemu.device.device import ENGINES, Device, default_device
from ptxemu.text.errors import InputError

Command = Callable[..., Any]
LAUNCH_OPTIONS = (
    "entry", "grid", "block", "arg", "buffer", "surface", "texture", "sampler", "bind", "shared", "cooperative", "cluster",
    "strict",
)  # fmt: skip
PROCESSES = click.IntRange(1, 256)


class DeviceChoice(Struct, frozen=True):
    """What a command says of the device."""

    memory: str | None = None
    workers: int | None = None
    engine: str | None = None
    like: str | None = None
    check: str | None = None
    suppress: tuple[str, ...] = ()

    def make(self) -> Device:
        """The device that is asked for: the default one, if nothing is said."""
        if self == DeviceChoice():
            return default_device()
        made = Device(self.memory, self.workers, engine=self.engine or ENGINES[0], like=self.like or "", check=self.check or "")
        if self.suppress:
            if made.checks is None:
                raise InputError("--suppress leaves out what --check finds: give that, too")
            made.checks.suppress(*self.suppress)
        return made

    def share_of(self, count: int) -> DeviceChoice:
        """The choice of one of several processes that share the processors of this machine."""
        return self if self.workers is not None else replace(self, workers=max(1, (os.cpu_count() or 1) // count))

    def arguments(self) -> list[str]:
        """The options that say the same."""
        options = {"--memory": self.memory, "--workers": self.workers, "--engine": self.engine, "--like": self.like}
        given = [*options.items(), ("--check", self.check), *(("--suppress", text) for text in self.suppress)]
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


def launch_options(command: Command) -> Command:
    """Give a command the options of a launch, as the argument ``launch``, a :class:`KernelOptions`."""

    @click.option("--entry", metavar="NAME", help="The kernel; needed if the file has several.")
    @click.option("--grid", metavar="X[xYxZ]", help="Blocks of the grid.")
    @click.option("--block", metavar="X[xYxZ]", help="Threads of a block.")
    @click.option("--arg", multiple=True, metavar="NAME=VALUE", help="An argument: a number, @x.npy, zeros:f32:1024 ...")
    @click.option("--buffer", multiple=True, metavar="NAME=VALUE", help="An array that arguments and textures name.")
    @click.option("--surface", multiple=True, metavar="NAME=TEXELS:FORMAT...", help="A surface: @in.png:R8G8B8A8_UNORM ...")
    @click.option("--texture", multiple=True, metavar="NAME=TEXELS:...", help="A texture: @photo.png:linear:wrap:normalized ...")
    @click.option("--sampler", multiple=True, metavar="NAME=...", help="A sampler: linear:wrap ...")
    @click.option("--bind", multiple=True, metavar="VARIABLE=NAME", help="What a .surfref, .texref or .samplerref refers to.")
    @click.option("--shared", type=int, metavar="BYTES", help="Dynamic shared memory.")
    @click.option("--cooperative", is_flag=True, default=None, help="All blocks are resident and may wait for each other.")
    @click.option("--cluster", metavar="X[xYxZ]", help="Blocks of a cluster, which share their shared memory.")
    @click.option("--strict", is_flag=True, default=None, help="Check version and target; doubtful arguments are errors.")
    @functools.wraps(command)
    def wrapped(**given: Any) -> Any:
        taken = {name: given.pop(name) for name in LAUNCH_OPTIONS}
        return command(launch=KernelOptions(**taken), **given)

    return wrapped
