"""nvJitLink, which makes machine code: what it links is PTX where its functions are replaced. A stand-in takes its place."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ptxemu.process.cuda import environment

SECONDS = 300
HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
CALLED = ".visible .func (.param .b32 r) three() { .reg .b32 %a; mov.b32 %a, 3; st.param.b32 [r], %a; ret; }\n"
EXTERN = ".extern .func (.param .b32 r) three();\n"
KERNEL = """
.visible .entry store(.param .u64 out)
{
  .reg .b64 %p; .reg .b32 %v; .param .b32 r;
  ld.param.u64 %p, [out];
  call.uni (r), three, ();
  ld.param.b32 %v, [r];
  st.global.b32 [%p], %v;
  ret;
}
"""
# It makes PTX of LTO-IR, which is PTX behind a magic number, if it is told to; nothing else is its own.
STAND_IN = r"""
#include <stdlib.h>
#include <string.h>
typedef struct { int ptx; char text[4096]; } link;
#define API(name, ...) int __##name##_13_0(__VA_ARGS__) __attribute__((alias(#name))); int name(__VA_ARGS__)
API(nvJitLinkCreate, link **out, unsigned count, const char **options) {
  *out = calloc(1, sizeof **out);
  for (unsigned i = 0; i < count; i++) {
    if (!strcmp(options[i], "-wrong")) return 1;
    (*out)->ptx |= !strcmp(options[i], "-ptx");
  }
  return 0;
}
API(nvJitLinkDestroy, link **one) { free(*one); return 0; }
API(nvJitLinkAddData, link *one, int type, const void *data, size_t size, const char *name) {
  if (type != 3 || memcmp(data, "\xed\x43\x4e\x7f", 4)) return 8;
  memcpy(one->text, (const char *)data + 4, size - 4);
  return 0;
}
API(nvJitLinkAddFile, link *one, int type, const char *path) { return 8; }
API(nvJitLinkComplete, link *one) { return strstr(one->text, ".entry") || strstr(one->text, ".func") ? 0 : 5; }
API(nvJitLinkGetLinkedCubinSize, link *one, size_t *size) { return 6; }
API(nvJitLinkGetLinkedCubin, link *one, void *out) { return 6; }
API(nvJitLinkGetLinkedPtxSize, link *one, size_t *size) { *size = strlen(one->text) + 1; return one->ptx ? 0 : 11; }
API(nvJitLinkGetLinkedPtx, link *one, char *out) { strcpy(out, one->text); return one->ptx ? 0 : 11; }
API(nvJitLinkGetErrorLogSize, link *one, size_t *size) { *size = sizeof "its own"; return 0; }
API(nvJitLinkGetErrorLog, link *one, char *out) { strcpy(out, "its own"); return 0; }
API(nvJitLinkGetInfoLogSize, link *one, size_t *size) { *size = 1; return 0; }
API(nvJitLinkGetInfoLog, link *one, char *out) { *out = 0; return 0; }
"""
# What the tests below begin with, in a process of its own.
LINES = """
import ctypes, sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
cuda, context, module = ctypes.CDLL("libcuda.so.1"), c_void_p(), c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(byref(context), 0) == 0 and cuda.cuCtxSetCurrent(context) == 0
jit = ctypes.CDLL(sys.argv[1])
PTX, CUBIN, LTOIR, OBJECT, LIBRARY, ANY = 2, 1, 3, 5, 6, 10
MAGIC = bytes.fromhex("ed434e7f")

def create(*options):
    link = c_void_p()
    return jit.nvJitLinkCreate(byref(link), len(options), (c_char_p * len(options))(*options)), link

def add(link, kind, data):
    return jit.nvJitLinkAddData(link, kind, c_char_p(data), c_size_t(len(data)), b"input")

