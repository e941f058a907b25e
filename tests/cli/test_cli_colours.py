"""Colours of messages: on terminals, as NO_COLOR and FORCE_COLOR ask; and the completion of shells."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxemu.cli import colours, run

WRONG = """\
.version 7.8
.target sm_70
.visible .entry k()
{
  rets; // x: error: y
  ret;
}
"""
ESCAPE = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wrong.ptx").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return tmp_path


@pytest.mark.parametrize(
    ("terminal", "environment", "expected"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_who_wants_colours(terminal: bool, environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    assert colours.wanted(stream) is expected


def test_places_severities_and_carets_have_colours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["lint", "wrong.ptx"]) == 2
    plain = capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["lint", "wrong.ptx"]) == 2
    coloured = capsys.readouterr().out
    assert ESCAPE.sub("", coloured) == plain and "\x1b" not in plain
    message, source, caret = coloured.splitlines()
    assert message.startswith("\x1b[1mwrong.ptx:5:3: \x1b[0m\x1b[91m\x1b[1merror:\x1b[0m unknown instruction")
    assert "\x1b" not in source and caret.startswith("\x1b[32m")
    assert colours.painted(coloured) == coloured, "what an isolated command has painted"


def test_errors_of_commands_have_colours(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["info", "missing.ptx"]) == 2
    assert (
        capsys.readouterr().err == "\x1b[1mptxemu: \x1b[0m\x1b[91m\x1b[1merror:\x1b[0m missing.ptx: no such file or directory\n"
    )


SHELLS = {
    "bash": """
        eval "$(_PTXEMU_COMPLETE=bash_source ptxemu)"
        for words in 'ptxemu li' 'ptxemu run --en'; do
            COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
            _ptxemu_completion ptxemu; echo "$words: ${COMPREPLY[*]}"
        done""",
    "zsh": """
        compdef() { :; }; compadd() { :; }; _describe() { echo "${(P)3}"; }
        eval "$(_PTXEMU_COMPLETE=zsh_source ptxemu)"
        for text in 'ptxemu li' 'ptxemu run --en'; do
            words=(${=text}) CURRENT=${#words}; echo "$text: $(_ptxemu_completion)"
        done""",
    "fish": """
        _PTXEMU_COMPLETE=fish_source ptxemu | source
        for words in 'ptxemu li' 'ptxemu run --en'
            echo $words: (complete --do-complete $words)
        end""",
}
EXPECTED = {"ptxemu li": {"lint"}, "ptxemu run --en": {"--entry", "--engine"}}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [program, *(["-f"] if shell == "zsh" else ["--no-config"] if shell == "fish" else []), "-c", SHELLS[shell]]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PATH": path, "HOME": str(tmp_path)}, check=True
    )
    assert not done.stderr
    found = dict(line.split(":", 1) for line in done.stdout.splitlines())
    for words, names in EXPECTED.items():
        assert set(re.findall(r"[\w-]+", found[words])) & {"lint", "info", "--entry", "--engine", "--grid"} == names
