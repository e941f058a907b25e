"""Programs of CUDA under rr: what is recorded is replayed, to the end and backwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxemu.images.fatbin import PTX
from ptxemu.process.cuda import environment, library_path
from tests.cuda.test_linked_in import DATA, compiled
from tests.images.test_fatbin import fat

SECONDS = 300
MODES = ((), ("-W",))  # by the processor's counters; by those of software, which a fork of rr has
BACK_TO_A_LAUNCH = """
set pagination off
set confirm off
set breakpoint pending on
break cudaFree
continue
up
watch -location ((float *)on_device[2])[5]
reverse-continue
delete
break cudaLaunchKernel
reverse-continue
backtrace
quit
"""


def rr(*words: str | Path, commands: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    given = {**environment(os.environ), "DEBUGINFOD_URLS": "", **variables}
    command = ["rr", *words]
    return subprocess.run(command, env=given, input=commands, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.fixture(scope="module")
def mode(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options with which rr records and replays here."""
    if shutil.which("rr") is None:
        pytest.skip("rr is not here")
    said = ""
    for options in MODES:
        done = rr("record", *options, "-o", tmp_path_factory.mktemp("rr") / "trace", "true")
        if done.returncode == 0:
            return options
        said += done.stderr
    pytest.skip(f"rr cannot record here: {said}")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, library = tmp_path_factory.mktemp("program"), library_path() / "libcudart.so.13"
    (folder / "kernels.fatbin").write_bytes(fat((PTX, 75, (DATA / "kernels.ptx").read_bytes())))
    links = f"-Wl,-rpath-link,{library_path()}:{library_path().parents[1]}"
    return compiled(folder, [*sorted(DATA.glob("*.c")), library], "-g", "-DVERSION=13", links)


def recorded(mode: tuple[str, ...], trace: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a program says, which its recording says again."""
    first = rr("record", *mode, "-o", trace, "--num-cores=2", *command, **variables)
    again = rr("replay", *mode, "--autopilot", trace)
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, first.stderr), first
    return first


@pytest.mark.parametrize(
    ("what", "expected"),
    [("add", ["right"]), ("printf", ["before", "hello 0 of 3", "hello 1 of 3", "hello 2 of 3", "after"]), ("threads", ["right"])],
)
def test_a_recording_says_the_same(mode, program, tmp_path, what, expected):
    done = recorded(mode, tmp_path / "trace", program, program.parent / "kernels.fatbin", what)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, expected, "")


def processes(trace: Path) -> int:
    return len(re.findall(r"^\d+\t", rr("ps", trace).stdout, re.MULTILINE))


def test_kernels_are_compiled_in_a_recording(mode, program, tmp_path):
    command = [program, program.parent / "kernels.fatbin", "add"]
    done = recorded(mode, tmp_path / "trace", *command, PTXEMU_CACHE=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
    assert processes(tmp_path / "trace") > 1


def test_kernels_that_were_compiled_before_are_taken(mode, program, tmp_path):
    command = [program, program.parent / "kernels.fatbin", "add"]
    given = {**environment(os.environ), "PTXEMU_CACHE": str(tmp_path / "cache")}
    subprocess.run(command, env=given, check=True, timeout=SECONDS)
    done = recorded(mode, tmp_path / "trace", *command, PTXEMU_CACHE=given["PTXEMU_CACHE"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")
    assert processes(tmp_path / "trace") == 1


def test_faults_are_errors_in_a_recording(mode, program, tmp_path):
    done = recorded(mode, tmp_path / "trace", program, program.parent / "kernels.fatbin", "fault")
    assert done.returncode == 0 and "cudaErrorIllegalAddress" in done.stdout


def test_findings_are_those_of_the_recording(mode, program, tmp_path):
    done = recorded(mode, tmp_path / "trace", program, program.parent / "kernels.fatbin", "add", PTXEMU_CHECK="race")
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "checked race in 1 launch: nothing found\n")


def test_what_starts_the_program_may_be_recorded(mode, program, tmp_path):
    command = [sys.executable, "-m", "ptxemu", "cuda", "--", program, program.parent / "kernels.fatbin", "add"]
    done = recorded(mode, tmp_path / "trace", *command, LD_PRELOAD="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "right\n", "")


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not here")
def test_gdb_goes_back_to_the_kernel_that_wrote_a_word(mode, program, tmp_path):
    recorded(mode, tmp_path / "trace", program, program.parent / "kernels.fatbin", "add")
    done = rr("replay", *mode, tmp_path / "trace", commands=BACK_TO_A_LAUNCH)
    written, launched = done.stdout.split("Old value = 5.5\nNew value = 0\n")
    assert "cudaFree" in written and "cudaLaunchKernel" in launched and "add_vectors (bias=0.5)" in launched, done.stdout
