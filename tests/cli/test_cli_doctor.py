"""``ptxemu doctor``, and JSON of all verbs."""

from __future__ import annotations

import json
import platform

import llvmlite
import numpy as np
import pytest

from ptxemu import __version__
from ptxemu.cli import COMMANDS, run
from ptxemu.cli.verbs import doctor
from tests.support import api_kernels as ptx

PROBE = doctor.PROBE


def facts(capsys, code: int = 0) -> dict:
    assert run(["doctor", "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_machine_on_which_all_is_well(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    found = facts(capsys)
    assert found["ok"] and found["problems"] == []
    assert (found["ptxemu"], found["python"]) == (__version__, platform.python_version())
    assert found["libraries"]["numpy"] == np.__version__
    assert found["libraries"]["llvmlite"].startswith(f"{llvmlite.__version__} (LLVM ")
    assert found["engines"] == {"jit": True, "interpreter": True}
    assert found["ptx"]["versions"] == ["1.0", "9.5"] and {"50", "90a", "121"} <= set(found["ptx"]["targets"])
    assert found["cpu"]["cores"] >= 1 and found["cpu"]["features"]
    files = list((tmp_path / "cache").glob("*.entry"))
    assert facts(capsys)["cache"] == {
        "directory": str(tmp_path / "cache"),
        "used": True,
        "entries": len(files),
        "bytes": sum(file.stat().st_size for file in files),
        "limit": 512 << 20,
    }
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("no problems found\n") and max(map(len, out.splitlines())) < 100


def test_a_cache_that_others_can_write(tmp_path, monkeypatch, capsys):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path))
    found = facts(capsys, 1)
    assert not found["ok"] and not found["cache"]["used"]
    assert found["problems"] == [f"compiled kernels are not kept: {tmp_path} can be written by others (mode 777; try chmod go-w)"]
    assert run(["doctor"]) == 1
    assert "problem: compiled kernels are not kept" in capsys.readouterr().out


@pytest.mark.parametrize("below", ["", "/below"])
def test_a_cache_that_cannot_be(below, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTXEMU_CACHE", f"{tmp_path / 'file'}{below}")
    (problem,) = facts(capsys, 1)["problems"]
    assert "cannot be made" in problem or "is not a folder" in problem


def test_no_cache_is_no_problem(monkeypatch, capsys):
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    assert facts(capsys)["cache"] == {"directory": None, "used": False}


def test_kernels_that_do_not_run_are_a_problem(monkeypatch, capsys):
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    monkeypatch.setattr(doctor, "PROBE", PROBE.replace("[%rd1], %r1", "[%rd1], 7"))
    found = facts(capsys, 1)
    assert found["problems"] == [f"a kernel computes wrong results (engine {name})" for name in ("jit", "interpreter")]
    monkeypatch.setattr(doctor, "PROBE", PROBE.replace("[%rd1], %r1", "[%rd2], %r1"))
    assert all("null pointer" in problem for problem in facts(capsys, 1)["problems"])


def test_tools_of_cuda(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "nvcc").write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.9, V12.9.41'\n")
    (tmp_path / "nvcc").chmod(0o755)
    assert facts(capsys)["tools"] == {"nvcc": {"path": str(tmp_path / "nvcc"), "version": "12.9.41"}, "ptxas": None}
    (tmp_path / "nvcc").write_text("#!/bin/sh\nexit 1\n")
    assert facts(capsys)["tools"]["nvcc"]["version"] == "unknown"


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"record", "shrink", "diff", "debug"}))
def test_verbs_have_json(command, capsys):
    assert run([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_json_of_small_verbs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.ptx").write_text(ptx.BROKEN)
    word = "0xeb5a052602870407"
    assert run(["lint", "broken.ptx", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)[0]["severity"] == "error"
    assert run(["disassemble", word, "--json"]) == 0
    (decoded,) = json.loads(capsys.readouterr().out)
    assert decoded["word"] == word
    (tmp_path / "k.sass").write_text(decoded["text"] + "\n")
    assert run(["assemble", "k.sass", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"word": word, "line": 1, "text": decoded["text"].removesuffix(" ;")}]
    assert run(["cuda", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"path", "include", "ptxas"}
