"""What checkers have found in a program that has no Python in it: told when it ends, on standard error and in a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ptxemu._runtime import ffi
from ptxemu.checkers.kinds import parse_checks
from ptxemu.checkers.lines import ProgramLines
from ptxemu.checkers.raw import finding_of
from ptxemu.checkers.report import Report, sarif_of
from ptxemu.images.fatbin import texts_of
from ptxemu.serve.found import Found
from ptxemu.serve.worker import CHECK
from ptxemu.text.errors import InputError
from ptxemu.text.files import write_text
from ptxemu.text.json_text import json_text
from ptxemu.text.source import SourceFile, join

SUPPRESS = "PTXEMU_SUPPRESS"
"""Suppressions with semicolons between them."""
FILE = "PTXEMU_CHECK_FILE"
"""Where findings go besides: ``.sarif``, or else JSON; ``%p`` is the number of the process."""


def tell(found: Sequence[Found], rest: bytes, checked: bytes, variables: Mapping[str, str], process: int) -> int:
    """Tell of findings in a process, ``rest`` in no known kernel, and of what was checked, a ``pe_checked``: how many were told.

    Raises InputError.
    """
    report = Report(parse_checks(variables.get(CHECK, "")))
    report.suppress(*(text for text in variables.get(SUPPRESS, "").split(";") if text.strip()))
    lines: dict[bytes, ProgramLines] = {}
    for one in found:
        if one.image not in lines:
            texts, _ = texts_of(one.image, one.arch)
            lines[one.image] = ProgramLines(join([SourceFile(name, text) for name, text in texts.items()]))
        report.found += [finding_of(raw, one.kernel, lines[one.image]) for raw in _records("pe_finding", one.raw)]
    report.found += [finding_of(raw, "?" if raw.kernel else "", None) for raw in _records("pe_finding", rest)]
    findings, (counts,) = report.findings, _records("pe_checked", checked)
    for text in [*map(str, findings), *map(str, report.notes), report.summary(counts)]:
        print(text, file=sys.stderr)
    if path := variables.get(FILE):
        _write(Path(path.replace("%p", str(process))), report)
    return len(findings)


def _records(kind: str, data: bytes) -> list[Any]:
    """The records of the runtime that bytes are."""
    if len(data) % ffi.sizeof(kind):
        raise InputError(f"{len(data)} bytes are no records of {kind}")
    records = ffi.from_buffer(f"{kind}[]", data)
    return [records[i] for i in range(len(records))]


def _write(path: Path, report: Report) -> None:
    text = sarif_of((*report.findings, *report.notes)) if path.suffix == ".sarif" else json_text(report.to_json())
    write_text(path, text + "\n")
