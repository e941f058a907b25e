"""bench/compile.py: its kernels are what it says, and its figures are of what was compiled."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ptxemu.driver import compile
from tests.support.places import BENCH


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCH)
    spec = importlib.util.spec_from_file_location("compile_bench", BENCH / "compile.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_every_generator_makes_a_valid_module_that_grows(bench: ModuleType) -> None:
    for name, (generate, sizes) in bench.CLIFFS.items():
        small, large = generate(sizes[0]), generate(2 * sizes[0])
        assert len(small) < len(large) < 2.2 * len(small), name
        compile.find_entry(compile.front(small, strict=True), "k")


def test_growth_is_the_exponent_of_the_larger_sizes(bench: ModuleType) -> None:
    rows = [bench.Row("x", size, 0, bench.Cost(size**1.5), None, None) for size in (20, 80, 160)]
    rows.insert(0, bench.Row("x", 1, 0, bench.Cost(1000), None, None))
    rows.append(bench.Row("x", 320, 0, bench.Cost(failure="memory"), None, None))
    assert bench.growth(rows) == pytest.approx(1.5)
    assert bench.growth(rows[-2:]) is None


def test_a_process_that_fails_or_does_not_end_has_no_cost(bench: ModuleType) -> None:
    endless = bench.cost_of([sys.executable, "-c", "while True: pass"], 1)
    failed = bench.cost_of([sys.executable, "-c", "raise SystemExit('no')"], 20)
    assert endless == bench.Cost(failure="more than 1 s of CPU")
    assert failed == bench.Cost(failure="no")


def test_both_tiers_are_measured(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    command = [sys.executable, str(BENCH / "compile.py"), "--only", "divisions", "--quick", "--best", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(out.read_text())
    assert [row["size"] for row in found["rows"]] == [250, 1000]
    assert all(row["first"]["seconds"] > 0 and row["first"]["mebibytes"] > 0 for row in found["rows"])
    assert all((row["best"] is None) == row["first"]["final"] for row in found["rows"])
    assert found["growth"].keys() == {"divisions"}
    assert "divisions" in done.stdout and "failed" not in done.stdout
