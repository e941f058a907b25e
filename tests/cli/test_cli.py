"""The command line: what it prints, where, and its exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ptxemu import __version__, api
from ptxemu.cli import run
from tests.support import api_kernels as ptx
from tests.support.places import CORPUS

SAXPY_ARGS = ["--grid", "4", "--block", "32", "--arg", "n=100", "--arg", "a=2", "--arg", "x=arange:f32:100"]
SAXPY_ARGS += ["--arg", "y=full:f32:100:0.5"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the kernels, as the current one."""
    for name in ("SAXPY", "STRUCT", "VARIABLES", "SURFACES", "ENDLESS", "BOUNDED", "HELLO", "UNSUPPORTED", "BROKEN"):
        (tmp_path / f"{name.lower()}.ptx").write_text(getattr(ptx, name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ptxemu(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "ptxemu", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def fails(capsys, code: int, *arguments: str) -> str:
    """The message of a command that must fail with a code and print nothing on stdout."""
    assert run(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err.rstrip("\n")


def test_version():
    done = ptxemu("--version")
    assert (done.returncode, done.stdout) == (0, f"ptxemu, version {__version__}\n")


@pytest.mark.parametrize("command", [[], ["run"], ["test"], ["info"], ["compile"]])
def test_help(command, capsys):
    assert run([*command, "--help"]) == 0
    assert "Usage: ptxemu" in capsys.readouterr().out


def test_main_may_be_called_again(folder):
    twice = f"from ptxemu import cli; assert cli.run({['run', 'saxpy.ptx', *SAXPY_ARGS]}) == 0; cli.main(['info', 'saxpy.ptx'])"
    done = subprocess.run([sys.executable, "-c", twice], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "") and "saxpy" in done.stdout


def test_run_saves_results(folder, capsys):
    assert run(["run", "saxpy.ptx", *SAXPY_ARGS, "--out", "y=out.npy"]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), (2 * np.arange(100) + 0.5).astype(np.float32))
    out = capsys.readouterr().out
    assert "saxpy: 4 blocks in" in out
    assert "y: float32[100] saved to out.npy" in out


def test_run_reads_files_by_number(folder):
    np.save("x.npy", np.ones(64, np.float32))
    arguments = ["--arg", "3=@y.npy", "--arg", "0=64", "--arg", "2=@x.npy", "--arg", "1=3.0"]
    np.save("y.npy", np.full(64, 2, np.float32))
    assert run(["run", "saxpy.ptx", "--grid", "2x1", "--block", "32", *arguments, "--out", "3=z.npy"]) == 0
    np.testing.assert_array_equal(np.load("z.npy"), np.full(64, 5, np.float32))
    np.testing.assert_array_equal(np.load("y.npy"), np.full(64, 2, np.float32))


def test_run_as_a_process(folder):
    done = ptxemu("run", "hello.ptx", "--grid", "1", "--block", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hello\nhello\nhello: 1 blocks in")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "missing.ptx", "--grid", "1", "--block", "1"], "missing.ptx: no such file"),
        (["run", "saxpy.ptx"], "--grid and --block are needed"),
        (["run", "saxpy.ptx", "--grid", "1", "--block", "1", "--entry", "saxpi"], "did you mean 'saxpy'"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2]], "no value for parameter y"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--arg", "b=1"], "no parameter 'b'"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--arg", "y=1"], "--arg y is given twice"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--arg", "0=1"], "by name and by number"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--out", "n=x.npy"], "--arg n is not an array"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--out", "y=y.txt"], "must end in .npy or .png"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--out", "y"], "--out y: must be name=value"),
        (["run", "saxpy.ptx", "--grid", "1", "--block", "1025", *SAXPY_ARGS[4:]], "block.x must be 1 to 1024"),
        (["run", "saxpy.ptx", "--grid", "a", "--block", "1", *SAXPY_ARGS[4:]], "--grid a: must be one to three numbers"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--shared", "300000"], "over the limit of 232448"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--timeout", "-1"], "timeout must be a positive number"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=@missing.npy"], "missing.npy: no such file"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=@saxpy.ptx"], "not a valid .npy file"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=ones:f32:3"], "no array is made by 'ones'"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=zeros:f33:3"], "unknown dtype 'f33'"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=zeros:f32"], "must be zeros:dtype:shape"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=zeros:f32:3:4"], "must be zeros:dtype:shape"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=full:f32:3:q"], "value 'q' is not a number"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=zeros:f32:a"], "shape 'a' must be numbers"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=bytes:0"], "hexadecimal digits"),
        (["run", "saxpy.ptx", *SAXPY_ARGS[:-2], "--arg", "y=what"], "'what' is not a number"),
        (["run", "bounded.ptx", "--grid", "1", "--block", "1"], "--entry is needed: the file has small, exact"),
        (["run", ".", "--grid", "1"], "--grid cannot be given with a case file"),
        (["run", "."], "no case files"),
        (["run", "missing.toml"], "missing.toml: no such file"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--workers", "0"], "workers must be"),
        (["run", "saxpy.ptx", *SAXPY_ARGS, "--memory", "much"], "must be a size such as"),
        (["test", "missing"], "no such file or folder"),
        (["test", "."], "no case files"),
        (["info", "missing.ptx"], "no such file"),
        (["compile", "saxpy.ptx", "--entry", "sax"], "did you mean 'saxpy'"),
        (["compile", "saxpy.ptx", "-o", "missing/file"], "No such file"),
    ],
)
def test_wrong_input_is_one_line(folder, capsys, arguments, message):
    err = fails(capsys, 2, *arguments)
    assert message in err
    assert err.startswith("ptxemu: error: ")
    assert "\n" not in err


