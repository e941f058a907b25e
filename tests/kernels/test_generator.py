"""What LLVM is given to generate code from: where it is no valid IR, that is an error, and the process goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ptxemu.driver.effort import FAST
from ptxemu.driver.jit import compile_object

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
