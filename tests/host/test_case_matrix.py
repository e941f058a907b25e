"""Sweeps: which points they have, what these are called, what is calculated for them, and that they are bounded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ptxemu import InputError
from ptxemu.case import find_cases, read_case, run_case
from ptxemu.case.arithmetic import calculate
from ptxemu.cli import run
from tests.support import api_kernels as ptx

SWEEP = """
title = "saxpy"
ptx = "k.ptx"
grid = "${(n + block - 1) // block}"
block = "${block}"
[args]
n = "${n}"
a = 2
x = { arange = { dtype = "f32", shape = "${n}" } }
y = { zeros = { dtype = "f32", shape = "${n}" } }
[expect.outputs.y]
expression = "2.0 * np.arange(${n})"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(ptx.SAXPY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(matrix: str, text: str = SWEEP) -> Path:
    Path("case.toml").write_text(text + matrix)
    return Path("case.toml")


def names(path: Path) -> list[str]:
    return [str(case).removeprefix("case.toml") for case in find_cases([path])]


def test_a_table_is_the_product_of_its_lists() -> None:
    path = write("[[matrix]]\nblock = [32, 64]\nn = [1, 100, 33]\n")
    assert names(path) == [f"[block={block},n={n}]" for block in (32, 64) for n in (1, 100, 33)]
    case = read_case(Path("case.toml[block=64,n=100]"))
    assert (case.title, case.launches[0].grid, case.launches[0].block) == ("saxpy[block=64,n=100]", 2, 64)
    result = run_case(case)
    assert result.passed and result.arrays["y"].shape == (100,)


def test_points_may_be_written_out_and_tables_add_up() -> None:
    path = write(
        "[[matrix]]\nn = [5, 6]\nblock = [32]\n"
        "[[matrix]]\npoints = [{ n = 7, block = 64 }, { n = 5, block = 32 }]\n"
        "[[matrix]]\npoints = [{ n = 8, kind = 'a' }, { n = 9, kind = 'b' }]\nblock = [1, 2]\n"
    )
    assert names(path) == [
        "[n=5,block=32]", "[n=6,block=32]", "[n=7,block=64]",
        "[n=8,kind=a,block=1]", "[n=8,kind=a,block=2]", "[n=9,kind=b,block=1]", "[n=9,kind=b,block=2]",
    ]  # fmt: skip
    for case in find_cases([path]):
        assert run_case(read_case(case)).passed


TYPES = """
ptx = "k.ptx"
grid = "${shape}"
block = "${shape[1]}"
strict = "${flag}"
[args]
a = "${a}"
b = "${1 if flag else 2}"
c = "${flag}"
[save]
y = "below/y-${a}-${shape}.npy"
[buffers.y]
zeros = { dtype = "f${bits}", shape = "${shape}" }
"""


def test_values_keep_their_types() -> None:
    path = write("[[matrix]]\na = [0.5, 1e-30]\nshape = [[16, 8]]\nflag = [true]\nbits = [32]\n", TYPES)
    assert names(path) == ["[a=0.5,shape=16x8,flag=true,bits=32]", "[a=1e-30,shape=16x8,flag=true,bits=32]"]
    case = read_case(Path("case.toml[a=1e-30,shape=16x8,flag=true,bits=32]"))
    launch = case.launches[0]
    assert (launch.grid, launch.block, case.strict) == ([16, 8], 8, True)
    assert launch.args == {"a": 1e-30, "b": 1, "c": True}
    assert case.save == {"y": "below/y-1e-30-16x8.npy"}
    assert case.buffers["y"].make().shape == (16, 8) and case.buffers["y"].make().dtype == "f4"


def test_points_are_cases_of_suites(capsys: pytest.CaptureFixture[str]) -> None:
    write("[[matrix]]\nblock = [32, 64]\nn = [1, 100]\n")
    assert run(["test", ".", "--list", "-k", "block=64"]) == 0
    assert capsys.readouterr().out.split() == ["case.toml[block=64,n=1]", "case.toml[block=64,n=100]"]
    assert run(["test", "case.toml[block=64,n=1]", "-k", "saxpy[block=64", "--junit", "junit.xml"]) == 0
    assert "case.toml[block=64,n=1]" in capsys.readouterr().out
    assert 'file="case.toml"' in Path("junit.xml").read_text() and 'name="saxpy[block=64,n=1]"' in Path("junit.xml").read_text()
    assert run(["run", "case.toml[block=64,n=1]"]) == 0
    assert "saxpy[block=64,n=1]: passed" in capsys.readouterr().out


def test_a_point_that_fails_is_told_by_its_name_and_remembered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    write("[[matrix]]\nblock = [32]\nn = [1, 100]\n", SWEEP.replace("2.0 * np.arange(${n})", "np.arange(${n}) * 0.0"))
    assert run(["test", "."]) == 1
    out = capsys.readouterr().out
    assert "case.toml[block=32,n=100]: failed\ny: 99 of 100 differ" in out and "1 of 2 passed" in out
    assert run(["test", ".", "--last-failed", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["case.toml[block=32,n=100]"]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("n = 3", "matrix[0].n: must be a list of values, not 3"),
        ("n = []", "matrix[0].n: must be a list of values"),
        ("", "matrix[0]: is empty"),
        ("points = []", "matrix[0].points: is empty"),
        ("points = [{}]", "matrix[0]: is empty"),
        ("points = [{ n = 1 }, { m = 1 }]", "matrix[0].points[1]: must have the names of the first: n"),
        ("n = [1]\npoints = [{ n = 1 }]", "matrix[0].points: name something that has a list as well"),
        ("n = ['../x']", "matrix[0].n: must be a number, a word"),
        ("n = ['a/b']", "matrix[0].n: must be a number, a word"),
        ("n = [{}]", "matrix[0].n: must be a number, a word"),
        ("n = [[1, 2, 3, 4]]", "matrix[0].n: must be a number, a word"),
        ("n = [0x" + "f" * 30_000 + "]", "matrix[0].n: must be a number, a word"),
        ("'a b' = [1]", "'a b' is no name"),
        ("\n".join(f"n{number} = [1]" for number in range(17)), "has 17 names, more than 16"),
        ("\n".join(f"n{number} = [1, 2, 3, 4, 5, 6, 7, 8]" for number in range(10)), "matrix: has 1073741824 points, more"),
        ("n = [1]", "is a sweep of 1 cases: name one, such as 'case.toml[n=1]'"),
    ],
)  # fmt: skip
def test_wrong_sweeps(matrix: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(f"[[matrix]]\n{matrix}\n")
    with pytest.raises(InputError) as caught:
        read_case(path)
    assert message in str(caught.value) and len(str(caught.value)) < 400
    if "name one" not in message:
        assert run(["test", "."]) == 2
        assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("case.toml[n=2]", "its sweep has no point 'n=2'; the first is 'n=1'"),
        ("case.toml[]", "its sweep has no point ''"),
        ("case.toml[n=1,n=1]", "its sweep has no point 'n=1,n=1'"),
        ("plain.toml[n=1]", "plain.toml: is no sweep"),
        ("none.toml[n=1]", "no such file"),
    ],
)
def test_points_that_there_are_not(path: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("[[matrix]]\nn = [1]\n")
    Path("plain.toml").write_text("grid = 1\nblock = 1\n")
    for verb in ("run", "test"):
        assert run([verb, path]) == 2
        captured = capsys.readouterr()
        assert message in captured.out + captured.err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 7),
        ("-n * 2 + 1", -13),
        ("(n + 3) // 4 % 3", 2),
        ("n / 2", 3.5),
        ("'f' if kind == 'f32' else 'd'", "f"),
        ("shape[1] if n >= 7 else 0", 8),
        ("max(n, 3, min(20, 30))", 20),
    ],
)
def test_arithmetic(text: str, value: Any) -> None:
    found = calculate(text, {"n": 7, "kind": "f32", "shape": [16, 8]})
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", "nothing is called 'm'"),
        ("block", "did you mean 'blocks'"),
        ("n +", "is no expression"),
        ("n // 0", "division"),
        ("n ** n", "is more than arithmetic"),
        ("'a' * n", "mixes numbers and texts"),
        ("n.real", "is more than arithmetic"),
        ("__import__('os')", "is more than arithmetic"),
        ("[n for n in 1]", "is more than arithmetic"),
        ("shape[9]", "out of range"),
        ("18446744073709551615 * n", "is out of range"),
        ("max(*shape)", "is more than arithmetic"),
        ("1" * 201, "has 201 characters"),
        ("(" * 150, "is no expression"),
        ("n\0", "n"),
    ],
)
def test_what_is_no_arithmetic(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        calculate(text, {"n": 7, "blocks": 1, "shape": [16, 8]})


def test_an_error_says_where_it_is() -> None:
    write("[[matrix]]\nn = [1]\nblock = [32]\n", SWEEP.replace('shape = "${n}" } }\ny', 'shape = "${m}" } }\ny'))
    with pytest.raises(InputError, match=r"case.toml: args.x.arange.shape: '\$\{m\}': nothing is called 'm'"):
        read_case(Path("case.toml[n=1,block=32]"))


def test_there_may_be_ten_thousand_points() -> None:
    path = write(f"[[matrix]]\nn = {list(range(100))}\nblock = {list(range(1, 101))}\n")
    assert len(find_cases([path])) == 10_000
    assert read_case(Path("case.toml[n=99,block=100]")).launches[0].block == 100