@pytest.mark.parametrize("arguments", [["unknown"], ["run"], ["run", "x.ptx", "--what"], ["compile", "x", "--emit", "c"]])
def test_wrong_usage(arguments, capsys):
    assert "Usage: ptxemu" in fails(capsys, 2, *arguments)


def test_diagnostics_have_carets(folder, capsys):
    err = fails(capsys, 2, "info", "broken.ptx").splitlines()
    assert err[0].startswith("broken.ptx:8:6: error: ")
    assert err[1] == "    add.u33 %r, %r, 1;"
    assert err[2].strip().startswith("^")
    assert sum(": error: " in line for line in err) == 2


def test_unsupported_is_3(folder, capsys):
    arguments = ["run", "unsupported.ptx", "--grid", "1", "--block", "32", "--arg", "out=0"]
    assert "unsupported.ptx:8: instruction 'fabric.submit" in fails(capsys, 3, *arguments)
    assert "fabric.submit" in fails(capsys, 3, "compile", "unsupported.ptx")


def test_faults_are_1(folder, capsys):
    arguments = ["run", "saxpy.ptx", *SAXPY_ARGS[:-4], "--arg", "x=0", "--arg", "y=zeros:f32:100", "--out", "y=y.npy"]
    err = fails(capsys, 1, *arguments)
    for part in ("null pointer", "`saxpy`", "saxpy.ptx:17", "block (0,0,0)", "thread (0,0,0)", "global", "0x0"):
        assert part in err
    assert not Path("y.npy").exists()


def test_timeouts_are_1(folder, capsys):
    err = fails(capsys, 1, "run", "endless.ptx", "--grid", "1", "--block", "32", "--timeout", "0.05")
    assert "did not end within" in err


