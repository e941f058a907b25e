"""``ptxemu test`` as a regression suite: which cases run, in which processes, and what is told of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ptxemu.cli import run
from tests.support import api_kernels as ptx

CASE = """
{keys}
ptx = "saxpy.ptx"
grid = 1
block = 32
args = {{ n = 4, a = 2, x = {{ values = [1, 2, 3, 4], dtype = "f32" }}, y = {{ zeros = {{ dtype = "f32", shape = 4 }} }} }}
[expect.outputs.y]
expression = "{expression}"
"""
KILL = "import os\nos.kill(os.getpid(), 9)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs and a cache of its own, as the current one."""
    for name in ("SAXPY", "HELLO", "ENDLESS", "UNSUPPORTED"):
        (tmp_path / f"{name.lower()}.ptx").write_text(getattr(ptx, name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    return tmp_path


def write(name: str, good: bool = True, keys: str = "") -> None:
    Path(f"{name}.toml").write_text(CASE.format(keys=keys, expression="a * x" if good else "a * x + 1"))


def write_unsupported(name: str, keys: str = "") -> None:
    text = f'{keys}\nptx = "unsupported.ptx"\ngrid = 1\nblock = 32\nargs = {{ out = 0 }}\n[expect]\nreference = "none.py"\n'
    Path(f"{name}.toml").write_text(text)


def write_killer(name: str) -> None:
    Path("kill.py").write_text(KILL)
    Path(f"{name}.toml").write_text('ptx = "hello.ptx"\ngrid = 1\nblock = 1\n[expect]\nreference = "kill.py"\n')


def statuses(*arguments: str, code: int) -> dict[str, str]:
    """What became of the cases that ran, by name; the command must end with the code."""
    Path("results.json").unlink(missing_ok=True)
    assert run(["test", ".", "--json", "results.json", *arguments]) == code
    return {Path(case["path"]).stem: case["status"] for case in json.loads(Path("results.json").read_text())["cases"]}


def listed(capsys, *arguments: str) -> list[str]:
    capsys.readouterr()
    assert run(["test", ".", "--list", *arguments]) == 0
    return capsys.readouterr().out.split()


def test_every_case_is_told_on_a_line_with_its_path(capsys) -> None:
    write("good", keys='title = "a title"')
    write("bad", good=False)
    assert run(["test", "."]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("failed ") and lines[0].endswith(" s  bad.toml")
    assert lines[1].startswith("passed ") and lines[1].endswith(" s  good.toml  a title")
    assert lines[3] == "bad.toml: failed"
    assert lines[-1].startswith("1 of 2 passed in ")


def test_cases_are_chosen(capsys) -> None:
    write("one", keys='tags = ["quick", "math"]')
    write("two", keys='title = "The One that is two"\ntags = ["slow"]')
    write("three")
    assert listed(capsys) == ["one.toml", "three.toml", "two.toml"]
    assert listed(capsys, "-k", "ONE") == ["one.toml", "two.toml"]
    assert listed(capsys, "-k", "one", "-k", "not two") == ["one.toml"]
    assert listed(capsys, "--tag", "quick", "--tag", "slow") == ["one.toml", "two.toml"]
    assert listed(capsys, "--tag", "slow", "-k", "o") == ["two.toml"]
    assert run(["test", ".", "-k", "four"]) == 2
    assert capsys.readouterr().err == "ptxemu: error: none of 3 cases is chosen\n"


def test_the_last_that_failed(capsys) -> None:
    write("a", good=False)
    write("b")
    write("c", good=False)
    assert listed(capsys, "--last-failed") == ["a.toml", "b.toml", "c.toml"]
    statuses(code=1)
    assert listed(capsys, "--last-failed") == ["a.toml", "c.toml"]
    write("a")
    assert statuses("--last-failed", "-k", "a.toml", code=0) == {"a": "passed"}
    assert listed(capsys, "--last-failed") == ["c.toml"]


def test_a_damaged_list_of_failures_is_none(folder: Path, capsys) -> None:
    write("a")
    statuses(code=0)
    (file,) = (folder / "cache").glob("suite-*.json")
    for text in ("[", '{"a": 1}', "[1, null]", "[" * 100_000):
        file.write_text(text)
        assert listed(capsys, "--last-failed") == ["a.toml"]


def test_stopping_at_the_first_failure(capsys) -> None:
    for name, good in (("a", True), ("b", False), ("c", True)):
        write(name, good)
    assert statuses("-x", code=1) == {"a": "passed", "b": "failed"}
    assert "1 of 2 passed, 1 did not run in " in capsys.readouterr().out
    assert statuses("-x", "--isolate", code=1) == {"a": "passed", "b": "failed"}


def test_what_cases_expect_of_themselves(capsys) -> None:
    write("skipped", good=False, keys='skip = "needs a week"')
    write("wrong", good=False, keys='xfail = "known"')
    write("repaired", keys='xfail = "known"')
    write_unsupported("absent", 'unsupported = "skip"')
    write_unsupported("demanded")
    found = {"skipped": "skipped", "wrong": "failed as expected", "repaired": "failed", "absent": "skipped"}
    assert statuses("--junit", "junit.xml", code=1) == {**found, "demanded": "unsupported"}
    out = capsys.readouterr().out
    assert "passed, but was expected to fail: known" in out and "needs a week" in out
    assert "0 of 5 passed, 2 skipped, 1 failed as expected in " in out
    suite = ElementTree.parse("junit.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "1", "3"]
    tags = {Path(case.get("file", "")).stem: case[0].tag for case in suite}
    assert tags == {"skipped": "skipped", "wrong": "skipped", "absent": "skipped", "repaired": "failure", "demanded": "error"}
    Path("demanded.toml").unlink()
    Path("repaired.toml").unlink()
    assert run(["test", "."]) == 0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("tags = [1]", "tags: must be a list of texts"),
        ("skip = true", "skip: must be a string"),
        ('xfail = ""', "xfail: must say why"),
        ('unsupported = "ignore"', "unsupported: must be one of error, skip, not 'ignore'"),
    ],
)
def test_wrong_keys(keys: str, message: str, capsys) -> None:
    write("case", keys=keys)
    assert run(["run", "case.toml"]) == 2
    assert message in capsys.readouterr().err


def test_reports_have_errors_and_output() -> None:
    write("close", good=False)
    hello = 'ptx = "hello.ptx"\ngrid = 1\nblock = 2\n[buffers.x]\nzeros = { dtype = "f32", shape = 1 }\n'
    Path("hello.toml").write_text(hello + '[expect.outputs.x]\nexpression = "x"\n')
    assert run(["test", ".", "--json", "results.json", "--junit", "junit.xml"]) == 1
    close, hello = json.loads(Path("results.json").read_text())["cases"]
    assert close["comparisons"][0]["message"].endswith("largest error 1")
    assert hello["output"] == "hello\nhello\n"
    assert [item.text for item in ElementTree.parse("junit.xml").iter("system-out")] == ["hello\nhello\n"]


def test_several_processes(capsys) -> None:
    for number in range(5):
        write(f"case{number}", good=number != 3)
    expected = {f"case{number}": "failed" if number == 3 else "passed" for number in range(5)}
    assert statuses("-j", "2", code=1) == expected
    assert statuses("-j", "2", "--isolate", code=1) == expected
    assert "4 of 5 passed in " in capsys.readouterr().out


def test_a_case_that_kills_its_process_does_not_stop_the_others(capsys) -> None:
    write("a")
    write_killer("b")
    write("c")
    assert statuses("-j", "2", code=4) == {"a": "passed", "b": "killed", "c": "passed"}
    assert "the process that ran it died of SIGKILL" in capsys.readouterr().out


def test_a_case_has_a_limit_with_all_that_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    """Also outside of launches, which have limits of their own."""
    write_killer("a")
    Path("kill.py").write_text("import time\ntime.sleep(1000)\n")
    started = time.monotonic()
    assert statuses("--max-case-seconds", "1", code=4) == {"a": "killed"}
    assert "stopped after 1 s, the limit of a case (--max-case-seconds)" in capsys.readouterr().out
    assert time.monotonic() - started < 900
    assert run(["test", ".", "--max-case-seconds", "1", "--isolate"]) == 2


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_reports_are_whole_when_interrupted(jobs: str) -> None:
    write("a")
    Path("b.toml").write_text('ptx = "endless.ptx"\ngrid = 1\nblock = 1\n[buffers.x]\nzeros = { dtype = "u8", shape = 1 }\n'
                              '[expect.outputs.x]\nexpression = "x"\n')  # fmt: skip
    command = [sys.executable, "-m", "ptxemu", "test", ".", "-j", jobs, "--json", "results.json", "--junit", "junit.xml"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline().startswith("passed ")
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (child.returncode, err.strip()) == (130, "interrupted")
    assert "1 of 1 passed, 1 did not run in " in out
    assert [case["status"] for case in json.loads(Path("results.json").read_text())["cases"]] == ["passed"]
    assert ElementTree.parse("junit.xml").getroot()[0].get("tests") == "1"
