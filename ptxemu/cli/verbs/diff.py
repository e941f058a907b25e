"""``ptxemu diff``: two programs on the inputs of a case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ptxemu.case import Case, CaseResult, read_case, run_case
from ptxemu.case.failing import differences
from ptxemu.cli.inputs import parse_tolerance
from ptxemu.cli.options import DeviceChoice, device_options, timeout_option
from ptxemu.cli.outcome import duration
from ptxemu.cli.results import summary
from ptxemu.device.device import Device
from ptxemu.text.errors import Fault, LaunchTimeout, printable, printable_lines

Ended = CaseResult | Fault | LaunchTimeout


@click.command("diff")
@click.argument("one", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path))
@click.option("--case", "case_path", required=True, type=click.Path(path_type=Path), help="The case that both programs run.")
@click.option("--tolerance", metavar="LIMITS", help="How far they may differ; by default as far as the case allows.")
@timeout_option
@device_options
def command(
    one: Path,
    other: Path,
    case_path: Path,
    tolerance: str | None,
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
    ends = [_run(replace(case, programs=(program,)), device.make(), timeout) for program in (one, other)]
    same = _told(case, ends, (str(one), str(other)))
    return 0 if same else Fault.exit_code


def _run(case: Case, device: Device, timeout: float) -> tuple[Ended, str]:
    """What came of a program, and what it printed."""
    printed: list[str] = []
    try:
        return run_case(case, device=device, timeout=timeout, printf=printed.append, checks=False), "".join(printed)
    except (Fault, LaunchTimeout) as error:
        return error, "".join(printed)


def _told(case: Case, ends: list[tuple[Ended, str]], names: tuple[str, str]) -> bool:
    """Whether both did the same; says what differs."""
    (one, said), (other, also_said) = ends
    if not isinstance(one, CaseResult) or not isinstance(other, CaseResult):
        for name, (end, _) in zip(names, ends, strict=True):
            text = "ended well" if isinstance(end, CaseResult) else str(end)
            click.echo(f"{printable(name)}: {printable_lines(text)}")
        return False
    found = differences(case, one.arrays, other.arrays, names[1])
    wrong = [item for item in found if not item.passed]
    for item in wrong:
        click.echo(f"{printable(summary(item.name, one.arrays[item.name]))}: {printable(item.message)}")
    if said != also_said:
        click.echo("what they print differs")
    times = f"{duration(one.seconds)} and {duration(other.seconds)}"
    click.echo(f"{len(found) - len(wrong)} of {len(found)} arrays are the same, in {times}")
    return not wrong and said == also_said
