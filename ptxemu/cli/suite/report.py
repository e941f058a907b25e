"""Results of ``ptxemu test`` for machines: JUnit XML and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from msgspec import ValidationError, convert
from msgspec.structs import asdict, replace

from ptxemu.case.matrix import split_point
from ptxemu.checkers.findings import grouped
from ptxemu.checkers.report import sarif_of
from ptxemu.cli.suite.outcome import FAILED, FINE, PASSED, CaseOutcome
from ptxemu.text.errors import InputError
from ptxemu.text.files import read_text, write_text
from ptxemu.text.json_text import json_text

MAX_REPORT = 64 << 20  # bytes
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, results: Sequence[CaseOutcome]) -> None:
    """JUnit XML: one test suite with one test case for each case file."""
    failures = [item for item in results if item.status == FAILED]
    errors = [item for item in results if item.status not in {*FINE, FAILED}]
    skipped = [item for item in results if item.status in FINE and item.status != PASSED]
    suite = ElementTree.Element("testsuite", name="ptxemu", tests=str(len(results)), failures=str(len(failures)))
    suite.set("errors", str(len(errors)))
    suite.set("skipped", str(len(skipped)))
    suite.set("time", f"{sum(item.seconds for item in results):.6f}")
    for item in results:
        case = ElementTree.SubElement(suite, "testcase", classname=clean(str(item.path.parent)), name=clean(item.title))
        case.set("file", clean(str(split_point(item.path)[0])))
        case.set("time", f"{item.seconds:.6f}")
        if item.status != PASSED:
            tag = "skipped" if item in skipped else "failure" if item.status == FAILED else "error"
            problem = ElementTree.SubElement(case, tag, type=item.status, message=clean(item.message.split("\n")[0]))
            problem.text = clean(item.message)
        if item.output:
            ElementTree.SubElement(case, "system-out").text = clean(item.output)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    write_text(path, ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")


def write_json(path: Path, results: Sequence[CaseOutcome], exhibits: bool = False, to_read: bool = False) -> None:
    """A JSON object with a summary and the cases, and maybe what the page of HTML shows of them; ``to_read``: by read_outcome."""
    cases = [asdict(item if exhibits else replace(item, exhibits=())) | {"path": str(item.path)} for item in results]
    for case, item in zip(cases, results, strict=True):
        if not exhibits:
            del case["exhibits"]
        if not to_read:
            case["findings"] = [finding.to_json() for finding in item.findings]
    passed = sum(item.status == PASSED for item in results)
    write_text(path, json_text({"total": len(results), "passed": passed, "cases": cases}) + "\n")


def write_sarif(path: Path, results: Sequence[CaseOutcome]) -> None:
    """What checkers have found in all cases, one result for each place, as SARIF."""
    write_text(path, sarif_of(grouped(finding for item in results for finding in item.findings)) + "\n")


def read_outcome(path: Path) -> CaseOutcome:
    """The only outcome of a report in JSON. Raises InputError if there is no such report."""
    try:
        (found,) = json.loads(read_text(path, MAX_REPORT))["cases"]
        return convert(found, CaseOutcome, strict=False, dec_hook=lambda kind, value: kind(value))  # numbers may be texts
    except (ValueError, ValidationError) as error:
        raise InputError(f"{path}: {error}") from None


def clean(text: str) -> str:
    """A text without the characters that XML does not have."""
    return NOT_XML.sub("?", text)
