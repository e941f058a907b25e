"""Which cases of a suite run."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ptxemu.cache import Cache
from ptxemu.case import Case, read_case
from ptxemu.cli.suite.outcome import CaseOutcome
from ptxemu.text.errors import Error, InputError
from ptxemu.text.files import read_text

NOT = "not "
MAX_MEMORY = 16 << 20  # bytes of the list of those that failed


def select(paths: Sequence[Path], texts: Sequence[str], tags: Sequence[str]) -> list[Path]:
    """The cases whose path or title has each of ``texts`` (or has not, behind ``not``), and that have one of ``tags``.

    A case that cannot be read is only chosen by its path, and has no tags.
    """
    if not texts and not tags:
        return list(paths)
    found = [path for path in paths if _chosen(path, texts, tags)]
    if not found:
        raise InputError(f"none of {len(paths)} cases is chosen")
    return found


def _chosen(path: Path, texts: Sequence[str], tags: Sequence[str]) -> bool:
    case = _read(path)
    if tags and (case is None or not set(tags) & set(case.tags)):
        return False
    name = f"{path}\n{case.title if case is not None else ''}".lower()
    return all((text.removeprefix(NOT).lower() in name) != text.startswith(NOT) for text in texts)


def _read(path: Path) -> Case | None:
    try:
        return read_case(path)
    except Error:  # which running it tells
        return None


def failed_before(paths: Sequence[Path]) -> list[Path]:
    """Those of the cases that failed when they last ran in this folder; all of them if none did."""
    known = set(_load())
    return [path for path in paths if str(path.resolve()) in known] or list(paths)


def remember(outcomes: Iterable[CaseOutcome]) -> None:
    """Keep which cases failed, for ``--last-failed``; those that did not run now are as they were."""
    file = _file()
    if file is None:
        return
    failed = dict.fromkeys(_load())
    for outcome in outcomes:
        name = str(outcome.path.resolve())
        failed.pop(name, None)
        if not outcome.fine:
            failed[name] = None
    with suppress(OSError):  # a convenience
        file.write_text(json.dumps(list(failed)), encoding="utf-8")


def _load() -> list[str]:
    file = _file()
    if file is None or not file.is_file():
        return []
    try:
        found = json.loads(read_text(file, MAX_MEMORY))
    except (InputError, ValueError, RecursionError):
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _file() -> Path | None:
    """Where the current folder's failures are kept; None if nothing is cached."""
    directory = Cache.from_environment().directory
    return None if directory is None else directory / f"suite-{hashlib.sha256(os.getcwdb()).hexdigest()[:32]}.json"
