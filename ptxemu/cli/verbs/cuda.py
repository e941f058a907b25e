"""``ptxemu cuda``: runs CUDA programs on ptxemu's libraries."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from ptxemu.checkers.kinds import parse_checks
from ptxemu.checkers.suppressions import Suppression
from ptxemu.process.cuda import assembler, environment, include_path, library_path
from ptxemu.text.errors import InputError, shown
from ptxemu.text.json_text import json_text

PLACES = {"path": library_path, "include": include_path, "ptxas": assembler}


@click.command("cuda", context_settings={"ignore_unknown_options": True})
@click.option("--print-path", "what", flag_value="path", help="Print the folder of the libraries.")
@click.option("--print-include", "what", flag_value="include", help="Print the folder of ptxemu_embed.h.")
@click.option("--print-ptxas", "what", flag_value="ptxas", help="Print the program that stands in for ptxas.")
@click.option("--json", "as_json", is_flag=True, help="Print all these places as JSON.")
@click.option("--check", metavar="NAMES", help="Look for errors: memory ... or all, with commas (docs/checkers.md).")
@click.option("--suppress", multiple=True, metavar="FINDINGS", help="Leave out: race:kernel=reduce:file=sum.cu:line=10-12 ...")
@click.option("--check-file", metavar="FILE", help="Write findings, too: FILE.sarif, or else JSON; %p is the process.")
@click.option(
    "--check-exit", type=click.IntRange(0, 255), metavar="CODE", help="The exit code of findings: 5; 0 for the program's."
)
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
def command(what: str | None, as_json: bool, program: tuple[str, ...], **checking: Any) -> int:
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
    variables = environment(os.environ) | _checking(**checking)
    sys.stdout.flush()
    try:
        os.execve(found, list(program), variables)
    except OSError as error:
        raise InputError(f"cannot run {shown(program[0])}: {error.strerror}") from None


def _checking(check: str | None, suppress: tuple[str, ...], check_file: str | None, check_exit: int | None) -> dict[str, str]:
    """What tells the libraries to check the program. Raises InputError."""
    if check is None and (suppress or check_file or check_exit is not None):
        raise InputError("--suppress, --check-file and --check-exit are about what --check finds: give that, too")
    for text in suppress:
        Suppression.parse(text)
    given = {
        "PTXEMU_CHECK": None if check is None else ",".join(parse_checks(check)),
        "PTXEMU_SUPPRESS": ";".join(suppress) or None,
        "PTXEMU_CHECK_FILE": check_file,
        "PTXEMU_CHECK_EXIT": None if check_exit is None else str(check_exit),
    }
    return {name: value for name, value in given.items() if value is not None}


def _place(what: str) -> str:
    found = PLACES[what]()
    if found is None:
        raise InputError("ptxemu's commands are not installed: there is no program that stands in for ptxas")
    return str(found)
