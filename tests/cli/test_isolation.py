"""--isolate: commands in a process of their own, with limits, and what is said when that process comes to an end."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from ptxemu.cli import isolation, run
from ptxemu.cli.isolation import IsolationError, Limits, run_isolated
from tests.support import api_kernels as ptx

LIMITS = Limits(1 << 30, 100)
ENDLESS = ["endless.ptx", "--grid", "1", "--block", "32"]
CASE = """
ptx = "{name}.ptx"
grid = 1
block = 32
[buffers]
y = {{ zeros = {{ dtype = "f32", shape = 4 }} }}
[expect]
{expect}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HELLO", "ENDLESS", "SAXPY", "UNSUPPORTED"):
        (tmp_path / f"{name.lower()}.ptx").write_text(getattr(ptx, name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_output_and_code_are_those_of_the_command(folder, capfd):
    assert run(["run", "hello.ptx", "--grid", "1", "--block", "1", "--isolate"]) == 0
    assert capfd.readouterr().out.startswith("hello\nhello: 1 blocks")
    assert run(["info", "missing.ptx", "--isolate"]) == 2
    assert capfd.readouterr().err == "ptxemu: error: missing.ptx: no such file or directory\n"
    assert run(["compile", "unsupported.ptx", "--isolate"]) == 3
    assert "fabric.submit" in capfd.readouterr().err
    assert run(["lint", "hello.ptx", "saxpy.ptx", "--isolate"]) == 0


def test_it_ends_in_time(folder, capfd):
    assert run(["run", *ENDLESS, "--isolate", "--max-seconds", "2"]) == 4
    assert capfd.readouterr().err == "ptxemu: error: stopped after 2 s, the limit of an isolated command (--max-seconds)\n"
    assert run(["run", *ENDLESS, "--isolate", "--timeout", "0.05"]) == 1


@pytest.mark.parametrize("value", ["full:f32:200000000:1", "random:f32:100000000", "zeros:f32:200000000"])
def test_memory_is_bounded(folder, capfd, value):
    Path("case.toml").write_text("")
    arguments = ["--grid", "1", "--block", "1", "--arg", "n=0", "--arg", "a=1", "--arg", "x=0", "--arg", f"y={value}"]
    assert run(["run", "saxpy.ptx", *arguments, "--isolate", "--max-memory", "600 MiB"]) == 2
    assert "out of" in capfd.readouterr().err


def test_device_memory_counts(folder, capfd):
    (folder / "big.ptx").write_text(ptx.HEAD + ".global .b8 a[900000000];\n.visible .entry k() { ret; }")
    assert run(["run", "big.ptx", "--grid", "1", "--block", "1", "--isolate", "--max-memory", "600 MiB"]) in (2, 4)
    assert len(capfd.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGXCPU"])
def test_a_process_that_is_killed(tmp_path, monkeypatch, name):
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho noise >&2\nkill -{name.removeprefix('SIG')} $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(isolation.sys, "executable", str(script))
    message = "stopped after 100 s" if name == "SIGXCPU" else f"died of {name}"
    with pytest.raises(IsolationError, match=message):
        run_isolated([], LIMITS)
    assert hasattr(signal, name)


def test_no_python_of_cases(folder, capfd):
    Path("reference.py").write_text("open('ran', 'w').close()\ndef reference(inputs):\n    return {'y': inputs['y']}\n")
    Path("case.toml").write_text(CASE.format(name="hello", expect='reference = "reference.py"'))
    assert run(["run", "case.toml", "--isolate"]) == 2
    assert "expect.reference: is Python" in capfd.readouterr().err
    assert not Path("ran").exists()
    assert run(["run", "case.toml"]) == 0
    assert Path("ran").exists()


def test_each_case_has_its_own_process(folder, capfd):
    for name, text in {"good": "y", "bad": "y + 1", "wrong": "y +"}.items():
        Path(f"{name}.toml").write_text(CASE.format(name="hello", expect=f'outputs.y.expression = "{text}"'))
    Path("slow.toml").write_text(CASE.format(name="endless", expect='outputs.y.expression = "y"'))
    assert run(["test", ".", "--isolate", "--max-seconds", "3", "--json", "results.json"]) == 4
    cases = {case["title"]: case for case in json.loads(Path("results.json").read_text())["cases"]}
    statuses = {Path(title).stem: case["status"] for title, case in cases.items()}
    assert statuses == {"good": "passed", "bad": "failed", "wrong": "error", "slow": "killed"}
    assert "4 of 4 differ" in cases["bad"]["message"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-seconds", "0", "--max-seconds must be more than 0"),
        ("--max-seconds", "nan", "--max-seconds must be more than 0"),
        ("--max-seconds", "inf", "--max-seconds must be more than 0"),
        ("--max-memory", "1 MiB", "memory must be 268435456 to"),
        ("--max-memory", "much", "must be a size such as"),
    ],
)
def test_wrong_limits(folder, capsys, option, value, message):
    assert run(["run", *ENDLESS, "--isolate", option, value]) == 2
    assert message in capsys.readouterr().err