def log(link):
    size = c_size_t()
    assert jit.nvJitLinkGetErrorLogSize(link, byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert jit.nvJitLinkGetErrorLog(link, text) == 0
    return text.value.decode()

def run(link):
    size = c_size_t()
    assert jit.__getattr__("__nvJitLinkGetLinkedCubinSize_13_0")(link, byref(size)) == 0
    image = ctypes.create_string_buffer(size.value)
    assert jit.nvJitLinkGetLinkedCubin(link, image) == 0
    kernel, memory, result = c_void_p(), c_uint64(), c_int()
    assert cuda.cuModuleLoadData(byref(module), image) == 0
    assert cuda.cuModuleGetFunction(byref(kernel), module, b"store") == 0
    assert cuda.cuMemAlloc_v2(byref(memory), c_size_t(4)) == 0
    arguments = (c_void_p * 1)(ctypes.addressof(memory))
    assert cuda.cuLaunchKernel(kernel, *[1] * 6, 0, None, arguments, None) == 0
    assert cuda.cuMemcpyDtoH_v2(byref(result), memory, c_size_t(4)) == 0
    return result.value
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvjitlink")
    (folder / "linker.c").write_text(STAND_IN)
    made = folder / "libnvJitLink.so.13"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    subprocess.run([*compiler, "-shared", "-fPIC", "-w", "-o", made, folder / "linker.c"], check=True)
    return made


def said(library: Path, lines: str, variables: dict[str, str] | None = None) -> list[str]:
    texts = f"whole, kernel, called = {[(HEAD + text).encode() for text in (CALLED + KERNEL, EXTERN + KERNEL, CALLED)]}\n"
    command = [sys.executable, "-c", LINES + texts + lines, library]
    given = environment(os.environ) if variables is None else variables
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_linked_runs(library):
    lines = """
for inputs in (
    [(PTX, whole)],
    [(CUBIN, whole)],
    [(ANY, kernel), (PTX, called), (LIBRARY, b"!<arch>")],
    [(LTOIR, MAGIC + whole)],
    [(PTX, kernel), (ANY, MAGIC + called)],
):
    error, link = create(b"-arch=sm_80", b"-lto")
    print(error, *[add(link, *each) for each in inputs], jit.nvJitLinkComplete(link), "makes", run(link))
    assert jit.nvJitLinkDestroy(byref(link)) == 0
"""
    alone, together = "0 0 0 makes 3", "0 0 0 0 makes 3"
    assert said(library, lines) == [alone, alone, "0 0 0 0 0 makes 3", alone, together]


def test_files_are_inputs(library, tmp_path):
    (tmp_path / "module.ptx").write_text(HEAD + CALLED + KERNEL)
    lines = f"""
_, link = create(b"-arch=sm_80")
path = {str(tmp_path)!r}.encode()
print(jit.nvJitLinkAddFile(link, PTX, path + b"/nothing"), log(link))
print(jit.nvJitLinkAddFile(link, PTX, path + b"/module.ptx"), jit.nvJitLinkComplete(link), run(link))
"""
    assert said(library, lines) == ["3 a file cannot be read", "0 0 3"]


def test_what_is_wrong_is_an_error(library):
    lines = """
print(create(b"-wrong")[0])
_, link = create(b"-arch=sm_80")
print(jit.nvJitLinkComplete(link), add(link, PTX, b""), add(link, OBJECT, b"1234"), log(link))
print(add(link, CUBIN, b"\\x7fELF"), jit.nvJitLinkGetLinkedCubin(link, None))
print(add(link, PTX, called), add(link, PTX, whole), jit.nvJitLinkComplete(link), "twice" in log(link))
_, other = create(b"-arch=sm_80", b"-lto")
print(add(other, LTOIR, MAGIC + b"nothing"), jit.nvJitLinkComplete(other), log(other))
gone = c_void_p(other.value)
print(jit.nvJitLinkDestroy(byref(other)), other.value, jit.nvJitLinkComplete(gone), jit.nvJitLinkComplete(c_void_p(64)))
"""
    assert said(library, lines) == [
        "1",
        "3 3 12 only PTX, fat binaries that hold it, and LTO-IR can be linked",
        "12 3",
        "0 0 9 True",
        "0 5 its own",
        "0 None 3 3",
    ]


def test_a_program_may_ask_for_the_ptx(library):
    lines = """
_, link = create(b"-arch=sm_80", b"-lto", b"-ptx")
text = ctypes.create_string_buffer(4096)
print(add(link, LTOIR, MAGIC + called), jit.nvJitLinkComplete(link), jit.nvJitLinkGetLinkedPtx(link, text), text.value == called)
print(jit.nvJitLinkGetLinkedCubinSize(link, byref(c_size_t())))
"""
    assert said(library, lines) == ["0 0 0 True", "3"]


def test_without_help_it_is_not_replaced(library):
    plain = {name: value for name, value in environment(os.environ).items() if name != "LD_PRELOAD"}
    assert said(library, '_, link = create(b"-arch=sm_80")\nprint(add(link, PTX, whole))', plain) == ["8"]
