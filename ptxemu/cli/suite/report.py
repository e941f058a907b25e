"""Results of ``ptxemu test`` for machines: JUnit XML and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree

from ptxemu.case.matrix import split_point
from ptxemu.cli.results import plain
from ptxemu.cli.suite.outcome import FAILED, FINE, PASSED, CaseOutcome
from ptxemu.text.files import write_text

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


def write_json(path: Path, results: Sequence[CaseOutcome], exhibits: bool = False) -> None:
    """A JSON object with a summary and the cases, and maybe what the page of HTML shows of them."""
    cases = [
        {
            "path": str(item.path),
            "title": item.title,
            "status": item.status,
            "message": item.message,
            "seconds": item.seconds,
            "comparisons": [asdict(comparison) for comparison in item.comparisons],
            "output": item.output,
            "source": item.source,
            **({"exhibits": [asdict(exhibit) for exhibit in item.exhibits]} if exhibits else {}),
        }
        for item in results
    ]
    passed = sum(item.status == PASSED for item in results)
    facts = {"total": len(results), "passed": passed, "cases": cases}
    write_text(path, json.dumps(plain(facts), indent=2) + "\n")


def clean(text: str) -> str:
    """A text without the characters that XML does not have."""
    return NOT_XML.sub("?", text)
