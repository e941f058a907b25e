"""Programs and libraries that have CUDA's runtime linked in: its functions are replaced before anything of them runs."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

from ptxemu.images.fatbin import PTX
from ptxemu.process.cuda import environment, library_path
from tests.images.test_fatbin import fat
from tests.support.driver_api import POINTER, DriverError, call
from tests.support.places import ROOT, TESTS

DATA = TESTS / "cuda" / "data"
SECONDS = 300
# What nvcc links in calls the driver; this stand-in says that it was called.
FUNCTION = 'int {name}(void) {{ puts("linked in: {name}"); exit(3); }}\n'
PROGRAM = """
#include <cstdio>
__device__ int total;
__global__ void add(const int *in, int n) { if (threadIdx.x < n) atomicAdd(&total, in[threadIdx.x]); }
int main() {
  int *in, sum;
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  cudaMallocManaged(&in, 10 * sizeof *in);
  for (int i = 0; i < 10; i++) in[i] = i;
  add<<<1, 32>>>(in, 10);
  cudaError_t error = cudaMemcpyFromSymbol(&sum, total, sizeof sum);
  printf("%s: %d, %s\\n", properties.name, sum, cudaGetErrorName(error));
}
"""


# A program whose runtime is in a library: one that it is linked with, or that it opens.
OPENS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments) {
  for (int i = 1; i < count - 2; i++)
    if (!dlopen(arguments[i], RTLD_NOW)) return puts(dlerror()), 1;
  void *library = dlopen(arguments[count - 3], RTLD_NOW);
  int (*start)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "start") : 0;
  return start ? start(3, arguments + count - 3) : 2;
}
"""
CALLS = "int start(int, char **); int main(int count, char **arguments) { return start(count, arguments); }"


def compiled(folder: Path, sources: list[Path], *options: str, name: str = "host") -> Path:
    made = folder / name
    always = ["-std=gnu11", "-O0", "-D_GNU_SOURCE", "-pthread", "-fno-builtin"]
    always += [f"-I{folder}" for folder in (ROOT / "cuda", ROOT / "cuda" / "driver", DATA)]
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *always, *options, "-o", made, *sources], check=True)
    return made


def stand_ins(folder: Path, version: str) -> Path:
    """All functions of a version of the runtime."""
    lines = [line.split() for line in (ROOT / "cuda" / "names" / "cudart.txt").read_text().splitlines() if line[0] != "#"]
    names = [line[0] for line in lines if version in line[1:] or not line[1:]]
    made = folder / "runtime.c"
    head = '#include <stdio.h>\n#include <stdlib.h>\nconst char *ptxemu_last_fault(void) { return ""; }\n'
    made.write_text(head + "".join(FUNCTION.format(name=name) for name in names))
    return made


