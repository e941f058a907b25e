"""SARIF 2.1.0, which code-scanning services and editors read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from ptxemu.text.json_text import json_text
from ptxemu.text.version import VERSION

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class SarifResult(Struct, frozen=True):
    """A result: ``level`` is error, warning or note, ``regions`` files with what SARIF calls a region, the most telling first."""

    level: str
    text: str
    regions: Sequence[tuple[str, dict[str, Any]]]
    rule: str = ""

    def to_json(self) -> dict[str, Any]:
        places = [
            {"artifactLocation": {"uri": _uri(file)}, **({"region": region} if region else {})} for file, region in self.regions
        ]
        locations = [{"physicalLocation": place} for place in places]
        found: dict[str, Any] = {"level": self.level, "message": {"text": self.text}, "locations": locations[:1]}
        if locations[1:]:
            found["relatedLocations"] = locations[1:]
        return {**found, **({"ruleId": self.rule} if self.rule else {})}


def sarif_text(results: Sequence[SarifResult]) -> str:
    """The text of a file of SARIF."""
    rules = [{"id": rule} for rule in sorted({result.rule for result in results} - {""})]
    driver = {"name": "ptxemu", "version": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": [item.to_json() for item in results]}
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))
