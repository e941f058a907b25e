"""The programs that commands are given: files, standard input as ``-``, and CUDA C++ where there is a compiler for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ptxemu.cli.isolation import is_isolated
from ptxemu.driver.front import read_ptx
from ptxemu.images.host import program_text
from ptxemu.text.errors import InputError, printable_lines
from ptxemu.text.files import MAX_PROGRAM, read_bounded
from ptxemu.text.source import SourceFile

STANDARD_INPUT = "-"
CUDA = ".cu"
LINES, VARIABLES = "-lineinfo", "-G"
"""What nvcc is to write of the source into the PTX: lines; or also variables, which keeps it from optimizing."""
LONGEST_MESSAGE = 4000  # characters of what nvcc says


def name_of(path: Path) -> str:
    """What messages call the program: that of CUDA C++ is the PTX made of it, whose lines they count."""
    if str(path) == STANDARD_INPUT:
        return "<stdin>"
    return f"{path}.ptx" if path.suffix == CUDA else str(path)


def read_program(path: Path, debug: str = LINES) -> SourceFile:
    """The text of a program. Raises InputError if there is none, or if it is CUDA C++ that cannot be compiled here."""
    name = name_of(path)
    if str(path) == STANDARD_INPUT:
        return SourceFile(name, program_text(read_bounded(sys.stdin.buffer, MAX_PROGRAM, name), name))
    return SourceFile(name, _compiled(path, debug) if path.suffix == CUDA else read_ptx(path))


def read_programs(paths: Sequence[Path], debug: str = LINES) -> list[SourceFile]:
    """The texts of several programs, which are to be linked."""
    if sum(str(path) == STANDARD_INPUT for path in paths) > 1:
        raise InputError("standard input (-) is given twice")
    for path in paths:
        name, equals, _ = path.name.partition("=")
        if equals and not path.exists():
            hint = f"is it --arg {path}? A struct needs quotes in the shell: --arg '{name}={{...}}'"
            raise InputError(f"{path}: no such file; {hint}")
    return [read_program(path, debug) for path in paths]


@contextmanager
def as_files(paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Files with the programs: those of standard input and of CUDA C++ are there for the time being."""
    made = [path for path in paths if str(path) == STANDARD_INPUT or path.suffix == CUDA]
    sources = read_programs(made)
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder:
        files = {path: _written(source, Path(folder)) for path, source in zip(made, sources, strict=True)}
        yield tuple(files.get(path, path) for path in paths)


def _written(source: SourceFile, folder: Path) -> Path:
    """A new file with a program, which has its name."""
    own = Path(tempfile.mkdtemp(dir=folder)) / (Path(source.name).name.strip("<>").removesuffix(".ptx") + ".ptx")
    own.write_text(source.text, encoding="utf-8", errors="surrogateescape")
    return own


def _compiled(path: Path, debug: str) -> str:
    """The PTX that nvcc makes of a file; its own warnings go to stderr."""
    nvcc = shutil.which("nvcc")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    if nvcc is None:
        raise InputError(f"{path}: is CUDA C++, and there is no nvcc on PATH: compile it with nvcc -ptx {path.name}")
    if is_isolated():
        raise InputError(f"{path}: is CUDA C++, which an isolated command does not compile; give it the PTX")
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder:
        made = Path(folder) / "made.ptx"
        command = [nvcc, "-ptx", debug, "-o", str(made), str(path.absolute())]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False)
        said = printable_lines((done.stderr or done.stdout).strip()[:LONGEST_MESSAGE])
        if done.returncode or not made.is_file():
            raise InputError(f"{path}: nvcc could not compile it\n{said}")
        if said:
            sys.stderr.write(said + "\n")
        return read_ptx(made)
