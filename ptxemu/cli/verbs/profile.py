"""``ptxemu profile``: what a kernel does, instruction by instruction, as a GPU's profiler counts it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ptxemu.cli.colours import say
from ptxemu.cli.inputs import KernelOptions
from ptxemu.cli.isolation import isolable
from ptxemu.cli.options import DeviceChoice, launch_options
from ptxemu.cli.profile.facts import NOTE, facts_of
from ptxemu.cli.profile.page import page
from ptxemu.cli.profile.text import render
from ptxemu.cli.progress import watched
from ptxemu.cli.subject import Subject, subject_of
from ptxemu.device.device import Device
from ptxemu.interpreter.observer import observing
from ptxemu.profiler.counters import Profiler
from ptxemu.profiler.occupancy import MOST_REGISTERS
from ptxemu.profiler.profile import Profile
from ptxemu.text.errors import Fault, InputError, LaunchTimeout, shown
from ptxemu.text.files import write_text
from ptxemu.text.json_text import json_text
from ptxemu.text.listings import Listings

ENGINE = "interpreter"


@click.command("profile")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@launch_options
@click.option("--registers", type=click.IntRange(1, MOST_REGISTERS), metavar="N", help="Of a thread, as ptxas -v says.")
@click.option("--memory", metavar="SIZE", help="Device memory, such as '4 GiB'.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Stop a launch that takes longer.")
@click.option("--blocks", metavar="FIRST-LAST", help="Run only these blocks of each launch, by number.")
@click.option("--every", type=click.IntRange(1), default=1, metavar="N", help="Run only every Nth of them.")
@click.option("--births", is_flag=True, help="Also say what made NaNs, infinities and subnormal numbers.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Also write a page with source beside heat.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@isolable
def command(
    paths: tuple[Path, ...],
    launch: KernelOptions,
    registers: int | None,
    memory: str | None,
    timeout: float | None,
    blocks: str | None,
    every: int,
    births: bool,
    html: Path | None,
    as_json: bool,
) -> int:
    """Count what the launches of a kernel or a case do: instructions, divergence, sectors, bank conflicts, atomics.

    Paths and options are those of ptxemu run. The kernel is interpreted, warp by warp, and nothing is timed: the numbers follow
    from the program and its input. Their names are those of Nsight Compute.

    \b
      ptxemu profile samples/histogram
      ptxemu profile saxpy.cu --grid 4 --block 256 --arg n=1024 --arg a=2.0 \\
          --arg x=zeros:f32:1024 --arg y=zeros:f32:1024 --html saxpy.html
    """
    subject = subject_of(paths, launch)
    with watched():
        device = DeviceChoice(memory=memory, engine=ENGINE).make()
        profiler = Profiler(device.arena.describe, births, _sample(blocks, every))
        code = _run(subject, device, profiler, timeout, as_json)
    profiles = [Profile(one, registers) for one in profiler.launches]
    listings = Listings(paths[-1] if paths[-1].is_dir() else paths[-1].parent)
    if html is not None:
        write_text(html, page(subject.title, profiles, listings))
    if as_json:
        click.echo(json_text({"note": NOTE, "launches": [facts_of(profile, listings) for profile in profiles]}))
    else:
        click.echo("\n".join(render(subject.title, profiles, listings)))
    return code


def _sample(blocks: str | None, every: int) -> slice:
    """Of the blocks of a launch. Raises InputError."""
    found = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", blocks or "0-999999999999999999")
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise InputError(f"--blocks: {shown(blocks)} is not FIRST-LAST, such as 0-3")
    return slice(int(found[1]), int(found[2] or found[1]) + 1, every)


def _run(subject: Subject, device: Device, profiler: Profiler, timeout: float | None, as_json: bool) -> int:
    """The exit code: a fault ends the launches, but what was counted before it is of use."""
    printf = _nothing if as_json else None
    try:
        with observing(profiler):
            for text in subject.run(device, timeout, printf):
                say(f"warning: {text}", err=True)
    except (Fault, LaunchTimeout) as error:
        say(f"ptxemu: error: {error}", err=True)
        return error.exit_code
    return 0


def _nothing(text: str) -> None:
    """What kernels print has no place beside an object of JSON."""
