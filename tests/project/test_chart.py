"""bench/chart.py: what docs/performance.md says of kernels is what was measured."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType

import pytest

from tests.support.places import ROOT


@pytest.fixture(scope="module")
def chart() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chart", ROOT / "bench" / "chart.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(**costs: float) -> dict[str, object]:
    return {"kernels": [{"name": "k", "costs": {side: {"wall": wall, "cpu": 1.0} for side, wall in costs.items()}}]}


def test_medians_are_of_ratios(chart: ModuleType) -> None:
    files = [result(C=1, ptxemu=2, other=8), result(C=2, ptxemu=2, other=8), result(C=1, ptxemu=7, other=8)]
    ratios = chart.medians(files)
    assert ratios == {"k": {"ptxemu": 2, "other": 8}}
    assert chart.with_mean({**ratios, "l": {"ptxemu": 8}})["geometric mean"] == pytest.approx({"ptxemu": 4, "other": 8})


def test_the_table_is_what_was_measured(chart: ModuleType) -> None:
    ratios = json.loads(chart.MEASURED.read_text())
    text = (ROOT / "docs" / "performance.md").read_text()
    table = text.partition("| what it stands for |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z_:0-9 ]+) \| [^|]*\|(.*)\|$", table, re.MULTILINE)
    said = {name: figures.replace("|", "").split() for name, figures in rows}
    for name, row in chart.with_mean(ratios).items():
        assert said[name] == [chart.shown(ratio) for ratio in row.values()]


def test_the_chart_shows_all(chart: ModuleType) -> None:
    picture = chart.CHART.read_text()
    assert all(f"<!-- {name} -->" in picture for name in json.loads(chart.MEASURED.read_text()))
