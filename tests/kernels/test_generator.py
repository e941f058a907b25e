"""What LLVM is given to generate code from: where it is no valid IR, that is an error, and the process goes on."""

from __future__ import annotations

import re
import resource
import subprocess
import sys

import pytest

from ptxemu.driver import compile
from ptxemu.driver.effort import FAST
from ptxemu.driver.jit import compile_object
from tests.support.kernel_tools import HEADER

NOT_DOMINATED = """define i32 @f(i1 %c) {
  br i1 %c, label %some, label %all
some:
  %x = add i32 1, 2
  br label %all
all:
  ret i32 %x
}"""
OF_TWO_TYPES = "define i32 @f(i64 %x) {\n  ret i32 %x\n}"
COMPILE = "import sys; from ptxemu.driver import jit, effort; jit.compile_object(sys.argv[1], None, effort.FAST)"


@pytest.mark.parametrize("text", [NOT_DOMINATED, OF_TWO_TYPES, "define"])
def test_what_is_not_valid_is_an_error(text: str) -> None:
    done = subprocess.run([sys.executable, "-c", COMPILE, text], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "RuntimeError: LLVM IR: " in done.stderr


def test_what_is_valid_is_an_object() -> None:
    assert compile_object("define i32 @f() {\n  ret i32 1\n}", None, FAST).startswith(b"\x7fELF")


DIFFERENCES = "".join(f"  sub.u64 %d{i}, %d{i - 1}, %d{i - 2};\n" for i in range(5, 90))
DIFFERENCES_IN_A_LOOP = f"""{HEADER}.visible .entry k(.param .u64 out)
{{
  .reg .pred %p1; .reg .b64 %d<90>;
  ld.param.u64 %d1, [out]; mov.u64 %d2, 0;
AGAIN:
  mov.u64 %d3, %d2; add.u64 %d4, %d2, 16;
{DIFFERENCES}
  st.global.u64 [%d1], %d89; add.u64 %d2, %d2, 4; setp.lt.u64 %p1, %d2, 80; @%p1 bra AGAIN;
  ret;
}}"""
COMPILE_ALL = """import sys; from ptxemu.driver import compile
for tier in "fast", "best":
    compile.kernel(compile.front(sys.argv[1]), "k", compile.Options(tier=tier))"""
CPU_SECONDS = 100


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def test_values_each_made_of_the_two_before_it() -> None:
    """What LLVM finds of their ranges, it would find in a time that doubles with every third of them."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILE_ALL, DIFFERENCES_IN_A_LOOP], capture_output=True, preexec_fn=_limited, check=False
    )
    assert done.returncode == 0, done.stderr


def test_upper_halves_of_products_are_made_in_vectors() -> None:
    """In one of 128 bits, LLVM would make each of them by itself."""
    text = f"""{HEADER}.visible .entry k(.param .u64 out)
{{
  .reg .pred %p1; .reg .b32 %r<3>; .reg .b64 %d<4>;
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 16; add.u64 %d1, %d1, %d2;
  ld.global.v2.u64 {{%d2, %d3}}, [%d1]; mov.u32 %r2, 0;
AGAIN:
  mul.hi.u64 %d3, %d3, %d2; xor.b64 %d3, %d3, %d1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20; @%p1 bra AGAIN;
  st.global.u64 [%d1], %d3;
  ret;
}}"""
    code = compile.emit(compile.front(text), "k", compile.Options(), "llvm")
    assert isinstance(code, str)
    assert re.search(r"mul (nuw )?<32 x i64>", code)
    assert "x i128>" not in code
