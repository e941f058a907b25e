"""``ptxemu test --dask``, with a stand-in for Dask. tests/clients/suite_on_dask.py runs it on processes, and kills one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
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

    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {"one": {}, "two": {}}}

    def scatter(self, memory: dict[str, Any], broadcast: bool) -> dict[str, Any]:
        assert broadcast
        return memory

    def submit(self, function: Callable[..., Any], *arguments: Any, pure: bool) -> SimpleNamespace:
        assert not pure
        error = KilledWorker("four workers") if arguments[1].name == "lost.toml" else None
        return SimpleNamespace(result=lambda: _raise(error) if error else function(*arguments))


def _raise(error: Exception) -> None:
    raise error


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(ptx.SAXPY)
    for name, expression in (("good", "a * x"), ("bad", "a * x + 1"), ("lost", "x")):
        (tmp_path / f"{name}.toml").write_text(CASE.format(expression=expression))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    worker = SimpleNamespace(address="tcp://worker:1")
    stand_in = SimpleNamespace(Client=Client, as_completed=lambda futures: reversed(futures), get_worker=lambda: worker)
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


def test_one_launch_on_several_workers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "good.toml").read_text().replace("grid = 1", "grid = 2").replace("block = 32", "block = 2")
    (folder / "good.toml").write_text(f"{text}\n[save]\ny = 'y.npy'\n")
    assert run(["run", "good.toml", "--dask", "tcp://there:1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(part["first"], part["end"], part["worker"]) for part in found["parts"]] == [
        (0, 1, "tcp://worker:1"),
        (1, 2, "tcp://worker:1"),
    ]
    assert found["passed"] and np.load("y.npy").tolist() == [2, 2, 2, 2]
    assert run(["run", "good.toml", "--dask", "tcp://there:1"]) == 0
    assert "launch 0, blocks 1 to 1 on tcp://worker:1: " in capsys.readouterr().out
    assert Client.log[-2:] == ["2 cancelled", "client closed"]


PAINT = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry paint(.param .u64 s)
{
  .reg .u64 %s; .reg .u32 %r<4>;
  ld.param.u64 %s, [s]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2;
  suld.b.2d.b32.trap %r2, [%s, {%r3, %r1}]; mad.lo.u32 %r2, %r2, 3, %r1;
  sust.b.2d.b32.trap [%s, {%r3, PLACE}], %r2;
  ret;
}
"""
SURFACE = """
ptx = "paint.ptx"
[surfaces.s]
format = "R32_UINT"
layout = "block_linear"
data = { arange = { dtype = "u32", shape = [4, 8] } }
[save]
s = "s.npy"
[[launch]]
grid = 4
block = 8
args = { s = "s" }
[[launch]]
grid = 3
block = 8
args = { s = "s" }
"""


def test_surfaces_on_several_workers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second launch begins with the texels that the first has left; a program that is edited is read anew."""
    (folder / "paint.ptx").write_text(PAINT.replace("PLACE", "%r1"))
    (folder / "surface.toml").write_text(SURFACE)
    assert run(["run", "surface.toml", "--dask", "tcp://there:1"]) == 0
    wanted, rows = np.arange(32).reshape(4, 8), np.arange(4)[:, None]
    wanted = wanted * 3 + rows
    wanted[:3] = wanted[:3] * 3 + rows[:3]
    assert np.array_equal(np.load("s.npy"), wanted)
    (folder / "paint.ptx").write_text(PAINT.replace("PLACE", "2"))
    assert run(["run", "surface.toml", "--dask", "tcp://there:1"]) == 1
    assert "block (1,0,0) writes texel x=0, y=2 of s, which block (2,0,0) reads, too" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["lost.toml"], 2, "a part of launch 0 is lost: KilledWorker: four workers"),
        (["good.toml", "--engine", "interpreter"], 2, "needs --engine jit"),
        (["k.ptx", "good.toml"], 2, "--dask runs the program that the case names"),
        (["k.ptx"], 2, "describe the launch in a .toml file"),
    ],
)
def test_launches_that_cannot_be_spread(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", *arguments, "--dask", "tcp://there:1"]) == code
    assert message in capsys.readouterr().err
