"""What happens when ptxemu itself is at fault: a reproducer is saved."""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

import ptxemu
from ptxemu.case.matrix import split_point
from ptxemu.cli.streams import complain
from ptxemu.text.errors import InternalError, summary_of

MAX_COPY = 64 << 20


def save_reproducer(error: BaseException, arguments: list[str]) -> int:
    """Write the command, its input files and the traceback to a new folder and say so; exit code 70."""
    complain(f"ptxemu: internal error: {summary_of(error)}")
    try:
        folder = Path(tempfile.mkdtemp(prefix="ptxemu-bug-"))
        (folder / "report.txt").write_text(_report(error, arguments), encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        complain(f"ptxemu: this is a bug in ptxemu; nothing could be saved: {problem.strerror or problem}")
        return InternalError.exit_code
    for argument in arguments:
        name = split_point(Path(argument))[0] if argument.endswith("]") else argument.partition("=")[2].removeprefix("@")
        _copy_input(Path(name or argument), folder)
    complain(f"ptxemu: this is a bug in ptxemu; please report it with the files in {folder}")
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
    """Keep an input: a file, or what usually lies in a case's folder."""
    with suppress(OSError, ValueError):  # the report is worth having without it
        files = [source]
        if source.is_dir() and (source / "case.toml").is_file():
            files = [source / "case.toml"]
        if files[0].suffix == ".toml":
            files += [*files[0].parent.glob("kernel.*"), files[0].parent / "reference.py"]
        for file in files:
            if file.is_file() and file.stat().st_size <= MAX_COPY:
                shutil.copy(file, folder / file.name)
