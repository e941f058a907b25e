"""Variables of CUDA C++ at the terminal, by the DWARF that nvcc writes; what is expected follows from the source."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxemu.cli import run
from tests.support.places import DEBUGGED

START = "{f32:1.5,f32:2.5,u16:3,bytes:616263,u64:0,u32:5}"
ARGUMENTS = ["out=zeros:f32:32", "in=arange:u32:32", "n=5", f"start={START}", "col=7"]
Session = Callable[..., list[str]]


@pytest.fixture
def session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Session:
    """What commands print in a session with ``kern`` of locals.cu."""

    def hold(*commands: str, program: Path = DEBUGGED / "locals.ptx") -> list[str]:
        script = tmp_path / "commands"
        script.write_text("\n".join(commands))
        given = [word for text in ARGUMENTS for word in ("--arg", text)]
        shape = ["--entry", "kern", "--grid", "1", "--block", "32"]
        assert run(["debug", str(program), *shape, *given, "-x", str(script), "--batch"]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out.splitlines()

    return hold


def answers(out: list[str]) -> list[str]:
    """What is printed behind the first stop."""
    first = next(index for index, line in enumerate(out) if line.startswith("breakpoint") and ", step " in line)
    return out[first + 3 :]


AT_TILE = ("break locals.cu:32 if threadIdx.x == 5", "run")


def test_locals_by_name_and_type(session: Session) -> None:
    found = dict(line.split(" = ", 1) for line in answers(session(*AT_TILE, "info locals")))
    assert found.pop("p").startswith('{x = 6.5, y = 2.5, in = {s = -5, c = "abc"}, next = 0x')
    assert found == {
        "vals": "{{5, 6}, {7, 8}, {9, 10}, {11, 12}}", "i": "5", "scale": "2.5", "odd": "true", "letter": "102 'f'",
        "big": "32", "r": "<optimized out>", "tile": "{0.0 <repeats 32 times>}",
    }  # fmt: skip


def test_arguments(session: Session) -> None:
    found = dict(line.split(" = ", 1) for line in answers(session(*AT_TILE, "info args")))
    assert found.pop("out").startswith("(float *) 0x") and found.pop("in").startswith("(const int *) 0x")
    start = '{x = 1.5, y = 2.5, in = {s = 3, c = "abc"}, next = 0x0, low = 5, high = 0}'
    assert found == {"n": "5", "start": start, "col": "GREEN"}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("p.in.s", "-5"), ("p.next->next->x", "6.5"), ("p.next->x * 2 + i", "18.0"), ("vals[1]", "{7, 8}"),
        ("vals[i - 4][1] + 1", "9"), ("p.high", "-5"), ("p.low", "5"), ("*in@4", "{0, 1, 2, 3}"), ("in[3]", "3"),
        ("in[2:5]", "{2, 3, 4}"), ("*in + 1", "1"), ("vals.sum()", "68"), ("counted::counter", "3"), ("counter", "3"),
        ("table[2]", "3.0"), ("tile[31]", "0.0"), ("(int)i", None), ("start.next == 0", "True"), ("big >> 1", "16"),
        ("p.in.c", '"abc"'), ("p.in.c[1]", "98 'b'"), ("col == 7 && !odd", "False"), ("&p == p.next", "True"), ("-i", "-5"),
        ("i ** 2", "25"), ("x.y", "x.y: '.y' is not available in expressions, only in a reference"),
        ("p.z", "Point has no member z"), ("i.x", "int has no member x"), ("*i", None),
        ("i[0]", "i[0]: int has no elements"), ("vals[", "vals[: a ] is missing"), ("p + 1", "Point is not a number"),
        ("%r1 + i", "10"), ("in[1 << 50]", "1 << 50 is not an index"), ("threadIdx.x + i", "10"), ("r", "optimized out"),
        ("start.next->x", "<0x0 and the 4 bytes from there do not lie in one allocation>"),
    ],
)  # fmt: skip
def test_expressions(session: Session, expression: str, expected: str | None) -> None:
    [answer] = answers(session(*AT_TILE, f"print {expression}"))
    assert answer == expected if expected is not None else "Error" in answer or "no pointer" in answer


def test_types(session: Session) -> None:
    out = answers(session(*AT_TILE, "ptype p", "whatis vals", "whatis in", "whatis n", "ptype 5"))
    assert out[0] == "Point {" and "    unsigned int low : 3;" in out and out[7] == "}  // 32 bytes"
    assert out[-4:] == ["int [4][2]", "const int *", "word", "'5' is no variable of CUDA C++ here"]


def test_variables_of_a_function_and_its_caller(session: Session) -> None:
    looks = ("info locals", "info args", "up", "print i", "print p.x", "info registers %fd1", "frame 5", "down", "print i")
    out = answers(session("break locals.cu:12 if i == 2 && threadIdx.x == 4", "run", *looks))
    i, total = next(line for line in out if line.startswith("i = ")), next(line for line in out if line.startswith("sum = "))
    assert (i, total) == ("i = 2", "sum = 9.5")  # k and x + k, with x = 5.5, k = 2
    assert any(line.startswith('p = {x = 5.5, y = 2.5, in = {s = -4, c = "abc"}') for line in out) and "k = 2.0" in out
    called = out.index(next(line for line in out if line.startswith("#1 kern at ")))
    assert out[called + 3 : called + 6] == ["4", "5.5", "%fd1         .f64  2.5 (0x4004000000000000)"]
    assert "the thread has 2 frames: 0 to 1" in out and out[-1] == "2"


def test_a_function_stops_behind_its_arguments(session: Session) -> None:
    out = answers(session("break helper if threadIdx.x == 7", "run", "print p.x", "print k", "print k * threadIdx.x"))
    assert out == ["8.5", "2.0", "14.0"]


def test_variables_are_watched(session: Session) -> None:
    out = session("break kern", "run", "watch counter", "watch tile[3]", "continue", "continue", "watch i")
    assert any(": counter: 0x00000003 -> 0x00000004, kern at" in line for line in out)
    assert any(": tile[3]: 0x00000000 -> 0x40400000, kern at" in line for line in out)


def test_locals_are_watched_in_their_thread(session: Session) -> None:
    commands = (
        "break locals.cu:24 if threadIdx.x == 3",
        "run",
        "delete",
        "watch p.x",
        "awatch vals[1][0]",
        "c",
        "c",
        "c",
        "print p.x",
    )
    out = answers(session(*commands))
    hits = [line.partition(", kern at")[0] for line in out if line.startswith("watchpoint") and ", kern at" in line]
    assert hits == ["watchpoint 2: p.x: 0x00000000 -> 0x3fc00000", "watchpoint 2: p.x: 0x3fc00000 -> 0x40900000"]  # 1.5, 4.5
    assert not any("thread (4,0,0)" in line for line in out)


def test_a_register_has_no_address(session: Session) -> None:
    out = answers(session(*AT_TILE, "watch i", "print &i", "x/2fw tile", "x/2fw p", "print &vals == &vals[0][0]"))
    assert out[:2] == ["i is in a register, which has no address", "what is in a register has no address"]
    assert out[2].split("\t")[1:] == ["0.0", "0.0"] and out[3].split("\t")[1:] == ["6.5", "2.5"] and out[4] == "True"


def test_variables_go_back_in_time(session: Session) -> None:
    out = session(*AT_TILE, "print big", "reverse-step", "print big", "reverse-step", "print letter", "goto 1", "info locals")
    assert [line for line in out if line[0].isdigit() and "\t" not in line] == ["32", "0", "0 '\\000'"]
    assert out[-1] == "no locals"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_cuda_is_compiled_with_variables(session: Session) -> None:
    program = DEBUGGED / "locals.cu"
    assert answers(session(*AT_TILE, "print p.next->x", program=program)) == ["6.5"]
