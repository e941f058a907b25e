"""``ptxemu shrink``: the smallest case that still fails."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from ptxemu.case import Case, case_file, read_case, run_case
from ptxemu.case.failing import Candidates
from ptxemu.case.matrix import at_point, split_point
from ptxemu.case.shrinking import Shrinker
from ptxemu.case.standalone import CASE, write_case
from ptxemu.case.table import read_toml
from ptxemu.cli.options import DeviceChoice, device_options, timeout_option
from ptxemu.cli.programs import as_files
from ptxemu.text.errors import InputError, printable, printable_lines
from ptxemu.text.json_text import json_text


@click.command("shrink")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--against", multiple=True, type=click.Path(path_type=Path), metavar="FILE", help="A program that is right.")
@click.option(
    "-o", "--output-dir", type=click.Path(path_type=Path), default=Path("shrunk"), show_default=True, help="A new folder."
)
@click.option("--runs", type=click.IntRange(1), default=1000, show_default=True, help="How many smaller cases are tried.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@timeout_option
@device_options
def command(
    path: Path,
    against: tuple[Path, ...],
    output_dir: Path,
    runs: int,
    as_json: bool,
    timeout: float,
    device: DeviceChoice,
) -> int:
    """Find the smallest grid, block and input with which a case still fails as it does, and write it as a new case.

    What is expected must be computed, by expressions or a reference; --against compares with another program instead.
    """
    if output_dir.exists():
        raise InputError(f"{output_dir}: exists already; name another folder with -o")
    case = read_case(path)
    file, point = split_point(path)
    data = at_point(read_toml(case_file(file)), point).data
    _check(case, against)
    run = partial(run_case, device=device.make(), timeout=timeout, checks=not against)
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder, as_files(against) as right:
        candidates = Candidates(case, run, Path(folder))
        data = candidates.start({**data, "title": f"{case.title}, shrunk"})
        failure = candidates.failure(data, right)
        if failure is None:
            raise InputError(f"{case.path}: does not fail" + (" where the other program does not" if against else ""))
        say = partial(click.echo, err=as_json)  # stdout is for the object
        say(f"{printable(str(path))}: {printable_lines(failure.message)}")
        shrinker = Shrinker(
            data,
            lambda smaller: (found := candidates.failure(smaller, right)) is not None and found.kind == failure.kind,
            candidates.array,
            lambda text: say(f"  {printable(text)}"),
            in_proportion=not against and failure.kind == "wrong results",
            limit=runs,
        )
        smallest = shrinker.shrink()
        last = candidates.failure(smallest, right)
        assert last is not None, "it failed when it was taken"
        wanted = run(replace(candidates.case(smallest), programs=right)).arrays if against else {}
        write_case(candidates.concrete(smallest), case, wanted, output_dir)
    written = output_dir / CASE
    if as_json:
        facts = {"case": path, "kind": failure.kind, "message": failure.message, "runs": shrinker.runs}
        click.echo(json_text({**facts, "shrunk": {"case": written, "message": last.message}}))
    else:
        click.echo(f"{shrinker.runs} cases tried; {written}: {printable_lines(last.message)}")
    return 0


def _check(case: Case, against: tuple[Path, ...]) -> None:
    fixed = [name for name, output in case.outputs.items() if output.source is not None and not isinstance(output.source, str)]
    if fixed and not against:
        told = "with other inputs they would be others; --against FILE compares with another program"
        raise InputError(f"{case.path}: the results that {', '.join(fixed)} must have are fixed: {told}")
