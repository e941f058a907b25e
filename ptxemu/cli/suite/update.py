"""``ptxemu test --update``: what cases compute now becomes what they expect."""

from __future__ import annotations

from msgspec.structs import replace

import ptxemu
from ptxemu.case import read_case, run_case
from ptxemu.case.recording import record, recorded
from ptxemu.cli.suite.one_case import Settings
from ptxemu.cli.suite.outcome import FAILED, UPDATED, CaseOutcome
from ptxemu.device.device import Device
from ptxemu.text.errors import Error


def made_here(device: Device) -> dict[str, str]:
    """Who makes results in this process, as recorded files tell it."""
    return {"emulator": f"ptxemu {ptxemu.__version__}", "engine": device.engine}


def updated(outcome: CaseOutcome, settings: Settings, device: Device) -> CaseOutcome:
    """The outcome of a case after the recorded arrays that were not as expected are written anew.

    What is expected of other arrays is computed, so a case where these differ remains one that failed.
    """
    wrong = {item.name for item in outcome.comparisons if not item.passed}
    if outcome.status != FAILED or not wrong:
        return outcome
    try:
        case = read_case(outcome.path)
        kept = {file.name for file in recorded(case)}
        if wrong & kept:
            result = run_case(case, timeout=settings.timeout, device=device, checks=False)
            record(case, result.arrays, made_here(device), wrong & kept)
    except Error as error:
        return replace(outcome, message=f"{outcome.message}\nnot updated: {error}")
    return replace(outcome, status=UPDATED) if wrong <= kept else outcome
