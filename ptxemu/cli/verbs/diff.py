"""``ptxemu diff``: two programs on the inputs of a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict, replace

from ptxemu.case import Case, CaseResult, read_case, run_case
from ptxemu.case.compare import Comparison
from ptxemu.case.failing import differences
from ptxemu.cli.inputs import parse_tolerance
from ptxemu.cli.options import DeviceChoice, device_options, timeout_option
from ptxemu.cli.outcome import duration
from ptxemu.cli.programs import as_files, name_of
from ptxemu.cli.results import summary
from ptxemu.device.device import Device
from ptxemu.text.errors import Fault, LaunchTimeout, printable, printable_lines
from ptxemu.text.json_text import json_text


@click.command("diff")
@click.argument("one", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path))
@click.option("--case", "case_path", required=True, type=click.Path(path_type=Path), help="The case that both programs run.")
@click.option("--tolerance", metavar="LIMITS", help="How far they may differ; by default as far as the case allows.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@timeout_option
@device_options
def command(
    one: Path,
    other: Path,
    case_path: Path,
    tolerance: str | None,
    as_json: bool,
    timeout: float,
    device: DeviceChoice,
) -> int:
    """Run two programs on the inputs of a case and compare all arrays and what they print. The exit code is 1 if they differ.

    \b
      ptxemu diff old.ptx new.ptx --case samples/saxpy
    """
    case = read_case(case_path)
    if tolerance is not None:
        case = replace(case, tolerance=parse_tolerance(tolerance), outputs={})
    target = device.make()
    with as_files((one, other)) as files:
        ends = [
            _run(replace(case, programs=(file,)), target, timeout, name_of(path))
            for path, file in zip((one, other), files, strict=True)
        ]
    found = _compared(case, ends)
    same = found is not None and all(item.passed for item in found) and ends[0].said == ends[1].said
    if as_json:
        click.echo(json_text(_facts(ends, found, same)))
    elif found is None:
        for end in ends:
            click.echo(f"{printable(end.program)}: {printable_lines(end.failed or 'ended well')}")
    else:
        _show(ends, found)
    return 0 if same else Fault.exit_code


class _End(Struct, frozen=True):
    """What came of a program: its results, or what it failed with; and what it printed."""

    program: str
    said: str
    result: CaseResult | None = None
    failed: str = ""


def _run(case: Case, device: Device, timeout: float, program: str) -> _End:
    printed: list[str] = []
    try:
        result = run_case(case, device=device, timeout=timeout, printf=printed.append, checks=False)
    except (Fault, LaunchTimeout) as error:
        return _End(program, "".join(printed), failed=str(error))
    return _End(program, "".join(printed), result)


def _compared(case: Case, ends: list[_End]) -> list[Comparison] | None:
    """How the arrays of two programs differ; None if one of these failed."""
    one, other = (end.result for end in ends)
    return None if one is None or other is None else differences(case, one.arrays, other.arrays, ends[1].program)


def _facts(ends: list[_End], found: list[Comparison] | None, same: bool) -> dict[str, Any]:
    """What came of both, as JSON data."""
    programs = [
        {"program": end.program, "failed": end.failed, "output": end.said, "seconds": end.result.seconds if end.result else None}
        for end in ends
    ]
    return {"programs": programs, "comparisons": list(map(asdict, found or ())), "same": same}


def _show(ends: list[_End], found: list[Comparison]) -> None:
    one, other = (end.result for end in ends)
    assert one is not None and other is not None
    wrong = [item for item in found if not item.passed]
    for item in wrong:
        click.echo(f"{printable(summary(item.name, one.arrays[item.name]))}: {printable(item.message)}")
    if ends[0].said != ends[1].said:
        click.echo("what they print differs")
    times = f"{duration(one.seconds)} and {duration(other.seconds)}"
    click.echo(f"{len(found) - len(wrong)} of {len(found)} arrays are the same, in {times}")
