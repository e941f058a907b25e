"""Environments with programs of others, which are installed once, under ``build/clients``."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

from ptxemu.process.cuda import environment
from tests.support.places import ROOT

CLIENTS = ROOT / "build" / "clients"
SECONDS = 5400
"""What the tests of one file may take."""


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


def pytest_of(python: Path, name: str, place: Path, arguments: Sequence[str], variables: dict[str, str]) -> tuple[str, bool]:
    """Run tests in a folder, without this project's settings. What was said, which a file keeps, and whether they ended."""
    alone = ["-c", os.devnull, "-p", "no:cacheprovider", "-W", "ignore"]
    command = [python, "-m", "pytest", "-q", *alone, *arguments]
    done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)
    (CLIENTS / f"{name.replace('/', '-')}.txt").write_text(done.stdout + done.stderr)
    return done.stdout, told(name, done.stdout, done.returncode)


def verdict(failed: Sequence[str], reason_of: Callable[[str], str], ended: bool) -> int:
    """Print the tests that failed, each with its reason. The exit status: 1 if one has none, or not all were run."""
    for case in failed:
        print(f"FAILED: {case}" + (f" (expected: {reason_of(case)})" if reason_of(case) else ""))
    return 0 if ended and all(map(reason_of, failed)) else 1
