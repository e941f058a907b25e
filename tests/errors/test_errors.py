"""Diagnostics, file by file.

In ``tests/errors/*.ptx`` a comment ``// error: text`` (or ``// warning: text``) at the end of a line announces a
diagnostic of that line whose message begins with the text; the next line marks its column with ``^`` in a comment.
Every diagnostic must be announced.  A first line ``// strict`` selects strict mode.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxemu.driver.front import check_ptx
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile
from tests.support.places import ERRORS

FILES = sorted(ERRORS.glob("*.ptx"))
ANNOUNCED = re.compile(r"// (error|warning): (.+)$")


def diagnose(path: Path) -> Diagnostics:
    text = path.read_text()
    source = SourceFile(path.name, text)
    diagnostics = Diagnostics(source, strict=text.startswith("// strict"))
    check_ptx(source, diagnostics)
    return diagnostics


def expected(text: str) -> list[tuple[int, int, str, str]]:
    """(line, column, severity, message) of each announcement."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        announced = ANNOUNCED.search(line)
        if announced:
            mark = lines[number]
            assert mark.lstrip().startswith("//") and mark.count("^") == 1, f"line {number + 1} must mark the column"
            found.append((number, mark.index("^") + 1, announced.group(1), announced.group(2).strip()))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_errors(path: Path) -> None:
    wanted = expected(path.read_text())
    got = [(r.line, r.column, r.severity, r.message) for r in sorted(diagnose(path).records, key=lambda r: r.line)]
    assert wanted
    shortened = [(*g[:3], g[3][: len(w[3])]) for g, w in zip(got, wanted)]
    assert shortened == wanted
    assert got[len(wanted) :] == []


def test_rendering_has_line_and_caret() -> None:
    records = diagnose(ERRORS / "unknown_instruction.ptx").records
    assert records[0].render().splitlines() == [
        "unknown_instruction.ptx:8:5: error: unknown instruction 'ladd'; did you mean 'add'?",
        "      ladd.u32 %r1, %r2, %r3;  // error: unknown instruction 'ladd'; did you mean 'add'?",
        "      ^~~~",
    ]
