"""``ptxemu debug``: a debugger of kernels, with time travel."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import click

from ptxemu.cli.debug.terminal import PROMPT, Terminal
from ptxemu.cli.inputs import KernelOptions
from ptxemu.cli.options import DeviceChoice, launch_options
from ptxemu.cli.programs import STANDARD_INPUT, VARIABLES
from ptxemu.cli.subject import Subject, subject_of
from ptxemu.debugger.engine import Debugger
from ptxemu.debugger.session import hold
from ptxemu.device.device import Device
from ptxemu.text.errors import InputError
from ptxemu.text.files import read_text

MOST_COMMANDS = 1 << 20  # bytes of a file of them
ENGINE = "interpreter"
PATH = click.Path(path_type=Path)


@click.command("debug")
@click.argument("paths", type=PATH, nargs=-1)
@launch_options
@click.option("-x", "--command", "scripts", multiple=True, type=PATH, metavar="FILE", help="Commands to do first.")
@click.option("--batch", is_flag=True, help="Leave when the commands of -x are done.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Another order of warps, the same for the same number.")
@click.option("--replay", type=click.IntRange(1), metavar="STEP", help="Start at a step, which every stop tells.")
@click.option("--dap", is_flag=True, help="Talk the Debug Adapter Protocol on standard input and output, for editors.")
@click.option("--memory", metavar="SIZE", help="Device memory, such as '4 GiB'.")
def command(
    paths: tuple[Path, ...],
    launch: KernelOptions,
    scripts: tuple[Path, ...],
    batch: bool,
    seed: int | None,
    replay: int | None,
    dap: bool,
    memory: str | None,
) -> int:
    """Run a kernel or a case in a debugger, with the commands of cuda-gdb: break, run, next, info, print; help lists them.

    Paths and options are those of ptxemu run. Commands come from the files of -x, and then from the terminal or standard input.

    \b
      ptxemu debug samples/reduce
      (ptxemu) break kernel.ptx:40 if threadIdx.x == 5
      (ptxemu) run
    """
    if any(str(path) == STANDARD_INPUT for path in paths):
        raise InputError("the program of a debugger is a file: standard input has its commands")
    make_device = DeviceChoice(memory=memory, engine=ENGINE).make
    if dap:
        return _serve(subject_of(paths, launch, VARIABLES) if paths else None, make_device)
    if not paths:
        raise InputError("debug needs a program or a case, or --dap")
    subject = subject_of(paths, launch, VARIABLES)
    lines = [line for script in scripts for line in read_text(script, MOST_COMMANDS).splitlines()]
    folder = paths[-1] if paths[-1].is_dir() else paths[-1].parent
    first = [f"goto {replay}"] if replay is not None else []
    commands = _commands([*first, *lines], None if batch else sys.stdin)
    debugger = Debugger(seed)
    before = signal.signal(signal.SIGINT, lambda *_: setattr(debugger, "attention", True))
    try:
        terminal = Terminal(debugger, commands, lambda: subject.resources, folder)
        hold(debugger, terminal, lambda device, printf: subject.run(device, None, printf), make_device)
    finally:
        signal.signal(signal.SIGINT, before)
    return 0


def _serve(subject: Subject | None, make_device: Callable[[], Device]) -> int:
    """Be an editor's adapter. What else would be printed goes to stderr."""
    from ptxemu.cli.debug.adapter import Adapter

    target, sys.stdout = sys.stdout.buffer, sys.stderr
    adapter = Adapter(sys.stdin.buffer, target, subject)

    def run(device: Device, printf: Callable[[str], None]) -> None:
        assert adapter.subject is not None
        adapter.subject.run(device, None, printf)

    hold(adapter.debugger, adapter, run, make_device)
    return 0


def _commands(first: list[str], stream: TextIO | None) -> Iterator[str]:
    """Commands one after the other; those of a terminal behind a prompt."""
    yield from first
    if stream is None:
        return
    if stream.isatty():
        import readline  # noqa: F401  # input() edits lines with it

        while True:
            try:
                yield input(PROMPT)
            except EOFError:
                return
    yield from stream
