"""Findings that are left out, by checker, kernel, file and line."""

from __future__ import annotations

import pytest

import ptxemu
from ptxemu.checkers.findings import Finding
from ptxemu.checkers.lines import Line
from ptxemu.checkers.suppressions import Suppression
from ptxemu.text.source import Location
from tests.checkers.planted import found, program

LINES = (Line(Location("src/sum.cu", 11), ""), Line(Location("sum.ptx", 40), ""))
FINDING = Finding("race", "text", "_Z6reducePKfPfi", LINES, (0, 0, 0), (0, 0, 0), 0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "race",
        "all",
        "memory,race:kernel=reduce",
        "race:kernel=_Z6*:file=sum.cu:line=10-12",
        "race:file=*.ptx:line=40",
        ":line=11",
    ],
)
def test_matches(text: str) -> None:
    assert Suppression.parse(text).matches(FINDING)


@pytest.mark.parametrize("text", ["memory", "race:kernel=scan", "race:file=sum.cu:line=40", "race:line=12", "race:file=*.h"])
def test_does_not_match(text: str) -> None:
    assert not Suppression.parse(text).matches(FINDING)


@pytest.mark.parametrize("text", ["racy", "race:colour=red", "race:line=x", "race:line=1-2-3", "race:line"])
def test_wrong(text: str) -> None:
    with pytest.raises(ptxemu.InputError):
        Suppression.parse(text)


def test_findings_are_left_out() -> None:
    with ptxemu.Device(memory="4 MiB", check="memory") as device:
        assert device.checks is not None
        device.checks.suppress("memory:file=test.ptx:line=10")
        x = device.empty(8, name="x")
        text = program("st.global.u32 [%rd1+32], 0; st.global.u32 [%rd1+36], 0")
        assert [finding.message for finding in found(device, text, x, 0)] == ["4-byte write 4 bytes after `x` (32 bytes)"]
        assert device.checks.summary.endswith(": 1 finding, 1 suppressed")
