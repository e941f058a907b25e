"""Documentation: generated pages are what the code says now, links and names of commands and files are right."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from ptxemu import isa
from ptxemu.cli import COMMANDS
from tests.support.places import CSRC, DOCS, PACKAGE, ROOT, TESTS

FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_instruction_list_is_up_to_date() -> None:
    generator = runpy.run_path(str(DOCS / "instructions.py"))
    assert (DOCS / "instructions.md").read_text(encoding="utf-8") == generator["page"](), "stale: run `make generated`"


def test_instruction_list_is_complete() -> None:
    text = (DOCS / "instructions.md").read_text(encoding="utf-8")
    assert all(f"`{opcode}" in text for opcode in isa.rows())
    assert text.count("**no** |") == sum(not form.supported for forms in isa.rows().values() for form in forms)


def pages() -> list[Path]:
    return [*DOCS.glob("*.md"), *(ROOT / name for name in ("README.md", "CHANGELOG.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]+`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def code(page: Path) -> str:
    """What a page sets as code, each piece on lines of its own."""
    text = page.read_text(encoding="utf-8")
    return "\n".join([*FENCE.findall(text), *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))])


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for written in re.findall(r"^(?:\S*/)?ptxemu ((?:[a-z]+\|)*[a-z]+)\b", code(page), re.MULTILINE):
        assert set(written.split("|")) <= set(COMMANDS), written
    for target in re.findall(r"^make ([a-z-]+)", code(page), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_described(command: str) -> None:
    described = "\n".join(map(code, DOCS.glob("*.md")))
    assert re.search(rf"^ptxemu (\w+\|)*{command}\b", described, re.MULTILINE)


def test_files_that_developers_are_sent_to_exist() -> None:
    roots = [
        ROOT,
        *(path for folder in (PACKAGE, CSRC, TESTS) for path in (folder, *folder.rglob("*")) if path.is_dir()),
    ]
    named = set(re.findall(r"^[\w/.]+\.(?:py|c|h|md|ptx)$", code(DOCS / "developing.md"), re.MULTILINE))
    made_up = {"ptxemu/cli/verbs/verb.py", "tests/isa/foo.ptx"}
    assert len(named) > 40 and made_up < named
    assert not [name for name in named - made_up if not any((place / name).exists() for place in roots)]


def test_readme_counts_forms() -> None:
    forms = [form for forms in isa.rows().values() for form in forms]
    counted = f"{sum(form.supported for form in forms)} of {len(forms)} forms"
    assert counted in (ROOT / "README.md").read_text(encoding="utf-8")
