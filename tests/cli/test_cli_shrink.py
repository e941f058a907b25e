"""``ptxemu shrink`` and ``ptxemu diff``: the smallest case that fails, and two programs on the same inputs."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxemu.case.shrinking import Shrinker
from ptxemu.case.toml_text import toml_text
from ptxemu.cli import run
from tests.support import api_kernels as ptx

WRONG_AT = 5
# y[i] = a * x[i] + y[i], but 1 more in one element.
WRONG = ptx.SAXPY.replace(".reg .pred %p;", ".reg .pred %p, %q;").replace(
    "  st.global.f32", f"  setp.eq.u32 %q, %r1, {WRONG_AT};\n  @%q add.f32 %f3, %f3, 0f3f800000;\n  st.global.f32"
)
CASE = """
title = "saxpy"
ptx = "wrong.ptx"
grid = 4
block = [32, 1]
[args]
n = 100
a = 2.0
x = { arange = { dtype = "f32", shape = 100 } }
y = { zeros = { dtype = "f32", shape = 100 } }
"""
COMPUTED = '[expect.outputs.y]\nexpression = "np.float32(2) * x + y"\n'
OPTIONS = ("--engine", "interpreter")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wrong.ptx").write_text(WRONG)
    (tmp_path / "right.ptx").write_text(ptx.SAXPY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(more: str = COMPUTED, case: str = CASE) -> None:
    Path("case.toml").write_text(case + more)


def shrunk(*arguments: str) -> dict[str, Any]:
    """The case that is made of case.toml, which must fail still."""
    assert run(["shrink", "case.toml", *OPTIONS, *arguments]) == 0
    assert run(["test", "shrunk", *OPTIONS]) == 1
    return tomllib.loads(Path("shrunk/case.toml").read_text())


def test_sizes_shape_and_contents_shrink_together(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    found = shrunk()
    out = capsys.readouterr().out
    assert out.startswith("case.toml: y: 1 of 100 differ; first at [5]: 11.0, expected 10.0, largest error 1\n")
    assert "  n, x, y: 7 -> 6\n" in out and "x: zero at 5 of 6 places" in out
    assert found["args"]["n"] == 6 == found["args"]["x"]["zeros"]["shape"][0] == found["args"]["y"]["zeros"]["shape"]
    block = found["block"][0] if isinstance(found["block"], list) else found["block"]
    assert found["grid"] * block >= 6, "each element has its thread: with fewer, other elements were wrong as well"
    assert "y: 1 of 6 differ; first at [5]: 1.0, expected 0.0" in out
    assert (Path("shrunk/wrong.ptx").read_text(), found["title"]) == (WRONG, "saxpy, shrunk")


def test_the_same_steps_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    outs = []
    for name in ("one", "two"):
        assert run(["shrink", "case.toml", *OPTIONS, "-o", name]) == 0
        outs.append(capsys.readouterr().out.replace(name, ""))
    assert outs[0] == outs[1] and Path("one/case.toml").read_text() == Path("two/case.toml").read_text()


def test_a_fault_stays_the_fault_that_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    write("", CASE.replace('x = { arange = { dtype = "f32", shape = 100 } }', "x = 0").replace("wrong", "right"))
    assert run(["shrink", "case.toml", *OPTIONS]) == 0
    found = tomllib.loads(Path("shrunk/case.toml").read_text())
    capsys.readouterr()
    assert run(["run", "shrunk", *OPTIONS]) == 1
    err = capsys.readouterr().err
    line = ptx.SAXPY[: ptx.SAXPY.index("ld.global.f32 %f2")].count("\n") + 1
    assert f"right.ptx:{line}" in err and "null pointer" in err
    assert (found["grid"], found["args"]["n"]) == (1, 1)


def test_another_program_may_say_what_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("want.npy", np.zeros(100, np.float32))
    np.save("x.npy", np.arange(100, dtype=np.float32) + 1)
    write('[expect.outputs.y]\nnpy = "want.npy"\n', CASE.replace('arange = { dtype = "f32", shape = 100 }', 'npy = "x.npy"'))
    assert run(["shrink", "case.toml", *OPTIONS]) == 2
    assert "the results that y must have are fixed" in capsys.readouterr().err
    found = shrunk("--against", "right.ptx")
    assert found["args"]["n"] == 6
    assert found["expect"]["outputs"]["y"] == {"zeros": {"dtype": "float32", "shape": [6]}}
    assert run(["shrink", "case.toml", *OPTIONS, "--against", "wrong.ptx", "-o", "none"]) == 2
    assert "case.toml: does not fail where the other program does not" in capsys.readouterr().err


def test_files_of_a_case_come_along() -> None:
    np.save("x.npy", np.arange(100, dtype=np.float32) + 1)
    Path("sums.py").write_text("def reference(inputs):\n    return {'y': inputs['a'] * inputs['x'] + inputs['y']}\n")
    write(
        '[expect]\nreference = "sums.py"\n[[matrix]]\nn = [100, 3]\n',
        CASE.replace('arange = { dtype = "f32", shape = 100 }', 'npy = "x.npy"').replace("n = 100", 'n = "${n}"'),
    )
    assert run(["shrink", "case.toml[n=100]", *OPTIONS]) == 0
    for file in ("x.npy", "sums.py", "wrong.ptx", "case.toml"):
        Path(file).unlink()
    assert run(["test", "shrunk", *OPTIONS]) == 1
    assert "matrix" not in Path("shrunk/case.toml").read_text()


def test_what_cannot_shrink(capsys: pytest.CaptureFixture[str]) -> None:
    write(case=CASE.replace("wrong", "right"))
    assert run(["shrink", "case.toml", *OPTIONS]) == 2
    assert "case.toml: does not fail" in capsys.readouterr().err
    assert not Path("shrunk").exists()
    assert run(["shrink", "case.toml", "-o", "."]) == 2
    assert "exists already" in capsys.readouterr().err
    write()
    assert run(["shrink", "case.toml", *OPTIONS, "--runs", "1"]) == 0
    assert "1 cases tried" in capsys.readouterr().out


def test_sizes_that_divide_others_shrink_with_them() -> None:
    """An array of height x width, its length as an argument: the smallest that is wrong has three rows of two."""
    data = {
        "grid": 1,
        "block": 128,
        "args": {"width": 8, "height": 16, "count": 128, "x": {"zeros": {"dtype": "f32", "shape": [16, 8]}}},
    }

    def fails(candidate: dict[str, Any]) -> bool:
        args = candidate["args"]
        height, width = args["x"]["zeros"]["shape"]
        whole = (height, width, height * width) == (args["height"], args["width"], args["count"])
        return whole and height >= 3 and width >= 2

    found = Shrinker(data, fails, lambda *_: np.zeros(0), lambda _: None, in_proportion=True, limit=1000).shrink()
    assert found["args"] == {"width": 2, "height": 3, "count": 6, "x": {"zeros": {"dtype": "f32", "shape": [3, 2]}}}
    assert found["block"] == 6


def test_case_files_are_written_as_they_are_read() -> None:
    data = {
        "title": 'a "b"\\\n\x7f\u2028é',
        "yes": True,
        "numbers": [1, -(2**62), 0.5, 1e-30, float("inf")],
        "empty": {},
        "args": {"n.m": {"values": [[1, 2], [3, 4]], "dtype": "u32"}, "": {"a b": {}}},
        "launch": [{"grid": 1, "args": {"x": "y"}}, {"grid": [1, 2]}],
        "none": [],
    }
    assert tomllib.loads(toml_text(data)) == data


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert run(["shrink", "case.toml", *OPTIONS, "--runs", "3", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["case"], found["kind"], found["runs"]) == ("case.toml", "wrong results", 3) and "n, x, y: " in err
    assert found["message"].startswith("y: 1 of 100 differ") and found["shrunk"]["message"].startswith("y: 1 of ")
    assert Path(found["shrunk"]["case"]).is_file()
    assert run(["diff", "wrong.ptx", "right.ptx", "--case", "case.toml", *OPTIONS, "--json"]) == 1
    comparisons = {item["name"]: item for item in json.loads(capsys.readouterr().out)["comparisons"]}
    assert (comparisons["y"]["differing"], comparisons["x"]["differing"]) == (1, 0)


def test_programs_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert run(["diff", "wrong.ptx", "right.ptx", "--case", "case.toml", *OPTIONS]) == 1
    out = capsys.readouterr().out
    assert (
        "y: float32[100]: 1 of 100 differ; first at [5]: 11.0, right.ptx 10.0, largest error 1\n1 of 2 arrays are the same" in out
    )
    assert run(["diff", "wrong.ptx", "right.ptx", "--case", "case.toml", *OPTIONS, "--tolerance", "abs=1"]) == 0
    assert "2 of 2 arrays are the same" in capsys.readouterr().out
    Path("faulty.ptx").write_text(ptx.SAXPY.replace("ld.global.f32 %f2, [%rd4]", "ld.global.f32 %f2, [%rd3]"))
    assert run(["diff", "faulty.ptx", "right.ptx", "--case", "case.toml", *OPTIONS]) == 1
    out = capsys.readouterr().out
    assert "faulty.ptx: " in out and "right.ptx: ended well" in out
    assert run(["diff", "faulty.ptx", "right.ptx", "--case", "case.toml", *OPTIONS, "--json"]) == 1
    one, other = json.loads(capsys.readouterr().out)["programs"]
    assert "`saxpy`" in one["failed"] and one["seconds"] is None and other["failed"] == "" and other["seconds"] >= 0
    assert run(["diff", "none.ptx", "right.ptx", "--case", "case.toml"]) == 2


def test_programs_from_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Standard input, and CUDA C++ where there is an nvcc: here one that makes the same PTX of anything."""
    write()
    right = Path("right.ptx").read_text()
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_text(
        f'#!/bin/sh\nfor word; do test "$last" = -o && cp "{Path("right.ptx").absolute()}" "$word"; last=$word; done\n'
    )
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(nvcc.parent), prepend=":")
    Path("right.cu").write_text("__global__ void saxpy();")
    compared = ["--case", "case.toml", *OPTIONS]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(right.encode())))
    assert run(["diff", "wrong.ptx", "-", *compared]) == 1
    assert "[5]: 11.0, <stdin> 10.0" in capsys.readouterr().out
    assert run(["diff", "right.ptx", "right.cu", *compared]) == 0
    assert run(["diff", "-", "-", *compared]) == 2
    assert "standard input (-) is given twice" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(right.encode())))
    assert run(["shrink", "case.toml", *OPTIONS, "--against", "-", "--runs", "3"]) == 0


def test_what_programs_print_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.ptx").write_text(ptx.HELLO)
    Path("two.ptx").write_text(ptx.HELLO.replace("104, 101", "104, 97"))
    Path("case.toml").write_text('ptx = "one.ptx"\ngrid = 1\nblock = 1\n')
    assert run(["diff", "one.ptx", "two.ptx", "--case", "case.toml", *OPTIONS]) == 1
    assert "what they print differs" in capsys.readouterr().out
    assert run(["diff", "one.ptx", "two.ptx", "--case", "case.toml", *OPTIONS, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["output"].replace("hallo", "hello") for one in found["programs"]] == [found["programs"][0]["output"]] * 2
    assert found["same"] is False and found["comparisons"] == []
