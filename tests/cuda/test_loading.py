"""How programs come to ptxemu's libraries without the rights of root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from ptxemu.process.cuda import environment, include_path, library_path
from tests.support.places import PACKAGE, TESTS

KERNELS = TESTS / "cuda" / "data" / "kernels.ptx"
SECONDS = 120
PROGRAM = """
import ctypes, os, sys

def name():
    cuda, text = ctypes.CDLL("libcuda.so.1"), ctypes.create_string_buffer(64)
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(text, 64, 0) == 0
    return text.value.decode()

def main():
    print(name(), ctypes.CDLL("libcudart.so.12").cudaDeviceSynchronize(), sys.argv[1:], __name__, sys.path[0], flush=True)
    child = "import ctypes; ctypes.CDLL('libcuda.so.1'); print('child')"
    if "child" in sys.argv:
        os.spawnl(os.P_WAIT, sys.executable, "python", "-c", child)
    sys.exit(len(sys.argv))

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs")
    (made / "program.py").write_text(PROGRAM)
    return made


def run(*command: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    return subprocess.run(
        command, cwd=folder, env=clean | variables, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_without_help_there_are_none(folder):
    assert "OSError: libcuda.so.1" in run(sys.executable, "program.py", folder=folder).stderr


def test_an_import_is_enough(folder):
    done = run(sys.executable, "-c", "import ptxemu.cuda, program; print(program.name())", folder=folder)
    assert done.stdout == "ptxemu CPU\n", done.stderr


@pytest.mark.parametrize("way", [["program.py"], ["-m", "program"]])
def test_a_program_of_python(folder, way):
    done = run(sys.executable, "-m", "ptxemu.cuda", *way, "a b", "child", "-m", folder=folder)
    first, *others = done.stdout.splitlines()
    assert first == f"ptxemu CPU 0 {['a b', 'child', '-m']} __main__ {folder}", done.stderr
    assert others == ["child"]
    assert done.returncode == 4


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-x"], ["missing.py"]])
def test_no_program_is_an_error(folder, arguments):
    done = run(sys.executable, "-m", "ptxemu.cuda", *arguments, folder=folder)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and not done.stdout


def test_any_program(folder):
    done = run(sys.executable, "-m", "ptxemu", "cuda", "--", sys.executable, "program.py", "--help", "child", folder=folder)
    assert done.stdout.splitlines() == [f"ptxemu CPU 0 {['--help', 'child']} __main__ {folder}", "child"], done.stderr
    assert done.returncode == 3
    missing = run(sys.executable, "-m", "ptxemu", "cuda", "--", "no-such-program", folder=folder)
    assert missing.returncode == 2 and "no-such-program" in missing.stderr


def test_where_things_lie(folder):
    for option, place in (("path", library_path()), ("include", include_path()), ("ptxas", ptxas())):
        done = run(sys.executable, "-m", "ptxemu", "cuda", f"--print-{option}", folder=folder)
        assert done.stdout == f"{place}\n" and place.exists()


def test_variables_that_are_given_stay():
    given = {"LD_LIBRARY_PATH": f"/a:{library_path()}:/b c", "PTXEMU_PYTHON": "/other", "TRITON_PTXAS_PATH": "/ptxas", "X": "1"}
    made = environment(given)
    assert made["LD_LIBRARY_PATH"] == f"{library_path()}:/a:/b c"
    assert {name: made[name] for name in given if name != "LD_LIBRARY_PATH"} == {
        name: value for name, value in given.items() if name != "LD_LIBRARY_PATH"
    }
    assert environment({})["LD_LIBRARY_PATH"] == str(library_path())
    ours = str(library_path() / "libptxemu_preload.so")
    assert environment({})["LD_PRELOAD"] == ours
    assert environment(environment({"LD_PRELOAD": "/a.so /b.so"}))["LD_PRELOAD"] == f"/a.so:/b.so:{ours}"
    of_rr = "/rr/librrpreload.so::::libdl.so.2"
    assert environment(environment({"LD_PRELOAD": of_rr}))["LD_PRELOAD"] == f"{of_rr}:{ours}"


# ---- the Python that compiles ----

COMPILING = """
import ctypes, sys

cuda, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), 0), cuda.cuCtxSetCurrent(handle)
print(cuda.cuModuleLoad(ctypes.byref(handle), sys.argv[1].encode()))
"""


@pytest.mark.parametrize("way", ["PYTHONUSERBASE", "PYTHONPATH"])
def test_a_package_outside_of_the_interpreter_is_found(tmp_path, way):
    """As ``pip install --user`` and ``--target`` leave it, and the module systems of clusters."""
    base, needed = tmp_path / "base", sysconfig.get_path("purelib")
    packages = Path(sysconfig.get_path("purelib", sysconfig.get_preferred_scheme("user"), {"userbase": str(base)}))
    shutil.copytree(PACKAGE, packages / "ptxemu", ignore=shutil.ignore_patterns("python.path", "__pycache__"))
    (packages / "needed.pth").write_text(f"{needed}\n")  # of the user's packages alone
    (tmp_path / "program.py").write_text(COMPILING)
    found = {"PYTHONUSERBASE": str(base), "PYTHONPATH": f"{packages}{os.pathsep}{needed}"}
    python = Path(sys.base_prefix, "bin", "python3")
    command = [python, "-m", "ptxemu", "cuda", "--", python, "program.py", KERNELS]
    done = run(*command, folder=tmp_path, PTXEMU_CACHE=str(tmp_path / "cache"), **{way: found[way]})
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


# ---- ptxas ----


def ptxas() -> Path:
    return Path(environment({})["TRITON_PTXAS_PATH"])


def test_ptxas_says_a_version_as_ptxas_does(folder):
    done = run(ptxas(), "--version", folder=folder)
    assert re.search(r".*release (\d+\.\d+).*", done.stdout, re.MULTILINE)[1] == "13.0"


def test_ptxas_writes_what_the_driver_loads(folder):
    options = ["-lineinfo", "--fmad=false", "-v", "--opt-level", "0", "-O3", "--regAllocOptLevel=2", "--gpu-name=sm_80"]
    done = run(ptxas(), *options, KERNELS, "-o", "out.cubin", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "out.cubin").read_bytes() == KERNELS.read_bytes()


WRONG = [
    (["bad.ptx", "-o", "x"], "bad.ptx"),
    (["missing.ptx", "-o", "x"], "missing.ptx"),
    ([str(KERNELS), "--gpu-name=sm_70", "-o", "x"], "sm_75"),
    ([str(KERNELS), "-arch", "any", "-o", "x"], "'any' is not defined"),
    ([str(KERNELS), "--no-such-option"], "Unknown option '--no-such-option'"),
    ([str(KERNELS), "-o"], "-o needs a value"),
    ([str(KERNELS), "-o", "no/such/folder"], "cannot write no/such/folder"),
    ([], "one input file"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG)
def test_ptxas_refuses(folder, arguments, said):
    (folder / "bad.ptx").write_text(KERNELS.read_text().replace("mov.u32", "move.u32", 1))
    done = run(ptxas(), *arguments, folder=folder)
    assert done.returncode == 255 and said in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "x").exists()
