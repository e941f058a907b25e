"""Recipes for others: the workflow of docs/ci.md and the container file."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
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


INSTRUCTIONS = [line.split(maxsplit=1) for line in CONTAINER.splitlines() if line and not line.startswith("#")]


def test_the_container_file_is_made_of_instructions() -> None:
    words = [word for word, _ in INSTRUCTIONS]
    assert set(words) <= {"FROM", "RUN", "COPY", "USER", "WORKDIR", "STOPSIGNAL", "ENTRYPOINT"}
    assert words[0] == "FROM" and words.count("FROM") == 2
    assert ["COPY", "--from=build /wheels /wheels"] in INSTRUCTIONS and ["COPY", ". /source"] in INSTRUCTIONS
    for word, rest in INSTRUCTIONS:
        assert word != "RUN" or subprocess.run(["bash", "-n", "-c", rest]).returncode == 0


def test_the_container_has_a_place_for_compiled_kernels() -> None:
    """The cache's own place, in the home of the user who runs the command."""
    (home,) = re.findall(r"useradd --create-home (\w+)", CONTAINER)
    environment = {**os.environ, "HOME": f"/home/{home}"}
    for name in ("XDG_CACHE_HOME", "PTXEMU_CACHE"):
        environment.pop(name, None)
    command = [sys.executable, "-c", "from ptxemu.cache import Cache; print(Cache.place())"]
    place = subprocess.check_output(command, env=environment, text=True).strip()
    after = INSTRUCTIONS[INSTRUCTIONS.index(["USER", home]) :]
    assert ["RUN", f"mkdir -p {place}"] in after
    assert f" -v ptxemu-cache:{place} " in (DOCS / "ci.md").read_text(encoding="utf-8")


def test_commands_in_the_container_run(tmp_path: Path) -> None:
    """What the documents give to the image, in the folder that they mount where it works."""
    (text,) = (block.text for block in blocks(DOCS / "ci.md") if "podman build" in block.text)
    build, *runs = (shlex.split(line) for line in text.splitlines())
    assert (ROOT / build[build.index("-f") + 1]).is_file() and build[-1] == "."
    image = build[build.index("-t") + 1]
    (folder,) = (rest for word, rest in INSTRUCTIONS if word == "WORKDIR")
    entry = json.loads(next(rest for word, rest in INSTRUCTIONS if word == "ENTRYPOINT"))
    shutil.copytree(SAMPLES / "saxpy", tmp_path / "kernels" / "saxpy")
    for given in runs:
        assert any(option.removesuffix(":ro") == f"$PWD:{folder}" for option in given)
        command = [sys.executable, "-m", *entry, *given[given.index(image) + 1 :]]
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100).returncode == 0
    assert (tmp_path / "report.xml").exists()


def test_what_was_built_here_stays_out_of_the_image() -> None:
    """All that git ignores."""
    left_out = [rule.removeprefix("**/") for rule in _lines(".dockerignore") if not rule.startswith("#")]
    for name in (line.strip("/").replace("*", "x") for line in _lines(".gitignore")):
        assert any(fnmatch(name, rule) for rule in left_out), name


def _lines(name: str) -> list[str]:
    return (ROOT / name).read_text(encoding="utf-8").splitlines()
