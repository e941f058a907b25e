"""ptxemu_embed.h: programs in C that run PTX, and what each function says of wrong use."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ptxemu.images.fatbin import PTX
from ptxemu.process.cuda import include_path, library_path
from tests.images.test_fatbin import fat
from tests.support.kernel_tools import kernel
from tests.support.places import KERNELS as PTX_FILES
from tests.support.places import ROOT, TESTS

DATA = TESTS / "cuda" / "data"
KERNELS = DATA / "kernels.ptx"
SECONDS = 300
OK, INVALID, BAD_PTX, UNSUPPORTED, NOT_FOUND, NO_MEMORY, FAULT, TIMEOUT = range(8)
SPIN = kernel(
    "ld.param.u64 %rd1, [out]; AGAIN: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN; ret;"
)


class Shape(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_size_t), ("cooperative", ctypes.c_int),
        ("timeout_ms", ctypes.c_uint),
    )  # fmt: skip


@cache
def library() -> ctypes.CDLL:
    os.environ.setdefault("PTXEMU_PYTHON", sys.executable)
    made = ctypes.CDLL(str(library_path() / "libptxemu_embed.so"))
    made.ptxemu_problem.restype, made.ptxemu_alloc.restype = ctypes.c_char_p, ctypes.c_void_p
    made.ptxemu_alloc.argtypes = [ctypes.c_size_t]
    return made


def problem() -> str:
    return library().ptxemu_problem().decode()


def load(text: str | bytes, status: int = OK) -> ctypes.c_void_p:
    data, module = text.encode() if isinstance(text, str) else text, ctypes.c_void_p()
    assert library().ptxemu_load(data, ctypes.c_size_t(len(data)), ctypes.byref(module)) == status, problem()
    assert bool(module) == (status == OK)
    return module


def find(module: ctypes.c_void_p, name: str, status: int = OK) -> ctypes.c_void_p:
    found = ctypes.c_void_p()
    assert library().ptxemu_find(module, name.encode(), ctypes.byref(found)) == status, problem()
    return found


def launch(found: ctypes.c_void_p, grid: int, block: int, *values: object, **options: int) -> int:
    shape = Shape((grid, 0, 0), (block, 0, 0), options.get("shared", 0), 0, options.get("timeout_ms", 0))
    places = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
    return int(library().ptxemu_launch(found, ctypes.byref(shape), places if values else None))


def memory(count: int, dtype: str = "f4") -> tuple[ctypes.c_void_p, np.ndarray]:
    size = count * np.dtype(dtype).itemsize
    address = library().ptxemu_alloc(size)
    return ctypes.c_void_p(address), np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


def compiled(source: Path, folder: Path) -> Path:
    """A program, built as the header says."""
    made = folder / source.stem
    path = library_path()
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{include_path()}"]
    libraries = [f"-L{path}", "-lptxemu_embed", f"-Wl,-rpath,{path}"]
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *options, "-o", made, source, *libraries], check=True)
    return made


def said(program: Path, *arguments: Path | str) -> list[str]:
    variables = {"PTXEMU_PYTHON": sys.executable, **os.environ}
    done = subprocess.run([program, *arguments], env=variables, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


def test_the_example_of_the_documents(tmp_path):
    program = compiled(ROOT / "docs" / "examples" / "saxpy.c", tmp_path)
    assert said(program, ROOT / "samples" / "saxpy" / "kernel.ptx") == ["right"]


def test_options(tmp_path):
    *lines, first, second, third = said(compiled(TESTS / "cuda" / "programs" / "embed_options.c", tmp_path), KERNELS)
    assert lines == [
        f"{INVALID} size is not that of ptxemu_options",
        f"{INVALID} arch must be 75 to 121, not 20",
        f"{OK}",
        f"{INVALID} the device has been started already",
        f"{OK}", f"{OK}", f"{FAULT}",
        f"7 7 out of device memory: {32 << 20} bytes wanted",
        f"{OK}",
    ]  # fmt: skip
    assert [first, second, third] == [f"hello {number} of 3" for number in range(3)]


SINE = kernel("ld.param.u64 %rd1, [out]; sin.approx.f32 %f1, 0f3DCCCCCD; st.global.f32 [%rd1], %f1; ret;")


@pytest.mark.parametrize(
    ("like", "target", "bits"),
    [("sm_89", "sm_89", "0x3dcc7566"), ("exact", "sm_80", "0x3dcc7576"), ("an older program", "sm_89", "0x3dcc7576")],
)
def test_a_device_is_like_an_architecture(tmp_path, like, target, bits):
    (tmp_path / "kernel.ptx").write_text(SINE.replace("sm_80", target))
    unknown = f"{INVALID} like must be an architecture such as sm_89 or exact, not sm_8x"
    program = compiled(TESTS / "cuda" / "programs" / "embed_like.c", tmp_path)
    assert said(program, tmp_path / "kernel.ptx", like) == [unknown, f"{OK}", bits]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_the_header_is_cpp(tmp_path):
    source = tmp_path / "program.cpp"
    source.write_text("#include <ptxemu_embed.h>\nint main() { return PTXEMU_OK; }\n")
    subprocess.run(
        ["c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{include_path()}", "-fsyntax-only", source], check=True
    )


@pytest.mark.parametrize("image", ["text", "fat"])
def test_kernels_run(image):
    data = KERNELS.read_bytes()
    module = load(fat((PTX, 75, data)) if image == "fat" else data)
    (a, left), (b, right), (c, out) = memory(1000), memory(1000), memory(1000)
    left[:], right[:] = np.arange(1000), np.arange(1000) ** 2
    assert launch(find(module, "add"), 8, 128, a, b, c, ctypes.c_int(1000)) == OK
    assert np.array_equal(out, left + right)
    for address in (a, b, c):
        assert library().ptxemu_free(address) == OK
    assert library().ptxemu_free(a) == INVALID and "not the address of an allocation" in problem()
    library().ptxemu_unload(module)


def test_kernels_run_in_clusters():
    module, (where, out) = load((PTX_FILES / "clusters.ptx").read_text()), memory(6 * 64, "u4")
    ring, required = find(module, "ring"), find(module, "required")
    values = where, ctypes.c_uint(1)
    places = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    start = np.arange(6)[:, None] * 1000 + np.arange(64)

    def launch_in(kernel: ctypes.c_void_p, blocks: int, cluster: tuple[int, int, int]) -> int:
        shape = Shape((blocks, 0, 0), (64, 0, 0), 0, 0, 0)
        return int(library().ptxemu_launch_clusters(kernel, ctypes.byref(shape), (ctypes.c_uint * 3)(*cluster), places))

    for size in (1, 2, 3, 6):
        assert launch_in(ring, 6, (size, 0, 0)) == OK, problem()
        rings = np.roll(start.reshape(-1, size, 64), 1, axis=1).reshape(6, 64)
        np.testing.assert_array_equal(out.reshape(6, 64), rings)
    assert launch_in(ring, 6, (4, 1, 1)) == INVALID and "cluster" in problem()
    assert launch_in(required, 4, (4, 1, 1)) == INVALID and "cluster" in problem()
    assert launch(required, 2, 1, where) == INVALID and "cluster" in problem()


def test_variables():
    module, address, size = load(KERNELS.read_bytes()), ctypes.c_void_p(), ctypes.c_size_t()
    assert library().ptxemu_variable(module, b"factors", ctypes.byref(address), ctypes.byref(size)) == OK
    np.frombuffer((ctypes.c_char * size.value).from_address(address.value), "f4")[:] = 3
    where, out = memory(32)
    assert launch(find(module, "scale"), 1, 32, where) == OK
    assert np.array_equal(out, 3 * np.arange(32))
    assert library().ptxemu_variable(module, b"missing", ctypes.byref(address), None) == NOT_FOUND
    assert problem() == "the module has no variable `missing`"


def test_a_fault_leaves_the_device_as_it_is():
    module = load(KERNELS.read_bytes())
    store, (where, out) = find(module, "store"), memory(128, "i4")
    for address, text in ((8, "null pointer"), (1 << 45, "illegal address"), (where.value + 512, "past the end")):
        assert launch(store, 1, 1, ctypes.c_uint64(address)) == FAULT
        assert "in kernel `store` at line:" in problem() and text in problem()
        assert launch(store, 1, 1, where) == OK and problem() == ""
        assert out[0] == 7


def test_texts_that_are_wrong_say_why(capfd):
    load(KERNELS.read_text().replace("mov.u32", "move.u32"), BAD_PTX)
    assert "move" in problem()
    load("", BAD_PTX)
    load(b"\x7fELF" + bytes(100), UNSUPPORTED)
    assert problem()
    assert capfd.readouterr().err == ""


def test_wrong_launches():
    module = load(KERNELS.read_bytes())
    find(module, "missing", NOT_FOUND)
    add = find(module, "add")
    assert launch(add, 1, 2000) == INVALID and "2000" in problem()
    assert launch(add, 1, 32) == INVALID and "bytes of arguments" in problem()
    assert launch(add, 1, 32, *[ctypes.c_uint64()] * 4, shared=300 << 10) == INVALID and "shared" in problem()
    assert library().ptxemu_launch(None, None, None) == INVALID
    assert library().ptxemu_find(None, b"add", None) == INVALID
    assert library().ptxemu_load(None, ctypes.c_size_t(0), None) == INVALID
    assert library().ptxemu_free(None) == OK
    library().ptxemu_unload(None)


def test_a_launch_can_be_stopped():
    spin, (where, out) = find(load(SPIN), "k"), memory(1, "i4")
    assert launch(spin, 1, 32, where, timeout_ms=100) == TIMEOUT
    assert problem() == "the kernel was stopped after 100 ms"
    out[0] = 1
    assert launch(spin, 1, 32, where, timeout_ms=10_000) == OK


def test_threads_have_their_own_problems():
    module = load(KERNELS.read_bytes())
    store, found = find(module, "store"), {}

    def work(number: int) -> None:
        where, out = memory(1, "i4")
        for _ in range(20):
            wrong = launch(store, 1, 1, ctypes.c_uint64(4096 * (number + 2)))
            found[number] = (wrong, f"0x{4096 * (number + 2):x}" in problem(), launch(store, 1, 1, where), int(out[0]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), (FAULT, True, OK, 7))