@pytest.fixture(scope="module", params=["12", "13"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linked_in")
    (folder / "kernels.fatbin").write_bytes(fat((PTX, 75, (DATA / "kernels.ptx").read_bytes())))
    runtime = stand_ins(folder, request.param)
    return compiled(folder, [*sorted(DATA.glob("*.c")), runtime], f"-DVERSION={request.param}")


def run(program: Path, *arguments: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [program, *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)


def started(program: Path, what: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(program, str(program.parent / "kernels.fatbin"), what, variables=environment({**os.environ, **variables}))


@pytest.mark.parametrize("what", ["add", "arrays", "mixed memory"])
def test_a_runtime_that_is_linked_in_is_replaced(program, what):
    done = started(program, what)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "linked in" not in done.stdout


@pytest.fixture(scope="module")
def library(program: Path) -> Path:
    """The same program as a library, with its runtime."""
    folder = program.parent
    version = "12" if "cudaGetDeviceProperties_v2" in (folder / "runtime.c").read_text() else "13"
    options = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Dmain=start", f"-DVERSION={version}"]
    return compiled(folder, [*sorted(DATA.glob("*.c")), folder / "runtime.c"], *options, name="libkernels.so")


@pytest.mark.parametrize("what", ["add", "arrays"])
def test_a_library_that_a_program_is_linked_with(library, what):
    (library.parent / "calls.c").write_text(CALLS)
    made = compiled(library.parent, [library.parent / "calls.c", library], f"-Wl,-rpath,{library.parent}", name="calls")
    done = started(made, what)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "linked in" not in done.stdout


@pytest.fixture(scope="module")
def opener(library: Path) -> Path:
    (library.parent / "opens.c").write_text(OPENS)
    return compiled(library.parent, [library.parent / "opens.c"], "-ldl", name="opens")


def test_a_library_that_a_program_opens(library, opener):
    others = ["libutil.so.1", "libresolv.so.2", "libnsl.so.1"]  # so that the loader's list grows in several steps
    there = [name for name in others if find_library(name.removeprefix("lib").partition(".")[0])]
    kernels = str(library.parent / "kernels.fatbin")
    done = run(opener, *there, str(library), kernels, "add", variables=environment(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "linked in" not in done.stdout


def test_a_library_that_python_opens(library):
    lines = f"""
import ctypes
import {{first}}
library = ctypes.CDLL({str(library)!r})
words = (ctypes.c_char_p * 3)(b"", {str(library.parent / "kernels.fatbin")!r}.encode(), b"add")
raise SystemExit(library.start(3, words))
"""
    plain = {name: value for name, value in os.environ.items() if name not in {"LD_PRELOAD", "LD_LIBRARY_PATH"}}
    for first, variables in (("sys", environment(os.environ)), ("ptxemu.cuda", plain)):
        done = run(Path(sys.executable), "-c", lines.format(first=first), variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "linked in" not in done.stdout


def test_nvrtc_gives_ptx_for_machine_code(tmp_path):
    """A stand-in of NVRTC, whose results a program takes for cubins."""
    text = (DATA / "kernels.ptx").read_text()
    (tmp_path / "nvrtc.c").write_text(
        "#include <stddef.h>\n#include <string.h>\n"
        f"static const char text[] = {{{', '.join(str(byte) for byte in text.encode())}, 0}};\n"
        "#define ALIGNED __attribute__((aligned(16)))\n"
        "ALIGNED int nvrtcGetPTXSize(void *p, size_t *size) { *size = sizeof text; return 0; }\n"
        "ALIGNED int nvrtcGetPTX(void *p, char *out) { memcpy(out, text, sizeof text); return 0; }\n"
        "ALIGNED int nvrtcGetCUBINSize(void *p, size_t *size) { *size = 4; return 0; }\n"
        'ALIGNED int nvrtcGetCUBIN(void *p, char *out) { memcpy(out, "\\x7f" "ELF", 4); return 0; }\n'
    )
    library = compiled(tmp_path, [tmp_path / "nvrtc.c"], "-shared", "-fPIC", name="libnvrtc.so.13")
    subprocess.run(["strip", library], check=True)
    lines = f"""
import ctypes
nvrtc, cuda, size, module = ctypes.CDLL({str(library)!r}), ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t(), ctypes.c_void_p()
assert nvrtc.nvrtcGetCUBINSize(None, ctypes.byref(size)) == 0
image = ctypes.create_string_buffer(size.value)
assert nvrtc.nvrtcGetCUBIN(None, image) == 0
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
print(size.value, cuda.cuModuleLoadData(ctypes.byref(module), image))
"""
    done = run(Path(sys.executable), "-c", lines, variables=environment(os.environ))
    assert done.stdout == f"{len(text) + 1} 0\n", done.stderr


def test_without_help_it_is_not(program):
    plain = {name: value for name, value in environment(os.environ).items() if name != "LD_PRELOAD"}
    done = run(program, str(program.parent / "kernels.fatbin"), "add", variables=plain)
    assert (done.returncode, done.stdout) == (3, "linked in: __cudaRegisterFatBinary\n")


def test_a_stripped_program_is_left_alone(program, tmp_path):
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    done = run(stripped, str(program.parent / "kernels.fatbin"), "add", variables=environment(os.environ))
    assert done.returncode == 3


def test_a_runtime_that_is_too_old_is_said(tmp_path):
    source = tmp_path / "old.c"
    source.write_text(
        "int cudaBindTexture(void) { return 1; }\nint __cudaRegisterFatBinary(void) { return cudaBindTexture(); }\n"
        "int main(void) { return __cudaRegisterFatBinary(); }\n"
    )
    done = run(compiled(tmp_path, [source]), variables=environment(os.environ))
    assert done.returncode == 1
    assert "it is of CUDA 10 or older; link with -cudart shared" in done.stderr


def test_a_damaged_table_of_symbols_is_left_alone(program, tmp_path):
    whole = bytearray(program.read_bytes())
    sections = int.from_bytes(whole[40:48], "little")
    for at, value in ((40, 1 << 63), (40, len(whole) - 8), (sections + 64 * 2 + 24, 1 << 62)):
        broken = whole.copy()
        broken[at : at + 8] = value.to_bytes(8, "little")
        for index in range(int.from_bytes(whole[60:62], "little")):
            place = sections + 64 * index
            if at != 40 and int.from_bytes(whole[place + 4 : place + 8], "little") == 2:  # SHT_SYMTAB
                broken[place + 32 : place + 40] = (1 << 60).to_bytes(8, "little")
        path = tmp_path / "broken"
        path.write_bytes(broken)
        path.chmod(0o755)
        done = run(path, str(program.parent / "kernels.fatbin"), "add", variables=environment(os.environ))
        assert done.returncode == 3, done.stderr


def test_programs_without_cuda_are_left_alone():
    done = run(Path(sys.executable), "-c", "print(1)", variables=environment(os.environ))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_the_runtimes_tables_are_not_there(capfd):
    out = POINTER()
    with pytest.raises(DriverError, match="NOT_SUPPORTED"):
        call("cuGetExportTable", ctypes.byref(out), b"0123456789abcdef")
    said = capfd.readouterr().err
    assert "run the program with 'ptxemu cuda -- PROGRAM'" in said and str(library_path()) not in said


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not here")
def test_a_library_that_nvcc_makes_by_default(tmp_path):
    source = tmp_path / "library.cu"
    source.write_text(PROGRAM.replace("int main()", 'extern "C" int start()').replace("  printf", "  return printf"))
    made = tmp_path / "library.so"
    options = ["-gencode", "arch=compute_75,code=compute_75", "--compress-mode=none", "-shared", "-Xcompiler", "-fPIC"]
    subprocess.run(["nvcc", *options, "-o", made, source], check=True, timeout=SECONDS)
    lines = f"import ctypes; ctypes.CDLL({str(made)!r}).start()"
    done = run(Path(sys.executable), "-c", lines, variables=environment(os.environ))
    assert done.stdout == "ptxemu CPU: 45, cudaSuccess\n", done.stderr


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not here")
@pytest.mark.parametrize("options", [[], ["-rdc=true"]])
def test_what_nvcc_makes_by_default_runs(tmp_path, options):
    source = tmp_path / "program.cu"
    source.write_text(PROGRAM)
    made = tmp_path / "program"
    arch = ["-gencode", "arch=compute_75,code=compute_75", "--compress-mode=none"]
    subprocess.run(["nvcc", *arch, *options, "-o", made, source], check=True, timeout=SECONDS)
    done = run(made, variables=environment(os.environ))
    assert done.stdout == "ptxemu CPU: 45, cudaSuccess\n", done.stderr
