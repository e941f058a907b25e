"""Times of stages, and bars on terminals."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptxemu
from ptxemu.cli import progress, run
from ptxemu.process.stages import COMPILE, LOAD, PARSE, RUN, listening, reached, stage
from tests.support.places import ROOT

SPIN = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry spin(.param .u32 n)
{
  .reg .u32 %i, %n; .reg .pred %p;
  ld.param.u32 %n, [n];
  mov.u32 %i, %clock;
L:
  add.u32 %i, %i, 1;
  mad.lo.u32 %i, %i, %i, 7;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra L;
  setp.eq.u32 %p, %i, 12345;
  @%p trap;
  ret;
}
"""
LAUNCH = ["--block", "32", "--arg", "n=200000", "--workers", "1"]
BARS_AT_ONCE = "import sys; from ptxemu.cli import main, progress; progress.PATIENCE = 0; main(sys.argv[1:])"


class Log:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def begin(self, stage: str) -> None:
        self.told.append(stage)

    def reached(self, done: int, total: int) -> None:
        self.told.append((done, total))

    def end(self) -> None:
        self.told.append("end")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "spin.ptx").write_text(SPIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_time_of_a_stage_is_without_those_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    with progress.watched() as stages:  # at 0
        with stage(LOAD), stage(PARSE):  # from 1 to 15, and from 3 to 7
            pass
        with stage(LOAD):  # 31 to 63
            pass
    assert {name: seconds for name, seconds in stages.seconds.items() if seconds} == {LOAD: 2.0 + 8.0 + 32.0, PARSE: 4.0}


def test_stages_end_with_errors_and_nobody_need_listen() -> None:
    log = Log()
    with pytest.raises(ValueError, match="no"), listening(log), stage(COMPILE):
        raise ValueError("no")
    with stage(RUN):
        reached(1, 2)
    assert log.told == [COMPILE, "end"]


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_launches_tell_how_many_blocks_are_done(engine: str) -> None:
    device = ptxemu.Device(engine=engine, workers=1)
    count = 3 * 10**6 if engine == "jit" else 400
    log = Log()
    with listening(log):
        ptxemu.loads(SPIN, device=device)["spin"][40, 32](count)
    told = [item for item in log.told if isinstance(item, tuple)]
    assert told and told == sorted(told) and all(total == 40 and done <= 40 for done, total in told)
    assert any(done for done, _ in told)


def test_stages_of_a_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    command = ["run", "spin.ptx", "--grid", "1", *LAUNCH, "-v"]
    names = []
    for _ in range(2):
        assert run(command) == 0
        names.append(re.findall(r"(\w+) [\d.e-]+ m?s", capsys.readouterr().out.split("\n")[1]))
    assert names == [["load", "parse", "check", "inputs", "compile", "run"], ["load", "inputs", "compile", "run"]]


def on_a_terminal(*arguments: str) -> str:
    """What a command writes to a terminal, where bars show at once."""
    inner, outer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    done = subprocess.Popen([sys.executable, "-c", BARS_AT_ONCE, *arguments], stdout=outer, stderr=outer, env=environment)
    os.close(outer)
    shown = b""
    while chunk := _read(inner):
        shown += chunk
    os.close(inner)
    assert done.wait(60) == 0, shown
    return shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux ends what a terminal wrote
        return b""


def test_bars_on_terminals() -> None:
    shown = on_a_terminal("run", "spin.ptx", "--grid", "2000", *LAUNCH)
    found = re.findall(r"run .*?(\d+) of 2000 blocks, ([\d.e+]+)/s, \d:\d\d:\d\d left", shown)
    assert found and all(int(done) <= 2000 for done, _ in found)
    assert re.search(r"spin: 2000 blocks in [\d.]+ m?s", shown)
    assert shown.rindex("\x1b[2K") < shown.rindex("spin: 2000"), "the bar is gone before the results come"


def test_bars_of_suites_and_compiles() -> None:
    shown = on_a_terminal("test", str(ROOT / "samples" / "saxpy"))
    assert re.search(r"cases .*\d+%", shown) and "1 passed" in shown, shown
    # A stage that nobody counts shows how long it takes.
    Path("long.ptx").write_text(SPIN.replace("L:\n", "L:\n" + "  mad.lo.u32 %i, %i, %n, %i;\n" * 3_000))
    shown = on_a_terminal("compile", "long.ptx", "--emit", "obj", "-o", "long.o")
    assert re.search(r"compile .*\d:\d\d:\d\d", shown), shown


def test_no_bars_elsewhere() -> None:
    command = [sys.executable, "-c", BARS_AT_ONCE, "run", "spin.ptx", "--grid", "2", *LAUNCH]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "" and "\x1b" not in done.stdout
