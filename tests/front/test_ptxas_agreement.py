"""Strict mode agrees with ptxas 13.5 on thousands of small modules (``tests/front/oracle`` recorded its verdicts)."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from typing import Any

import pytest

import ptxemu
from tests.support.places import AGREEMENT

LEAST = 0.99  # of each measure, over all cases that are not known differences

# Deliberate differences: rule class and name of the cases, and why.
KNOWN = (
    (r"declarations|limits", r"4294967296|1000000000|0xffffffff", "ptxas counts sizes in 32 bits, and these wrap"),
    (r"directives", r"\.extern", "functions are declared outside of functions"),
    (r"order of directives", r"in body", "a .target inside a function would change it unseen"),
    (r"parameters", r"ld\.param.*\[p", "ptxas ends without a message"),
    (r"scopes", r"reg v2 z", "a vector of two has no third element"),
    (r"operand types|vectors", r"%ee1|^k in|\{%h1,%h2\}", "operands that ptxas takes for others of their size"),
)  # fmt: skip


def records() -> list[dict[str, Any]]:
    with gzip.open(AGREEMENT, "rt") as file:
        return [json.loads(line) for line in file]


def verdict(text: str) -> tuple[bool, int]:
    errors = [record for record in ptxemu.lint(text, strict=True) if record.severity == "error"]
    return not errors, min((record.line for record in errors), default=0)


def known(record: dict[str, Any]) -> bool:
    return any(re.fullmatch(rule, record["rule"]) and re.search(name, record["name"]) for rule, name, _ in KNOWN)


@pytest.fixture(scope="module")
def outcomes() -> list[tuple[dict[str, Any], bool, int]]:
    """A third of the records, or with PTXEMU_EVERY_FORM all, with ptxemu's verdicts and first lines."""
    return [(record, *verdict(record["text"])) for record in records()[:: 1 if "PTXEMU_EVERY_FORM" in os.environ else 3]]


def test_corpus_covers_the_rules() -> None:
    found = Counter(record["rule"] for record in records())
    assert sum(found.values()) >= 1500 and len(found) >= 30 and min(found.values()) >= 20


def test_verdicts(outcomes: list[tuple[dict[str, Any], bool, int]]) -> None:
    counted = [(record, accepted) for record, accepted, _ in outcomes if accepted == record["accepted"] or not known(record)]
    wrong = [f"[{record['rule']}] {record['name']}" for record, accepted in counted if accepted != record["accepted"]]
    assert 1 - len(wrong) / len(counted) >= LEAST, "\n".join(wrong)


def test_lines(outcomes: list[tuple[dict[str, Any], bool, int]]) -> None:
    """The same first line, wherever ptxas names one."""
    rejected = [(record, line) for record, accepted, line in outcomes if not accepted and record["line"]]
    wrong = [f"[{record['rule']}] {record['name']}: {line}" for record, line in rejected if line != record["line"]]
    assert 1 - len(wrong) / len(rejected) >= LEAST, "\n".join(wrong)
