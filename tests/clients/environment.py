"""Environments with programs of others, which are installed once, under ``build/clients``."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

from ptxemu.process.cuda import environment
from tests.support.places import ROOT

CLIENTS = ROOT / "build" / "clients"


def python_of(name: str, packages: list[str]) -> Path:
    """The Python of an environment that has some packages and no ptxemu."""
    place = CLIENTS / name
    python, done = place / "bin" / "python", place / "packages"
    wanted = "\n".join(packages)
    if not done.exists() or done.read_text() != wanted:
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        done.write_text(wanted)
    return python


def packages_of(python: Path) -> Path:
    """Where an environment's packages lie."""
    (found,) = python.parents[1].glob("lib/python3*/site-packages")
    return found


def variables(*libraries: Path, **others: str) -> dict[str, str]:
    """The environment of a program that is to find ptxemu's libraries, and others in the given folders."""
    return environment({**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries)), **others})


def told(name: str, said: str, code: int) -> bool:
    """Print the last line that a suite of tests said. Whether it ended by itself: it was not killed, and could start."""
    ended = code in (0, 1)
    last = (said.strip().splitlines() or ["nothing was said"])[-1]
    print(f"{name}: {last}" + ("" if ended else f" (ended with {code})"), flush=True)
    return ended
