"""The generated pages are what the code says now."""

from __future__ import annotations

import runpy
from pathlib import Path

from ptxemu import isa

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_instruction_list_is_up_to_date() -> None:
    generator = runpy.run_path(str(DOCS / "instructions.py"))
    assert (DOCS / "instructions.md").read_text(encoding="utf-8") == generator["page"](), "stale: run `make docs`"


def test_instruction_list_is_complete() -> None:
    text = (DOCS / "instructions.md").read_text(encoding="utf-8")
    assert all(f"`{opcode}" in text for opcode in isa.rows())
    assert text.count("**no** |") == sum(not form.supported for forms in isa.rows().values() for form in forms)
