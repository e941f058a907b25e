"""The elements of a vector, of up to 16 bytes, go to memory at once and come from it at once, as on GPUs.

A thread writes one number to all elements of a vector, then the next; another never sees two numbers in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel

ROUNDS = 100_000
TIMEOUT = 120.0
DONE = 8192  # bytes from the start to the word that says that the writer has ended


@dataclass(frozen=True)
class Vector:
    """``type`` as it is written, its size, and code: of %r10 to what is stored, and of what is loaded to %p1, that it is torn."""

    type: str
    size: int
    stored: str
    made: str
    loaded: str
    torn: str


def of_registers(count: int, kind: str, register: str, made: str, size: int) -> Vector:
    stored = "{" + ", ".join([f"{register}1"] * count) + "}"
    loaded = "{" + ", ".join(f"{register}{4 + k}" for k in range(count)) + "}"
    compare = kind.replace("u8", "u16")
    torn = [f"setp.ne.{compare} %p1, {register}4, {register}5;"]
    torn += [f"setp.ne.or.{compare} %p1, {register}4, {register}{4 + k}, %p1;" for k in range(2, count)]
    return Vector(f"v{count}.{kind}", size, stored, made.format(f"{register}1"), loaded, " ".join(torn))


VECTORS = {
    "v2.u32": of_registers(2, "u32", "%r3", "mov.u32 {}, %r10;", 8),
    "v4.u32": of_registers(4, "u32", "%r3", "mov.u32 {}, %r10;", 16),
    "v2.u64": of_registers(2, "u64", "%rd2", "cvt.u64.u32 {}, %r10;", 16),
    "v4.u16": of_registers(4, "u16", "%h1", "cvt.u16.u32 {}, %r10;", 8),
    "v4.u8": of_registers(4, "u8", "%h1", "and.b32 %r11, %r10, 255; cvt.u16.u32 {}, %r11;", 4),
    "b128": Vector("b128", 16, "%q1", "cvt.u64.u32 %rd10, %r10; mov.b128 %q1, {%rd10, %rd10};", "%q2",
                   "mov.b128 {%rd11, %rd12}, %q2; setp.ne.u64 %p1, %rd11, %rd12;"),
}  # fmt: skip
# Where the lanes of both threads' warps go: one lane to one place, neighbours, and scattered ones.
PLACES = {
    "one": (1, "mov.u32 %r1, 0;"),
    "row": (32, "mov.u32 %r1, %tid.x; mul.lo.u32 %r1, %r1, {size};"),
    "scattered": (32, "mov.u32 %r1, %tid.x; mul.lo.u32 %r1, %r1, %r1; rem.u32 %r1, %r1, 47; mul.lo.u32 %r1, %r1, 48;"),
}
SEMANTICS = {"relaxed": (".relaxed.gpu", ".relaxed.gpu"), "volatile": (".volatile", ".volatile"), "L2": (".cg", ".cg")}


def program(vector: Vector, place: str, store: str, load: str) -> str:
    """CTA 0 writes, CTA 1 reads until it has ended, and counts what was torn."""

    def access(name: str, semantics: str) -> str:
        weak = semantics == ".cg"
        return f"{name}.global{semantics}.{vector.type}" if weak else f"{name}{semantics}.global.{vector.type}"

    body = f"""{place.format(size=vector.size)}
  .reg .b128 %q<3>;
  ld.param.u64 %rd4, [cells]; ld.param.u64 %rd5, [torn]; cvt.u64.u32 %rd6, %r1; add.u64 %rd6, %rd4, %rd6;
  mov.u32 %r2, %tid.x; mul.wide.u32 %rd7, %r2, 4; add.u64 %rd5, %rd5, %rd7;
  mov.u32 %r10, 0; mov.u32 %r20, 0; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r2, 0; @%p1 bra WRITE;
READ:
  {access("ld", load)} {vector.loaded}, [%rd6]; {vector.torn} @%p1 add.u32 %r20, %r20, 1;
  ld.acquire.gpu.global.u32 %r12, [%rd4+{DONE}]; setp.eq.u32 %p2, %r12, 0; @%p2 bra READ;
  st.global.u32 [%rd5], %r20; ret;
WRITE:
  add.u32 %r10, %r10, 1; {vector.made} {access("st", store)} [%rd6], {vector.stored};
  setp.lt.u32 %p1, %r10, {ROUNDS}; @%p1 bra WRITE;
  st.release.gpu.global.u32 [%rd4+{DONE}], 1; ret;"""
    return kernel(body, ".param .u64 cells, .param .u64 torn").replace(".version 8.0", ".version 8.3")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_are_never_torn(name: str, place: str, semantics: str) -> None:
    threads, where = PLACES[place]
    cells, torn = np.zeros(DONE // 4 + 1, np.uint32), np.full(threads, 99, np.uint32)
    module = ptxemu.loads(program(VECTORS[name], where, *SEMANTICS[semantics]), device=ptxemu.Device(workers=2))
    module["k"][2, threads](cells, torn, timeout=TIMEOUT)
    assert not torn.any(), torn.tolist()


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_no_window_is_stored_of_elements_of_16_bytes(semantics: str) -> None:
    """As stores of vectors may go to memory word by word."""
    module = compile.front(program(VECTORS["b128"], PLACES["row"][1], *SEMANTICS[semantics]))
    code = str(compile.emit(module, "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    assert not re.search(r"masked\.store\.v\d+i128|store <\d+ x i128>.*, align 16\b", code)
