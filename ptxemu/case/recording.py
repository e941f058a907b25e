"""Recorded results: the arrays that a case compares with, in files beside it, and who made them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from ptxemu.case.array_files import save_array
from ptxemu.case.arrays import Array
from ptxemu.case.discovery import case_file
from ptxemu.case.matrix import split_point
from ptxemu.case.schema import Case
from ptxemu.case.sources import FILES, ArraySpec
from ptxemu.case.table import MAX_TOML, parse_toml
from ptxemu.case.toml_text import quoted
from ptxemu.text.errors import InputError, shown
from ptxemu.text.files import MAX_PROGRAM, inside, read_file, read_text, write_text

FOLDER = "expected"  # where results lie that a case did not name
SUFFIX = ".json"  # of what says who made a file
FILE_NAME = re.compile(r"[\w$%+-][\w.$%+-]{0,99}")
MAX_PROVENANCE = 1 << 20  # bytes


class Recorded(Struct, frozen=True):
    """A file with an expected array, one that says who made it, and where messages say that the case names it."""

    name: str
    path: Path
    provenance: Path
    where: str


def recorded(case: Case) -> list[Recorded]:
    """The files that a case compares with. Raises InputError for those that do not lie below its folder."""
    found = []
    for name, output in case.outputs.items():
        source = output.source
        if isinstance(source, ArraySpec) and source.kind in FILES:
            path, beside = (inside(source.folder, source.spec + suffix, source.where) for suffix in ("", SUFFIX))
            found.append(Recorded(name, path, beside, source.where))
    return found


def record(case: Case, arrays: Mapping[str, Array], about: Mapping[str, str], names: set[str] | None = None) -> list[Recorded]:
    """Write the arrays to the files that the case compares with, of some names or all, each with its provenance beside it.

    Raises InputError, before anything is written, if an array is missing.
    """
    files = [file for file in recorded(case) if names is None or file.name in names]
    for file in files:
        if file.name not in arrays:
            raise InputError(f"{file.where}: nothing has made '{file.name}'")
    for file in files:
        save_array(file.path, arrays[file.name], file.where)
        _write_provenance(file.provenance, case, about)
    return files


def provenance(file: Recorded) -> dict[str, Any]:
    """What is known of who made a file; nothing if nothing is."""
    try:
        found = json.loads(read_text(file.provenance, MAX_PROVENANCE))
    except (InputError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def told(facts: Mapping[str, Any]) -> str:
    """Who made a file and when, in words."""
    maker = next((str(facts[key]) for key in ("device", "command", "emulator") if key in facts), "nobody knows whom")
    return f"{maker}, {facts['date']}" if "date" in facts else maker


def changed(case: Case, arrays: Mapping[str, Array]) -> list[str]:
    """The surfaces of a case, and its arrays whose contents are not the first ones any more."""
    return [name for name, array in arrays.items() if name in case.surfaces or _differs(case, name, array)]


def _differs(case: Case, name: str, array: Array) -> bool:
    return name in case.buffers and case.buffers[name].make().tobytes() != array.tobytes()


def expect_files(path: Path, names: Iterable[str]) -> None:
    """Let a case file that expects nothing yet compare these arrays with files in ``expected``."""
    file, point = split_point(path)
    file = case_file(file)
    if point is not None:
        raise InputError(f'{file}: is a sweep: say which files have its results, such as npy = "{FOLDER}/${{n}}.npy"')
    tables = [f'[expect.outputs.{quoted(name)}]\nnpy = "{FOLDER}/{file_name(name)}.npy"\n' for name in names]
    text = "\n".join([read_text(file, MAX_TOML).rstrip("\n") + "\n", *tables])
    try:
        parse_toml(text, str(file))
    except InputError:
        raise InputError(f"{file}: expect: cannot be added to; write into the file:\n{''.join(tables)}") from None
    write_text(file, text)


def file_name(name: str) -> str:
    """The name of an array, if files can have it."""
    if not FILE_NAME.fullmatch(name):
        raise InputError(f"no file can be named as the array {shown(name)}")
    return name


def _write_provenance(path: Path, case: Case, about: Mapping[str, str]) -> None:
    facts = {
        **about,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "case": case.title,
        "programs": {program.name: _digest(program) for program in case.programs},
    }
    write_text(path, json.dumps(facts, indent=2) + "\n")


def _digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(read_file(path, MAX_PROGRAM)).hexdigest()}"
