"""Finding case files, and the cases of those that are sweeps."""

from __future__ import annotations

import os
from pathlib import Path

from ptxemu.case.matrix import KEY, labels, split_point, with_point
from ptxemu.case.table import MAX_TOML, parse_toml
from ptxemu.text.errors import InputError
from ptxemu.text.files import read_text


def case_file(path: Path) -> Path:
    """The case file meant by a path: itself, or ``case.toml`` or the only ``.toml`` file of a folder."""
    if not path.is_dir():
        return path
    if (path / "case.toml").exists():
        return path / "case.toml"
    found = sorted(path.glob("*.toml"))
    if len(found) != 1:
        raise InputError(f"{path}: {'several' if found else 'no'} case files (*.toml); name one")
    return found[0]


def find_cases(paths: list[Path]) -> list[Path]:
    """Every case at or below the paths, in order: case files, and each point of a sweep as ``case.toml[n=1000]``."""
    found: list[Path] = []
    for path in paths:
        file, label = split_point(path)
        if not os.path.exists(file):
            raise InputError(f"{path}: no such file or folder")
        if label is not None:
            found.append(with_point(case_file(file), label))
            continue
        below = sorted(path.rglob("*.toml")) if path.is_dir() else [path]
        found += [case for file in below if file.name != "pyproject.toml" for case in cases_of(file)]
    if not found:
        raise InputError(f"no case files (*.toml) in {', '.join(map(str, paths))}")
    return list(dict.fromkeys(found))


def cases_of(file: Path) -> list[Path]:
    """The cases of a case file: itself, or the points of its sweep. What cannot be read is one case, which fails when it runs."""
    try:
        text = read_text(file, MAX_TOML)
        found = labels(parse_toml(text, str(file))) if KEY in text else []
    except InputError:
        found = []
    return [with_point(file, label) for label in found] or [file]
