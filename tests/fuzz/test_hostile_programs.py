"""Hostile programs, run: a short part of what ``make fuzz`` does, and that its judges see what they are to see."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.hostile import minimize, rows, worker
from tests.fuzz.hostile.hunt import KINDS, made
from tests.fuzz.hostile.pool import Child, Finding, Tally
from tests.fuzz.hostile.program import Launch, Program, read
from tests.fuzz.hostile.worker import Outcome, Step
from tests.fuzz.hostile.world import SECRET, World

PROGRAMS = 10  # of each kind
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
STORE = HEAD + ".visible .entry k(.param .u64 p) { .reg .b64 %d; ld.param.u64 %d, [p]; st.global.u64 [%d], %d; ret; }\n"
FOREVER = HEAD + ".visible .entry k() { .reg .pred %p; setp.eq.u32 %p, 0, 0; L: @%p bra L; ret; }\n"


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    one = Child()
    yield one
    one.close()


@pytest.fixture
def world() -> Iterator[World]:
    one = World()
    yield one
    one.close()


@pytest.mark.parametrize("kind", list(KINDS))
def test_slice(kind: str, child: Child) -> None:
    tally = Tally()
    found = [child.run(made(kind, number), tally) for number in range(PROGRAMS)]
    bad = [one for one in found if one is not None and one.kind != "late"]
    assert not bad, "\n".join(f"{one.kind}: {one.details}\n{one.program.written()}" for one in bad)
    assert tally.launches >= 4
    assert tally.outcomes["launch: ended"] >= 1


def test_every_opcode_of_memory_is_drawn() -> None:
    rng = random.Random(0)
    drawn = {rows.picked(rng).opcode for _ in range(20_000)}
    assert drawn >= {forms[0].opcode for forms in rows.choices()[0]}


# ---------------------------------------------------------------- the judges


def outcomes(program: Program) -> list[Outcome]:
    found: list[Outcome] = []
    worker.run(program, lambda report: found.append(report) if isinstance(report, Outcome) else None)
    return found


@pytest.mark.parametrize(("where", "result"), [("out", "ended"), ("out.end-8", "ended"), ("out.end", "illegal address"),
                                               ("out+4", "misaligned address"), ("host", "illegal address")])  # fmt: skip
def test_places(where: str, result: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "limit_cpu", lambda seconds: None)
    compiled, launched = outcomes(Program(STORE, (Launch("k", block=(1, 1, 1), arguments=(where,)),)))
    assert (compiled.result, launched.result, launched.bad) == ("compiled", result, None)


def test_a_write_to_the_host_is_seen(world: World) -> None:
    assert world.damage("") == []
    world.canaries[0].memory[5] ^= 1
    assert world.damage("") == ["host memory was written"]


def test_a_read_of_the_host_is_seen(world: World) -> None:
    world.fill(())
    world.out.array[8:16] = np.frombuffer(SECRET, np.uint8)
    assert world.damage("") == ["host memory was read"]
    world.fill(())
    assert world.damage(f"x{SECRET.decode()}") == ["host memory was read"]


def test_foreign_exceptions_are_seen() -> None:
    def fail() -> str:
        raise KeyError("x")

    bad = worker.judged(Step("launch", 0), fail).bad
    assert bad is not None and bad[0] == "traceback" and "KeyError" in bad[1]


def test_the_death_of_a_child_is_seen(child: Child) -> None:
    def kill() -> None:
        assert child.process is not None
        os.kill(child.process.pid or 0, signal.SIGILL)

    assert child.run(Program(STORE, (Launch("k"),)), Tally()) is None
    timer = threading.Timer(0.1, kill)
    timer.start()
    found = child.run(Program(FOREVER, (Launch("k"),) * 100), Tally())
    timer.cancel()
    assert found is not None and found.kind == f"signal {signal.SIGILL.value}"
    assert child.run(Program(STORE, (Launch("k"),)), Tally()) is None


# ---------------------------------------------------------------- files


def test_a_program_survives_its_file(tmp_path: Path) -> None:
    program = made("rows", 3)
    path = tmp_path / "program.ptx"
    path.write_text(program.written())
    assert read(path) == program


def test_the_smallest_that_fails() -> None:
    assert minimize.smaller(list(range(100)), lambda some: 17 in some and 58 in some) == [17, 58]


def test_launches_and_lines_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Child, program: Program, tally: Tally) -> Finding | None:
        bad = "bad" in program.text and any(launch.kernel == "k" for launch in program.launches)
        return Finding("escape", "", program) if bad else None

    monkeypatch.setattr(Child, "run", run)
    program = Program("\n".join(["a", "bad", *"cdefgh"]), (Launch("i"), Launch("k"), Launch("k")))
    assert minimize.minimized(Finding("escape", "", program, Step("launch", 2))) == Program("bad", (Launch("k"),))
