"""What happens when ptxemu itself is at fault: a reproducer is saved."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import click

import ptxemu
from ptxemu.errors import InternalError

MAX_COPY = 64 << 20


def save_reproducer(error: BaseException, arguments: list[str]) -> int:
    """Write the command, its input files and the traceback to a new folder and say so; exit code 70."""
    folder = Path(tempfile.mkdtemp(prefix="ptxemu-bug-"))
    (folder / "report.txt").write_text(_report(error, arguments), encoding="utf-8", errors="backslashreplace")
    for argument in arguments:
        _copy_input(Path(argument.partition("=")[2].removeprefix("@") or argument), folder)
    summary = f"{type(error).__name__}: {error}".splitlines()[0]
    click.echo(f"ptxemu: internal error: {summary}", err=True)
    click.echo(f"ptxemu: this is a bug in ptxemu; please report it with the files in {folder}", err=True)
    return InternalError.exit_code


def _report(error: BaseException, arguments: list[str]) -> str:
    return "\n".join(
        [
            f"ptxemu {ptxemu.__version__}, Python {sys.version.split()[0]}, {platform.platform()}",
            shlex.join(["ptxemu", *arguments]),
            "",
            "".join(traceback.format_exception(error)),
        ]
    )


def _copy_input(source: Path, folder: Path) -> None:
    """Keep an input: a file, or a case's folder."""
    try:
        if source.is_file() and source.stat().st_size <= MAX_COPY:
            shutil.copy(source, folder / source.name)
            beside = [*source.parent.glob("kernel.*"), source.parent / "reference.py"] if source.suffix == ".toml" else []
            for file in beside:
                if file.is_file():
                    shutil.copy(file, folder / file.name)
        elif source.is_dir() and (source / "case.toml").is_file():
            shutil.copytree(source, folder / source.resolve().name)
    except OSError:
        return  # the report is worth having without it
