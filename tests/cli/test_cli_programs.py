"""Programs that commands are given in other ways than as files of PTX."""

from __future__ import annotations

import io
import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxemu.cli import run
from tests.support import api_kernels as ptx

SAXPY = ["--grid", "1", "--block", "64", "--arg", "n=64", "--arg", "a=2", "--arg", "x=arange:f32:64", "--arg", "y=zeros:f32:64"]
CUDA = """__global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.parametrize("command", [["run", "-", *SAXPY, "--out", "y=y.npy"], ["info", "-"], ["compile", "-"], ["lint", "-"]])
def test_standard_input(command: list[str], monkeypatch, capsys) -> None:
    piped(monkeypatch, ptx.SAXPY)
    assert run(command) == 0
    assert capsys.readouterr().err == ""
    if command[0] == "run":
        np.testing.assert_array_equal(np.load("y.npy"), np.arange(64, dtype=np.float32) * 2)


@pytest.mark.parametrize("verb", ["run", "info", "compile", "lint"])
def test_errors_in_standard_input_name_it(verb: str, monkeypatch, capsys) -> None:
    piped(monkeypatch, ptx.BROKEN)
    assert run([verb, "-", *(SAXPY if verb == "run" else [])]) == 2
    captured = capsys.readouterr()
    assert (captured.err or captured.out).startswith("<stdin>:8:6: error: ")


def test_standard_input_can_be_read_once(monkeypatch, capsys) -> None:
    piped(monkeypatch, ptx.SAXPY)
    assert run(["info", "-", "-"]) == 2
    assert capsys.readouterr().err == "ptxemu: error: standard input (-) is given twice\n"


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_cuda_is_compiled_by_nvcc(folder: Path, capsys) -> None:
    (folder / "saxpy.cu").write_text(CUDA)
    assert run(["run", "saxpy.cu", "--entry", "saxpy", *SAXPY, "--out", "y=y.npy"]) == 0
    np.testing.assert_array_equal(np.load("y.npy"), np.arange(64, dtype=np.float32) * 2)
    assert capsys.readouterr().err == ""
    assert sorted(path.name for path in folder.iterdir()) == ["saxpy.cu", "y.npy"]


def a_compiler(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An nvcc that is a shell script."""
    (folder / "bin").mkdir()
    nvcc = folder / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\n{script}\n")
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    (folder / "k.cu").write_text(CUDA)


def test_what_nvcc_says_is_shown(folder: Path, monkeypatch, capsys) -> None:
    a_compiler(folder, "printf 'k.cu(1): error: \\033[31mwrong\\n' >&2; exit 1", monkeypatch)
    assert run(["info", "k.cu"]) == 2
    assert capsys.readouterr().err == "ptxemu: error: k.cu: nvcc could not compile it\nk.cu(1): error: \ufffd[31mwrong\n"


def test_nvcc_warns_and_faults_count_lines_of_ptx(folder: Path, monkeypatch, capsys) -> None:
    (folder / "real.ptx").write_text(ptx.SAXPY)
    a_compiler(folder, 'echo "k.cu(2): warning" >&2; cp real.ptx "$4"', monkeypatch)
    assert run(["run", "k.cu", *SAXPY[:-4], "--arg", "x=0", "--arg", "y=zeros:f32:64"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("k.cu(2): warning\n")
    assert "k.cu.ptx:17" in err


@pytest.mark.parametrize(
    ("name", "message"), [("k.cu", "no nvcc on PATH: compile it with nvcc -ptx k.cu"), ("m.cu", "no such file")]
)
def test_without_nvcc(name: str, message: str, folder: Path, monkeypatch, capsys) -> None:
    (folder / "k.cu").write_text(CUDA)
    monkeypatch.setenv("PATH", str(folder))
    assert run(["run", name, *SAXPY]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_isolated_commands_start_no_compiler(folder: Path, monkeypatch, capfd) -> None:
    a_compiler(folder, "touch started", monkeypatch)
    assert run(["info", "k.cu", "--isolate"]) == 2
    assert "does not compile" in capfd.readouterr().err
    assert not (folder / "started").exists()
