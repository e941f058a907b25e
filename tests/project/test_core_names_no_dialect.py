"""The core knows that there are dialects, and names none: what one brings is in a folder ``dialects``.

The verbs ``assemble`` and ``disassemble`` of the command line are about one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxemu.dialects import DIALECTS, PTX
from tests.support.places import PACKAGE, ROOT

WORDS = [*(name for name in DIALECTS if name != PTX.name), "umrt"]
NAMED = re.compile(rf"(?<![a-z])(?<!smsp__)({'|'.join(WORDS)})(?![a-z])", re.IGNORECASE)  # metrics of Nsight: smsp__sass_...
EXEMPT = (PACKAGE / "dialects", PACKAGE / "interpreter" / "dialects", ROOT / "csrc" / "dialects", PACKAGE / "cli")
GENERATED = {"_tables.py"}


def core() -> Iterator[Path]:
    for path in sorted([*PACKAGE.rglob("*.py"), *(ROOT / "csrc").rglob("*.[ch]")]):
        if path.name not in GENERATED and not any(path.is_relative_to(folder) for folder in EXEMPT):
            yield path


def lines_that_name_dialects(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if NAMED.search(line)]


def test_the_core_names_no_dialect() -> None:
    found = {path.relative_to(ROOT).as_posix(): lines_that_name_dialects(path.read_text(encoding="utf-8")) for path in core()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line", ["import ptxemu.dialects.ctm", "ctm_uint = 1", "SYMBOL(pe_ctm_load),", "# As in SASS.", "vISA", "PE_UMRT"]
)
def test_a_name_is_seen(line: str) -> None:
    assert lines_that_name_dialects(line) == [line]


def test_parts_of_words_are_not_names() -> None:
    assert lines_that_name_dialects("message passage visage actman") == []
