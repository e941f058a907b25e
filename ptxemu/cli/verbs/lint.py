"""``ptxemu lint``: everything that is wrong with PTX files, for people and for tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from ptxemu.cli.colours import say
from ptxemu.cli.isolation import isolable
from ptxemu.cli.programs import name_of, read_program
from ptxemu.driver.front import lint
from ptxemu.text.errors import Diagnostic, InputError
from ptxemu.text.json_text import json_text
from ptxemu.text.sarif import SarifResult, sarif_text

WRONG = 2


@click.command("lint")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "style", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--strict", is_flag=True, help="Also check what .version and .target allow, and all that ptxas rejects.")
@isolable
def command(paths: tuple[Path, ...], style: str, as_json: bool, strict: bool) -> int:
    """Report every error and warning of programs, ``-`` being standard input. The exit code is 2 if there are errors."""
    records = [record for path in paths for record in _check(path, strict)]
    FORMATS["json" if as_json else style](records)
    return WRONG if any(record.severity == "error" for record in records) else 0


def _check(path: Path, strict: bool) -> list[Diagnostic]:
    try:
        source = read_program(path)
    except InputError as error:
        name = name_of(path)
        return [Diagnostic("error", str(error).removeprefix(f"{name}: "), 0, 0, 0, name, "")]
    return lint(source.text, filename=source.name, strict=strict)


def _text(records: list[Diagnostic]) -> None:
    for record in records:
        say(record.render())


def _json(records: list[Diagnostic]) -> None:
    click.echo(json_text([_plain(record) for record in records]))


def _plain(record: Diagnostic) -> dict[str, Any]:
    fields = asdict(record)
    return {name: fields[name] for name in ("file", "line", "column", "end_column", "severity", "message", "notes")}


def _sarif(records: list[Diagnostic]) -> None:
    click.echo(sarif_text([_result(item) for item in records]))


def _result(record: Diagnostic) -> SarifResult:
    region = {"startLine": record.line, "startColumn": record.column, "endColumn": record.end_column} if record.line else {}
    return SarifResult(record.severity, "\n".join([record.message, *record.notes]), [(record.file, region)])


FORMATS: dict[str, Callable[[list[Diagnostic]], None]] = {"text": _text, "json": _json, "sarif": _sarif}
