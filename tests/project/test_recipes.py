"""Recipes for others: the workflow of docs/ci.md and the container file."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.documents import blocks
from tests.support.places import DOCS, ROOT, SAMPLES

CONTAINER = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    (text,) = (block.text for block in blocks(DOCS / "ci.md") if block.language == "yaml")
    workflow = yaml.safe_load(text)
    assert workflow["name"] and set(workflow["jobs"]) == {"kernels"}
    assert workflow[True] == ["push", "pull_request"], "YAML 1.1 reads `on` as True"
    return list(workflow["jobs"]["kernels"]["steps"])


def test_each_step_uses_a_pinned_action_or_runs_a_command(steps: list[dict[str, Any]]) -> None:
    for step in steps:
        assert ("uses" in step) != ("run" in step)
        assert "run" in step or step["uses"].count("@v") == 1
        assert set(step) <= {"uses", "run", "name", "with", "if"}


def test_the_steps_run(steps: list[dict[str, Any]], tmp_path: Path) -> None:
    """All but the installation, which ``tests/project/test_packaging.py`` tests."""
    for name in ("saxpy", "reduce"):
        shutil.copytree(SAMPLES / name, tmp_path / "kernels" / name)
    commands = [step["run"] for step in steps if "run" in step]
    assert shlex.split(commands[0]) == ["pip", "install", "./ptxemu[images]"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands[1:]:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", command],
            cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert 'tests="2"' in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_the_container_file_is_made_of_instructions() -> None:
    lines = [line for line in CONTAINER.splitlines() if line and not line.startswith("#")]
    words = [line.split()[0] for line in lines]
    assert set(words) <= {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT"}
    assert words[0] == "FROM" and words.count("FROM") == 2
    assert "COPY --from=build /wheels /wheels" in lines and "COPY . /source" in lines
    for line in lines:
        if line.startswith("RUN "):
            assert subprocess.run(["bash", "-n", "-c", line[4:]]).returncode == 0
