"""Colours in messages: for terminals, and everywhere with FORCE_COLOR (force-color.org), but not with NO_COLOR (no-color.org)."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

import click

SEVERITIES = {"error": "bright_red", "warning": "yellow", "note": "cyan"}
MESSAGE = re.compile(rf"(?P<place>[^\s\x1b].*?: |  |)(?P<severity>{'|'.join(SEVERITIES)}): (?P<text>.*)")
CARET = re.compile(r"\s+\^~*")


def wanted(stream: TextIO) -> bool:
    """Whether what is written to a stream is to have colours."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print messages on stdout or stderr, with colours if these are wanted there."""
    coloured = wanted(sys.stderr if err else sys.stdout)
    click.echo(painted(text) if coloured else text, err=err, nl=nl, color=coloured)


def painted(text: str) -> str:
    """Messages with colours: their places, severities and carets; lines that are none of these stay as they are."""
    return "\n".join(map(_painted_line, text.split("\n")))


def _painted_line(line: str) -> str:
    if CARET.fullmatch(line):
        return click.style(line, fg="green", bold=True)
    match = MESSAGE.fullmatch(line)
    if match is None:
        return line
    severity = match["severity"]
    place = match["place"] if match["place"].isspace() or not match["place"] else click.style(match["place"], bold=True)
    return f"{place}{click.style(f'{severity}:', fg=SEVERITIES[severity], bold=True)} {match['text']}"
