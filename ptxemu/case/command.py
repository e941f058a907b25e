"""Results from another executable: it reads a case's inputs from files, and writes what it makes of them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ptxemu.case.array_files import load_npy
from ptxemu.case.arrays import Array
from ptxemu.case.recording import file_name
from ptxemu.case.schema import Case
from ptxemu.text.errors import InputError, shown
from ptxemu.text.files import reason, regular

INPUTS, OUTPUTS = "inputs", "outputs"
SCALARS = "scalars.json"
MAX_SAID = 1000  # characters of what a command that fails has said


def run_command(case: Case, command: str, timeout: float) -> tuple[dict[str, Array], dict[str, str]]:
    """The arrays that a command makes, by name, and what it is.

    In the command ``{inputs}`` is a folder with the case's arrays, ``NAME.npy``, and its scalars, in ``scalars.json``, and
    ``{outputs}`` one for the ``NAME.npy`` that it makes. No shell is between. Raises InputError if it fails, takes longer than
    ``timeout`` seconds, or makes nothing.
    """
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder:
        folders = {name: Path(folder, name) for name in (INPUTS, OUTPUTS)}
        for path in folders.values():
            path.mkdir()
        _write_inputs(case, folders[INPUTS])
        _run([_placed(word, folders) for word in _words(command)], timeout)
        files = sorted(folders[OUTPUTS].glob("*.npy"))
        arrays = {file.stem: load_npy(regular(file, "--from-command"), "--from-command") for file in files}
    if not arrays:
        raise InputError(f"--from-command: {shown(command)} has written no NAME.npy to {{{OUTPUTS}}}")
    return arrays, {"command": command}


def _write_inputs(case: Case, folder: Path) -> None:
    for name, spec in case.buffers.items():
        np.save(folder / f"{file_name(name)}.npy", spec.make(), allow_pickle=False)
    arguments = {name: value for launch in case.launches for name, value in launch.args.items()}
    scalars = {name: value for name, value in arguments.items() if isinstance(value, int | float)}
    (folder / SCALARS).write_text(json.dumps(scalars), encoding="utf-8")


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--from-command: {error}") from None
    if not words:
        raise InputError("--from-command: is empty")
    return words


def _placed(word: str, folders: dict[str, Path]) -> str:
    for name, path in folders.items():
        word = word.replace(f"{{{name}}}", str(path))
    return word


def _run(words: list[str], timeout: float) -> None:
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env=os.environ)
    except (OSError, ValueError) as error:
        raise InputError(f"--from-command: {words[0]}: {reason(error)}") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"--from-command: took longer than {timeout:g} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-MAX_SAID:]
        raise InputError(f"--from-command: ended with code {done.returncode}" + (f": {said}" if said else ""))