def test_interrupts_are_130(folder):
    (folder / "endless.ptx").write_text(ptx.HELLO.replace("  ret;", "AGAIN:\n  bra AGAIN;"))
    command = [sys.executable, "-m", "ptxemu", "run", "endless.ptx", "--grid", "8", "--block", "64"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "hello\n"  # the kernel runs
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert err.strip() == "interrupted"


def test_bugs_are_70_and_leave_a_reproducer(folder, capsys, monkeypatch):
    def broken(self: object, *arguments: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(api.Program, "load", broken)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    err = fails(capsys, 70, "run", "saxpy.ptx", *SAXPY_ARGS)
    (saved,) = folder.glob("ptxemu-bug-*")
    assert str(saved) in err
    assert "internal error: ZeroDivisionError: a defect" in err
    assert (saved / "saxpy.ptx").read_text() == ptx.SAXPY
    report = (saved / "report.txt").read_text()
    assert "Traceback" in report
    assert "ptxemu run saxpy.ptx --grid 4" in report


CASE = """
title = "{title}"
ptx = "saxpy.ptx"
grid = 4
block = 32
args = {{ n = 100, a = {a}, x = {{ zeros = {{ dtype = "f32", shape = 100 }} }}, y = {y} }}
[expect.outputs.{output}]
expression = "{expression}"
[save]
x = "x.npy"
"""


def write_case(name: str, **changes: str) -> None:
    values = {"title": name, "a": "2", "y": '{ full = { dtype = "f32", shape = 100, value = 1 } }', "output": "y"}
    values["expression"] = "a * x + y"
    Path(name).with_suffix(".toml").write_text(CASE.format(**{**values, **changes}))


def test_run_case(folder, capsys):
    write_case("good")
    assert run(["run", "good.toml", "--output-dir", "results"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("good: passed, ")
    assert "  y: float32[100] ok" in out
    assert "  saved results/x.npy" in out
    assert Path("results/x.npy").exists()
    write_case("bad", expression="x + 5")
    assert run(["run", "bad.toml", "--output-dir", "results"]) == 1
    assert "y: float32[100] FAILED (100 of 100 differ; first at [0]: 1.0, expected 5.0" in capsys.readouterr().out


def test_test_reports_every_case(folder, capsys):
    write_case("good")
    assert run(["test", "good.toml"]) == 0
    assert "1 of 1 passed" in capsys.readouterr().out
    assert not Path("x.npy").exists()
    write_case("bad", expression="x + 5")
    write_case("fault", y="8", output="x")
    write_case("wrong", a="'z'")
    Path("unsupported.toml").write_text(
        'ptx = "unsupported.ptx"\ngrid = 1\nblock = 32\nargs = { out = 0 }\n[expect]\nreference = "none.py"\n'
    )
    Path("unchecked.toml").write_text('ptx = "hello.ptx"\ngrid = 1\nblock = 1\n')
    assert run(["test", ".", "--junit", "junit.xml", "--json", "results.json"]) == 1
    out = capsys.readouterr().out
    assert "1 of 6 passed" in out
    results = json.loads(Path("results.json").read_text())
    assert (results["total"], results["passed"]) == (6, 1)
    status = {Path(case["path"]).stem: case["status"] for case in results["cases"]}
    assert status == {
        "good": "passed",
        "bad": "failed",
        "fault": "failed",
        "wrong": "error",
        "unsupported": "unsupported",
        "unchecked": "error",
    }
    suite = ElementTree.parse("junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "2", "3")
    messages = {Path(case.get("file", "")).stem: case[0].get("message", "") for case in suite if len(case)}
    assert "100 of 100 differ" in messages["bad"]
    assert "null pointer" in messages["fault"]
    assert "no array, surface, texture or sampler is named 'z'" in messages["wrong"]
    assert "nothing would be checked" in messages["unchecked"]


def test_exit_code_of_test_is_that_of_the_worst_case(folder, capsys):
    write_case("good")
    Path("unsupported.toml").write_text(
        'ptx = "unsupported.ptx"\ngrid = 1\nblock = 32\nargs = { out = 0 }\n[expect]\nreference = "none.py"\n'
    )
    assert run(["test", "."]) == 3
    write_case("wrong", a="'z'")
    assert run(["test", "."]) == 2
    capsys.readouterr()


def test_info(folder, capsys):
    assert run(["info", "variables.ptx"]) == 0
    out = capsys.readouterr().out
    for part in ("PTX 7.8 for sm_80, 1 kernel(s)", ".global .u32 counter: 4 bytes", "0: .u64 out", "ld.global.f32"):
        assert part in out
    assert run(["info", "surfaces.ptx", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [kernel["name"] for kernel in facts["kernels"]] == ["by_handle", "by_name", "by_param"]
    assert facts["opaque"] == [{"name": "named", "type": "surfref", "count": 1, "initialisers": []}]
    assert facts["texture_mode"] is None
    assert {"name": "suld.b.1d.b32.trap", "count": 1, "supported": True}.items() <= next(
        use for use in facts["kernels"][0]["instructions"] if use["name"].startswith("suld")
    ).items()


def test_info_of_textures(folder, capsys):
    assert run(["info", str(CORPUS / "hand_surfref.ptx")]) == 0
    out = capsys.readouterr().out
    for part in (
        "texturing mode: independent", ".texref gt[1]\n",
        ".samplerref gsamp[1] = {addr_mode_0 = 2, addr_mode_1 = 3, filter_mode = 0}\n", "tex.2d.v4.f32.s32",
    ):  # fmt: skip
        assert part in out
    for name, mode in (("textures.ptx", "unified"), ("hand_surfref.ptx", "independent")):
        assert run(["info", str(CORPUS / name), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["texture_mode"] == mode
        assert all(kernel["supported"] for kernel in facts["kernels"])


def test_info_shows_what_is_not_supported(folder, capsys):
    assert run(["info", "unsupported.ptx"]) == 0
    out = capsys.readouterr().out
    assert "kernel tensor  (not supported)" in out
    assert "not supported (line 8)" in out


def test_info_shows_resources(folder, capsys):
    assert run(["info", "bounded.ptx", "--json"]) == 0
    kernels = {kernel["name"]: kernel for kernel in json.loads(capsys.readouterr().out)["kernels"]}
    assert kernels["big_shared"]["static_shared"] == 1024
    assert kernels["small"]["static_shared"] == 0
    assert kernels["exact"]["limits"]["reqntid"][:2] == [32, 2]


@pytest.mark.parametrize(("kind", "start"), [("llvm", b"; ModuleID"), ("asm", b""), ("obj", b"\x7fELF")])
def test_compile(folder, kind, start):
    assert run(["compile", "saxpy.ptx", "--emit", kind, "-o", "out", "--cpu", "x86-64-v3", "--block", "16x2"]) == 0
    data = Path("out").read_bytes()
    assert data.startswith(start)
    assert b"kernel" in data


def test_compile_prints_the_ir_after_a_pass(folder, capsys):
    assert run(["compile", "saxpy.ptx", "--emit", "ir"]) == 0
    out = capsys.readouterr().out
    assert " = fma.rn.f32 %" in out
    for name, shown in (("check", "flat {"), ("cfg", "branch %p"), ("ssa", "%r1#0:b32 = "), ("lane-private", out)):
        assert run(["compile", "saxpy.ptx", "--emit", "ir", "--after", name]) == 0
        assert shown in capsys.readouterr().out


def test_compile_names_the_passes_and_analyses_that_there_are(folder, capsys):
    passes = "check, inline, cfg, params, loops, definedness, ssa, copies, lane-private, lone-lanes, rests, inductions, narrow"
    message = fails(capsys, 2, "compile", "saxpy.ptx", "--emit", "ir", "--after", "sss")
    assert message == f"ptxemu: error: there is no pass 'sss'; there are {passes}"
    message = fails(capsys, 2, "compile", "saxpy.ptx", "--emit", "ir", "--analysis", "shape")
    analyses = "dominators, lifetimes, liveness, masks, nans, order, pending, shapes, spins, streams, uses"
    assert message == f"ptxemu: error: there is no analysis 'shape'; there are {analyses}"
    for after, needed in (("loops", "SSA form"), ("inline", "blocks")):
        message = fails(capsys, 2, "compile", "saxpy.ptx", "--emit", "ir", "--after", after, "--analysis", "shapes")
        assert message == f"ptxemu: error: the analysis 'shapes' needs {needed}"
    assert fails(capsys, 2, "compile", "saxpy.ptx", "--analysis", "masks") == "ptxemu: error: --analysis is for --emit ir"
    assert fails(capsys, 2, "compile", "saxpy.ptx", "--after", "ssa") == "ptxemu: error: --after is for --emit ir"


def test_output_into_a_closed_pipe(folder):
    command = f"{sys.executable} -m ptxemu compile saxpy.ptx | head -c 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def test_arrays_of_a_wrong_type(folder, capsys):
    arguments = ["run", "saxpy.ptx", *SAXPY_ARGS[:-1], "y=zeros:f64:100"]
    message = "argument 3 (y): the kernel uses it as float*, read and written, but the array has float64"
    assert run(arguments) == 0
    assert capsys.readouterr().err == f"warning: kernel saxpy, {message}\n"
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [f"kernel saxpy, {message}"]
    assert message in fails(capsys, 2, *arguments, "--strict")


def test_info_says_what_parameters_stand_for(folder, capsys):
    assert run(["info", "saxpy.ptx", "struct.ptx"]) == 0
    out = capsys.readouterr().out
    assert "2: .u64 x: float*, read\n" in out and "3: .u64 y: float*, read and written\n" in out
    assert "0: .align 8 .b8[16] p\n       +8: float*, written\n" in out
    assert run(["info", "saxpy.ptx", "--json"]) == 0
    (use,) = json.loads(capsys.readouterr().out)["kernels"][0]["parameters"][2]["uses"]
    assert use["text"] == "float*, read" and use["element"] == "f32" and use["offset"] == 0
