"""``ptxemu test --dask``, with a stand-in for Dask. tests/clients/suite_on_dask.py runs it on processes, and kills one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptxemu.cli import run
from tests.support import api_kernels as ptx

CASE = """
ptx = "k.ptx"
grid = 1
block = 32
[args]
n = 4
a = 2
x = {{ full = {{ dtype = "f32", shape = 4, value = 1 }} }}
y = {{ zeros = {{ dtype = "f32", shape = 4 }} }}
[expect.outputs.y]
expression = "{expression}"
"""
OPTIONS = ("--engine", "interpreter", "--json", "results.json")


class KilledWorker(Exception):
    """As Dask says that a task has cost too many workers."""


class Client:
    """Runs what it is given at once; of cases called ``lost`` nothing comes back."""

    log: list[str]

    def __init__(self, scheduler: object, timeout: int | None = None) -> None:
        if scheduler == "tcp://nowhere:1":
            raise OSError("Timed out trying to connect to tcp://nowhere:1")
        Client.log = [f"client of {scheduler}"]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.log.append("client closed")

    def map(self, function: Callable[..., Any], *items: Iterable[Any], key: list[str], pure: bool) -> list[SimpleNamespace]:
        assert not pure, "results of cases are not to be kept"
        return [self._future(name, function, arguments) for name, arguments in zip(key, zip(*items, strict=True), strict=True)]

    def _future(self, key: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> SimpleNamespace:
        lost = "lost" in arguments[0].name
        self.log.append(str(arguments[0]))
        error = KilledWorker("four workers") if lost else None
        return SimpleNamespace(key=key, exception=lambda: error, result=lambda: function(*arguments))

    def cancel(self, futures: list[SimpleNamespace], force: bool) -> None:
        self.log.append(f"{len(futures)} cancelled")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(ptx.SAXPY)
    for name, expression in (("good", "a * x"), ("bad", "a * x + 1"), ("lost", "x")):
        (tmp_path / f"{name}.toml").write_text(CASE.format(expression=expression))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    stand_in = SimpleNamespace(Client=Client, as_completed=lambda futures: reversed(futures))
    monkeypatch.setitem(sys.modules, "distributed", stand_in)  # type: ignore[arg-type]
    return tmp_path


def test_cases_run_on_workers_and_are_told_as_they_come(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["test", ".", "--dask", "tcp://there:1", *OPTIONS]) == 4
    cases = json.loads(Path("results.json").read_text())["cases"]
    assert [(case["path"], case["status"]) for case in cases] == [
        ("lost.toml", "killed"), ("good.toml", "passed"), ("bad.toml", "failed"),
    ]  # fmt: skip
    assert "KilledWorker: four workers" in capsys.readouterr().out
    paths = [str(folder / name) for name in ("bad.toml", "good.toml", "lost.toml")]
    assert Client.log == ["client of tcp://there:1", *paths, "3 cancelled", "client closed"]


def test_a_suite_that_stops_cancels_the_rest() -> None:
    assert run(["test", ".", "--dask", "tcp://there:1", "-x", *OPTIONS]) == 4
    assert len(json.loads(Path("results.json").read_text())["cases"]) == 1
    assert Client.log[-2:] == ["3 cancelled", "client closed"]


def test_results_are_saved_in_the_folder_of_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a cluster are in folders of their own."""
    with Path("good.toml").open("a") as file:
        file.write('[save]\ny = "y.npy"\n')
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    future = Client._future

    def at_a_worker(self: Client, *arguments: Any) -> SimpleNamespace:
        monkeypatch.chdir(elsewhere)
        return future(self, *arguments)

    monkeypatch.setattr(Client, "_future", at_a_worker)
    assert run(["test", "good.toml", "--dask", "tcp://there:1", "--output-dir", "out", "--engine", "interpreter"]) == 0
    assert (folder / "out" / "y.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dask", "tcp://nowhere:1"], "--dask tcp://nowhere:1: Timed out trying to connect"),
        (["--dask", "local", "--isolate"], "--dask runs cases on workers that keep on"),
    ],
)
def test_what_cannot_be(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["test", ".", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_without_dask_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)  # type: ignore[arg-type]
    assert run(["test", ".", "--dask", "local"]) == 2
    assert capsys.readouterr().err == "ptxemu: error: --dask needs Dask distributed: pip install 'ptxemu[dask]'\n"
