"""The command line with files and arguments that are made to break it: one clear line, the documented exit code, no traceback."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest

from ptxemu.cli import run
from tests.support import api_kernels as ptx

MANY = "9" * 5000
ARGUMENTS = ["--grid", "1", "--block", "1", "--arg", "n=0", "--arg", "a=1", "--arg", "x=0"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernel.ptx").write_text(ptx.SAXPY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments: str, code: int = 2) -> str:
    """The one line that a command prints."""
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("ptxemu: error: ")
    return line


def shell(command: str, **variables: str) -> subprocess.CompletedProcess:
    line = command.replace("ptxemu", f"'{sys.executable}' -m ptxemu", 1)
    environment = {**os.environ, **variables}
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, timeout=120, env=environment)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, data: bytes = b"", *others: bytes) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(others) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1") + data


FILES = {
    "huge.png": png(60000, 60000, bytes(1 << 20)),
    "large.png": png(12000, 12000, bytes(1 << 20)),
    "short.png": png(100, 100, b"xx"),
    "text.png": png(1, 1, b"\0\0", chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 27)))),
    "other.png": b"P5 1 1 255\n\0",  # a picture, but of another kind
    "zip.npy": b"PK\x03\x04garbage",
    "pickle.npy": b"\x80\x04K\x01.",
    "version.npy": b"\x93NUMPY\x09\x00" + bytes(100),
    "short.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1 << 40,), }".replace("1 << 40", str(1 << 40))),
    "negative.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
    "nested.npy": npy("(" * 9000),
    "object.npy": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "digits.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + MANY + ",), }"),
    "long.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 9000 + "), }", bytes(4)),
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_arrays(folder, capsys, name):
    Path(name).write_bytes(FILES[name])
    kind = "readable picture" if name.endswith("png") else "valid .npy file"
    assert f"--arg y: {name}: not a {kind} (" in refused(capsys, "run", "kernel.ptx", *ARGUMENTS, "--arg", f"y=@{name}")


@pytest.mark.parametrize(
    "value",
    [f"zeros:f32:{MANY}", "zeros:f32:²", "zeros:f32:" + "1x" * 40 + "1", "zeros:f32:9000000000x9000000000",
     MANY, "1e999", "-1e999",
     "full:f32:3:1e999", "full:f16:3:1e9", f"full:f64:3:{'9' * 400}", f"full:u8:3:{'9' * 400}", "full:bf16:3:1e39",
     "random:f32:3:0:0:1e39", "random:f32:3:0:0:inf", "random:f64:3:0:nan", f"arange:f32:3:{'9' * 400}", "arange:f16:3:0:1e9",
     "zeros:f4,f4:2", "zeros:(2,)f4:2", "zeros:O:2", "zeros:>f4:2", f"zeros:{'f' * 5000}:2", "zeros:U5:2", "@\udcff.npy",
     "@/dev/null",
     "@.", "@/dev/zero", "@" + "x" * 5000 + ".npy", "@a\0b.npy", "@a\0b.png", "\x1b[2J"],
)  # fmt: skip
def test_values(folder, capsys, value):
    line = refused(capsys, "run", "kernel.ptx", *ARGUMENTS, "--arg", f"y={value}")
    assert len(line) < 6000 and line.isprintable()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--timeout", "nan", "timeout must be a positive number"),
        ("--timeout", "-inf", "timeout must be a positive number"),
        ("--timeout", "0", "timeout must be a positive number"),
        ("--memory", "99999999999999 TiB", "memory must be 1048576 to 70368744177664 bytes"),
        ("--memory", MANY, "memory must be 1048576 to 70368744177664 bytes"),
        ("--memory", "0", "memory must be"),
        ("--workers", "99999999999999999999", "workers must be 1 to 4096"),
        ("--shared", "9" * 400, "over the limit of 232448"),
        ("--grid", MANY, "--grid"),
        ("--grid", "²", "--grid"),
        ("--block", "99999999999999999999", "block.x must be 1 to 1024"),
    ],
)
def test_options(folder, capsys, option, value, message):
    assert message in refused(capsys, "run", "kernel.ptx", *ARGUMENTS, "--arg", "y=0", option, value)


@pytest.mark.parametrize("seconds", ["inf", "1e300", "1e999"])
def test_no_limit_of_time(folder, seconds):
    assert run(["run", "kernel.ptx", *ARGUMENTS, "--arg", "y=0", "--timeout", seconds]) == 0


@pytest.mark.parametrize(("name", "bits"), [("float", 32), ("int", 32), ("uint", 32), ("double", 64), ("long", 64), ("half", 16)])
def test_types_of_cuda(folder, capsys, name, bits):
    arguments = [*ARGUMENTS, "--arg", f"y=zeros:{name}:3", "--out", "y=y.npy"]
    assert run(["run", "kernel.ptx", *arguments]) == 0
    assert np.load("y.npy").dtype.itemsize * 8 == bits


@pytest.mark.parametrize("name", ["foo", "i386", "help", "-", "x86-64-v9"])
def test_unknown_cpus(folder, capsys, name):
    assert "no CPU of this architecture" in refused(capsys, "compile", "kernel.ptx", "--cpu", name)


def test_this_machines_cpu(folder, capsys):
    assert run(["compile", "kernel.ptx"]) == 0
    default = capsys.readouterr().out
    assert run(["compile", "kernel.ptx", "--cpu", "native"]) == 0
    assert capsys.readouterr().out == default


@pytest.mark.parametrize("command", ["ptxemu --help", "ptxemu info kernel.ptx", "ptxemu run hello.ptx --grid 1 --block 1"])
@pytest.mark.parametrize(("target", "reason"), [(">/dev/full", b"No space left"), (">&-", b"Bad file descriptor")])
def test_output_that_cannot_be_written(folder, command, target, reason):
    (folder / "hello.ptx").write_text(ptx.HELLO)
    done = shell(f"{command} {target}")
    assert done.returncode == 2
    assert done.stderr.startswith(b"ptxemu: error: cannot write the output: " + reason)
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("targets", ["2>/dev/full", "2>&-", "<&- 2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_errors_that_cannot_be_written_keep_their_code(folder, targets):
    done = shell(f"ptxemu lint missing.ptx - {targets}")
    assert (done.returncode, done.stderr) == (2, b"")


def test_a_reader_that_has_gone(folder):
    (folder / "long.ptx").write_text(ptx.HEAD + "add.u33 %r, %r;\n" * 100_000 + "#" * 100_000)
    (folder / "big.ptx").write_text(ptx.HEAD + "".join(f".global .u32 v{i};\n" for i in range(20_000)))
    done = shell("ptxemu info big.ptx | head -1")
    assert (done.returncode, done.stderr) == (141, b"")
    assert done.stdout.startswith(b"big.ptx: PTX")


ASCII = [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}]


@pytest.mark.parametrize("variables", ASCII)
def test_an_ascii_terminal(folder, variables):
    name = folder / "größe.ptx"
    name.write_text(ptx.HEAD)
    done = shell(f"ptxemu info {name}", **variables)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"e.ptx: PTX 7.8 for sm_80, 0 kernel(s)\n")


CASE = """
title = "a\\u001b[2J\\u0000\\ufffe"
ptx = "kernel.ptx"
grid = 1
block = 1
args = { n = 0, a = 1.0, x = { zeros = { dtype = "f32", shape = 4 } }, y = { zeros = { dtype = "f32", shape = 4 } } }
"""


def test_reports_with_names_that_are_no_text(folder, capsys):
    below = os.fsencode(folder) + b"/odd\xff"
    os.mkdir(below)
    Path(os.fsdecode(below), "kernel.ptx").write_text(ptx.SAXPY)
    Path(os.fsdecode(below), "case.toml").write_text(CASE + '[expect.outputs.y]\nexpression = "y + 1"')
    assert run(["test", ".", "--junit", "junit.xml", "--json", "results.json"]) == 1
    assert "\x1b[2J" not in capsys.readouterr().out
    (case,) = ElementTree.parse("junit.xml").iter("testcase")
    assert case.get("name") == "a?[2J??"
    assert case.get("file") == "odd?/case.toml"


def test_small_floats_as_expected_results(folder):
    np.save("x.npy", np.array([1, 2, 3], ml_dtypes.bfloat16))
    for values, code in (("[1, 2, 3]", 0), ("[1, 2, 4]", 1)):
        given = CASE.replace('y = { zeros = { dtype = "f32", shape = 4 } }', f'y = {{ values = {values}, dtype = "bf16" }}')
        Path("case.toml").write_text(given + '[expect.outputs.y]\nnpy = "x.npy"\n')
        assert run(["run", "case.toml"]) == code
    named = CASE.replace('{ zeros = { dtype = "f32", shape = 4 } } }', '{ npy = "x.npy", dtype = "bf16" } }')
    Path("case.toml").write_text(named + '[expect.outputs.y]\nexpression = "np.array([1.0, 2.0, 3.0])"\n')
    assert run(["run", "case.toml"]) == 0


def test_a_bug_while_nothing_can_be_saved(folder, capsys, monkeypatch):
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("\x1b a defect")

    monkeypatch.setattr("ptxemu.api.Program.load", broken)
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/none")
    assert run(["run", "kernel.ptx", *ARGUMENTS, "--arg", "y=0"]) == 70
    lines = capsys.readouterr().err.splitlines()
    assert "a defect" in lines[0] and "\x1b" not in lines[0]
    assert "nothing could be saved" in lines[1]
