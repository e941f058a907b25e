"""``ptxemu assemble``: the instruction words of a SASS file."""

from __future__ import annotations

from pathlib import Path

import click

from ptxemu.dialects import of_file
from ptxemu.dialects.sass.listing import assemble
from ptxemu.driver.front import read_ptx
from ptxemu.text.errors import Diagnostics, InputError
from ptxemu.text.source import SourceFile


@click.command("assemble")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--sm", type=click.IntRange(50, 62), default=60, show_default=True, help="The target.")
def command(path: Path, sm: int) -> None:
    """Print the 64-bit words of the SURED and RED instructions of a SASS file, each with its line and text."""
    dialect = of_file(str(path))
    if path.suffix.lower() in dialect.suffixes and dialect.name != "sass":
        raise InputError(f"{path} is a file of {dialect.title}: only the instructions of SASS have words here")
    source = SourceFile(str(path), read_ptx(path))
    diagnostics = Diagnostics(source)
    items = assemble(source, diagnostics, sm)
    diagnostics.raise_errors()
    for item, word in items:
        code = " " * 18 if word is None else f"0x{word:016x}"
        click.echo(f"{code}  {source.line(item.pos):>5}  {source.text[item.pos : item.end]}")
