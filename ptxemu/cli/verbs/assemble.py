"""``ptxemu assemble``: the instruction words of a SASS file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptxemu.dialects import of_file
from ptxemu.dialects.sass.ast import Instruction
from ptxemu.dialects.sass.listing import assemble
from ptxemu.driver.front import read_ptx
from ptxemu.text.errors import Diagnostics, InputError
from ptxemu.text.json_text import json_text
from ptxemu.text.source import SourceFile


@click.command("assemble")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--sm", type=click.IntRange(50, 62), default=60, show_default=True, help="The target.")
def command(path: Path, as_json: bool, sm: int) -> None:
    """Print the 64-bit words of the SURED and RED instructions of a SASS file, each with its line and text."""
    dialect = of_file(str(path))
    if path.suffix.lower() in dialect.suffixes and dialect.name != "sass":
        raise InputError(f"{path} is a file of {dialect.title}: only the instructions of SASS have words here")
    source = SourceFile(str(path), read_ptx(path))
    diagnostics = Diagnostics(source)
    items = assemble(source, diagnostics, sm)
    diagnostics.raise_errors()
    facts = [_facts(source, item, word) for item, word in items]
    if as_json:
        click.echo(json_text(facts))
        return
    for fact in facts:
        click.echo(f"{fact['word'] or '':18}  {fact['line']:>5}  {fact['text']}")


def _facts(source: SourceFile, item: Instruction, word: int | None) -> dict[str, Any]:
    code = None if word is None else f"0x{word:016x}"
    return {"word": code, "line": source.line(item.pos), "text": source.text[item.pos : item.end]}
