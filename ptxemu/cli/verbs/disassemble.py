"""``ptxemu disassemble``: instruction words as SASS."""

from __future__ import annotations

import click

from ptxemu.dialects.sass.encoding import decode
from ptxemu.text.errors import InputError
from ptxemu.text.json_text import json_text


@click.command("disassemble")
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--sm", type=click.IntRange(50, 62), default=60, show_default=True, help="The target.")
def command(words: tuple[str, ...], as_json: bool, sm: int) -> None:
    """Print the SURED and RED instructions that 64-bit words encode, such as 0xeb5a052602870407."""
    decoded = {text: f"{decode(_number(text), sm)} ;" for text in words}
    if as_json:
        click.echo(json_text([{"word": word, "text": text} for word, text in decoded.items()]))
        return
    for text in words:
        click.echo(decoded[text])


def _number(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise InputError(f"{text} is not a hexadecimal word") from None
