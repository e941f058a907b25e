"""``ptxemu cuda``: runs CUDA programs on ptxemu's libraries."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

import ptxemu
from ptxemu.text.errors import InputError, shown

SEARCH, PYTHON = "LD_LIBRARY_PATH", "PTXEMU_PYTHON"


def folder() -> Path:
    """Where the libraries lie."""
    return Path(ptxemu.__file__).resolve().parent / "cuda" / "lib"


@click.command("cuda", context_settings={"ignore_unknown_options": True})
@click.option("--print-path", is_flag=True, help="Print the folder of the libraries.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
def command(print_path: bool, program: tuple[str, ...]) -> int:
    """Run a program that uses CUDA: its kernels run on the CPU.

    It loads libcuda.so.1, or was linked with nvcc -cudart shared.

    The exit code is the program's.
    """
    if print_path:
        click.echo(folder())
        return 0
    if not program:
        raise InputError("which program? ptxemu cuda -- PROGRAM ARGUMENTS")
    found = shutil.which(program[0])
    if found is None:
        raise InputError(f"there is no program {shown(program[0])}")
    others = os.environ.get(SEARCH)
    environment = {**os.environ, SEARCH: f"{folder()}:{others}" if others else str(folder())}
    environment.setdefault(PYTHON, sys.executable)
    sys.stdout.flush()
    try:
        os.execve(found, list(program), environment)
    except OSError as error:
        raise InputError(f"cannot run {shown(program[0])}: {error.strerror}") from None
