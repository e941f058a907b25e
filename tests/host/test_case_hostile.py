"""Case files of others: what they may name, write and compute, and how bad ones are refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ptxemu.case import read_case, run_case
from ptxemu.case.expression import evaluate
from ptxemu.cli import run
from ptxemu.text.errors import InputError
from tests.fuzz.host import fuzz
from tests.support import api_kernels as ptx

CASE = """
ptx = "kernel.ptx"
grid = 1
block = 1
[args]
n = 0
a = 1.0
x = { zeros = { dtype = "f32", shape = 4 } }
y = { zeros = { dtype = "f32", shape = 4 } }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "kernel.ptx").write_text(ptx.SAXPY)
    monkeypatch.chdir(tmp_path / "case")
    return tmp_path


def refused(capsys, text: str, code: int = 2, *options: str) -> str:
    Path("case.toml").write_text(text)
    assert run(["run", "case.toml", *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("ptxemu: error: ") and len(line) < 1000
    return line


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize(
    "name",
    ["../y.npy", "a/../../y.npy", "/tmp/outside/y.npy", "..", ".", "", "link/y.npy", "file.npy", "loop/y.npy", "a\\u0000.npy"],
)
def test_results_stay_in_their_folder(folder, capsys, name):
    (folder / "case" / "out").mkdir()
    (folder / "case" / "out" / "link").symlink_to(folder)
    (folder / "case" / "out" / "file.npy").symlink_to(folder / "target.npy")
    (folder / "case" / "out" / "loop").symlink_to("loop")
    before = files(folder)
    line = refused(capsys, CASE + f'[save]\ny = "{name}"', 2, "--output-dir", "out")
    assert "case.toml: save.y: " in line
    assert files(folder) - before <= {"case/case.toml"}
    assert not Path("/tmp/outside").exists()


def test_results_below_their_folder(folder):
    (folder / "elsewhere").mkdir()
    (folder / "case" / "out").symlink_to(folder / "elsewhere")  # the folder itself is the user's choice
    Path("case.toml").write_text(CASE + '[save]\ny = "a/../b/y.npy"\nx = "x.npy"')
    assert run(["run", "case.toml", "--output-dir", "out"]) == 0
    assert (folder / "elsewhere" / "b" / "y.npy").is_file() and (folder / "elsewhere" / "x.npy").is_file()


def test_nothing_runs_if_its_results_cannot_be_saved(folder, capsys):
    assert "must end in .npy or .png" in refused(capsys, CASE.replace("kernel.ptx", "missing.ptx") + '[save]\ny = "y.txt"')


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("place", ["ptx", "npy", "png"])
def test_inputs_are_files(folder, capsys, kind, place):
    if kind == "pipe":
        os.mkfifo(f"in.{place}")
    elif kind == "device":
        os.symlink("/dev/zero", f"in.{place}")
    else:
        os.mkdir(f"in.{place}")
    text = (
        CASE.replace('"kernel.ptx"', '"in.ptx"')
        if place == "ptx"
        else CASE.replace("y = { zeros", f'y = {{ {place} = "in.{place}" }} #')
    )
    assert ": is a folder, not a file" if kind == "folder" else ": is a device or a pipe" in refused(capsys, text)


BOMBS = {
    "arrays": "a = " + "[" * 100_000,
    "tables": "a = " + "{a=" * 50_000,
    "digits": f"a = {'9' * 5000}",
    "dots": "a." * 50_000 + "a = 1",
    "quoted dots": '"a" . ' * 50_000 + "a = 1",
    "dots in a header": "[" + "a." * 50_000 + "a]",
    "dots in a table": "a = {" + "a." * 50_000 + "a = 1}",
    "long key": "a" * 1_000_000 + " = 1",
    "control characters": 'title = "\\u001b"\n"\\u001b[2J" = 1',
    "hexadecimal": CASE + f"[options]\na = 0x{'f' * 9000}",
    "path with NUL": CASE.replace("kernel.ptx", "a\\u0000b"),
    "long path": CASE.replace("kernel.ptx", "a" * 9000),
    "script with NUL": CASE + '[expect]\nreference = "a\\u0000b"',
    "array with NUL": CASE.replace("y = { zeros", 'y = { npy = "a\\u0000b" } #'),
    "scalar": CASE.replace("a = 1.0", f"a = 0x{'f' * 9000}"),
    "integer": CASE.replace("n = 0", f"n = 0x{'f' * 9000}"),
    "timeout": CASE.replace("grid = 1", f"grid = 1\ntimeout = 0x{'f' * 9000}"),
    "shared": CASE.replace("grid = 1", f"grid = 1\nshared = 0x{'f' * 9000}"),
    "grid": CASE.replace("grid = 1", f"grid = [0x{'f' * 9000}]"),
    "many dimensions": CASE.replace("grid = 1", "grid = [" + "1," * 100_000 + "]"),
    "tolerance": CASE + f"[expect.tolerance]\nabs = 0x{'f' * 9000}",
    "surface": CASE + f'[surfaces.s]\nformat = "R8_UINT"\nwidth = 0x{"f" * 9000}',
    "levels": CASE + f'[textures.t]\nformat = "R8_UINT"\nwidth = 1\nlevels = 0x{"f" * 90}',
    "samples": CASE + f'[textures.t]\ngeometry = "2dms"\nformat = "R8_UINT"\nwidth = 1\nsamples = 0x{"f" * 90}',
    "border": CASE + f'[textures.t]\nformat = "R8_UNORM"\nwidth = 1\nborder = [0, 0, 0, 1{"0" * 400}]',
    "strings": CASE.replace("y = { zeros", 'y = { values = ["1"], dtype = "f32" } #'),
    "deep values": CASE.replace("y = { zeros", "y = { values = " + "[" * 80 + "]" * 80 + ', dtype = "f32" } #'),
    "large value": CASE.replace("y = { zeros", f'y = {{ values = [1{"0" * 400}], dtype = "f64" }} #'),
    "not for its type": CASE.replace("y = { zeros", 'y = { values = [1e39], dtype = "f32" } #'),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(folder, capsys, name):
    assert "\x1b" not in refused(capsys, BOMBS[name])


def test_mutated_cases():
    assert fuzz(seed=1, iterations=60, seconds=300) > 5


def test_a_large_file(folder, capsys):
    assert "is larger than 16 MiB" in refused(capsys, "#" * ((16 << 20) + 1))


@pytest.mark.parametrize("script", ["import sys; sys.exit(5)", "exit(5)", "raise SystemExit", "def reference(inputs): exit(0)"])
def test_a_script_cannot_end_the_run(folder, capsys, script):
    Path("reference.py").write_text(script)
    Path("case.toml").write_text(CASE + '[expect]\nreference = "reference.py"')
    assert run(["test", "."]) == 2
    assert "reference.py:1: " in capsys.readouterr().out


INPUTS = {"x": np.arange(4, dtype=np.float32), "n": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x * 2 + n", [3, 5, 7, 9]),
        ("np.where(x > 1, x, -x)", [0, -1, 2, 3]),
        ("np.float32(n) * np.ones(2, 'u4')", [3, 3]),
        ("np.eye(3, dtype=np.uint32)[1:2].T.ravel()", [0, 1, 0]),
        ("[sum(x[:i + 1]) for i in range(len(x)) if i != 1]", [0, 3, 6]),
        ("np.maximum.accumulate(x[::-1]).astype(np.int64)", [3, 3, 3, 3]),
        ("np.fromfunction(lambda i, j: i * 2 + j, (2, 2)).reshape(-1)", [0, 1, 2, 3]),
        ("np.sort(np.random.default_rng(1).permutation(3))", [0, 1, 2]),
        ("np.linalg.norm(np.array([3.0, 4.0])), np.fft.fft([1.0])[0].real, np.pi // 1", [5, 1, 3]),
        ("\n  x.sum(axis=0) / 0 if n else 1  \n", np.inf),
        ("{'a': x}['a'].max()", 3),
    ],
)
def test_expressions(text, value):
    np.testing.assert_array_equal(np.asarray(evaluate(text, INPUTS, "here")), value)


@pytest.mark.parametrize(
    "text",
    ["exit(5)", "open('/etc/passwd').read()", "__import__('os').system('true')", "np.load('x.npy')", "np.save('x', x)",
     "x.tofile('x')", "np.fromfile('/dev/zero')", "np.memmap('x')", "x.dump('x')", "x.__class__",
     "().__class__.__base__.__subclasses__()", "f'{x}'", "'{0.__class__}'.format(x)", "getattr(x, 'dump')", "eval('1')",
     "(lambda: 0).__globals__", "(lambda n: n.save)(np)", "np.lib", "np.ctypeslib", "x.ctypes", "np.genfromtxt('x')",
     "np.lib.stride_tricks.as_strided(x, (9999999,))", "(y := 1)", "__builtins__", "(i for i in x).gi_frame", "np.f2py",
     "np.testing", "x.setflags(write=1)", "breakpoint()", "np.vectorize(exit)(x)", "await x", "1 +", "", "lambda",
     "nothing", "x.sum(9)", "1 / 0", "-" * 19_000 + "1", "(" * 9000, "1" + "+1" * 9000, "x" + "[0]" * 6000,
     "not " * 4000 + "x", "9" * 5000, "x" * 30_000, "x\0", "x\ny", "raise SystemExit", "np.zeros(1 << 62)"],
)  # fmt: skip
def test_refused_expressions(text):
    with pytest.raises(InputError, match=r"^here: ") as caught:
        evaluate(text, INPUTS, "here")
    assert "\n" not in str(caught.value)


def test_an_expression_is_no_script(folder, capsys):
    Path("case.toml").write_text(CASE + '[expect.outputs.y]\nexpression = "exit(5)"')
    assert run(["test", "."]) == 2
    assert "expect.outputs.y.expression: NameError: name 'exit' is not defined" in capsys.readouterr().out


def test_what_a_reference_returns_is_compared_whatever_it_is(folder):
    for value in ("[[1], [2, 3]]", "'text'", "None", "{}", "object()", "['a'] * 4", "[1 + 2j] * 4", "[10 ** 400] * 4"):
        Path("reference.py").write_text(f"def reference(inputs):\n    return {{'y': {value}}}\n")
        Path("case.toml").write_text(CASE + '[expect]\nreference = "reference.py"')
        assert not run_case(read_case(Path())).passed
