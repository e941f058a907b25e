"""``ptxemu cuda``: runs CUDA programs on ptxemu's libraries."""

from __future__ import annotations

import os
import shutil
import sys

import click

from ptxemu.process.cuda import assembler, environment, include_path, library_path
from ptxemu.text.errors import InputError, shown
from ptxemu.text.json_text import json_text

PLACES = {"path": library_path, "include": include_path, "ptxas": assembler}


@click.command("cuda", context_settings={"ignore_unknown_options": True})
@click.option("--print-path", "what", flag_value="path", help="Print the folder of the libraries.")
@click.option("--print-include", "what", flag_value="include", help="Print the folder of ptxemu_embed.h.")
@click.option("--print-ptxas", "what", flag_value="ptxas", help="Print the program that stands in for ptxas.")
@click.option("--json", "as_json", is_flag=True, help="Print all these places as JSON.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
def command(what: str | None, as_json: bool, program: tuple[str, ...]) -> int:
    """Run a program that uses CUDA: its kernels run on the CPU.

    It loads libcuda.so.1, or was made by nvcc, with CUDA's runtime linked in or shared.

    The exit code is the program's.
    """
    if as_json:
        click.echo(json_text({name: find() for name, find in PLACES.items()}))
        return 0
    if what is not None:
        click.echo(_place(what))
        return 0
    if not program:
        raise InputError("which program? ptxemu cuda -- PROGRAM ARGUMENTS")
    found = shutil.which(program[0])
    if found is None:
        raise InputError(f"there is no program {shown(program[0])}")
    sys.stdout.flush()
    try:
        os.execve(found, list(program), environment(os.environ))
    except OSError as error:
        raise InputError(f"cannot run {shown(program[0])}: {error.strerror}") from None


def _place(what: str) -> str:
    found = PLACES[what]()
    if found is None:
        raise InputError("ptxemu's commands are not installed: there is no program that stands in for ptxas")
    return str(found)
