"""A version of LLVM that would end the process is an error instead."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

import ptxemu
from ptxemu.driver import compile, jit
from tests.support.kernel_tools import kernel


def test_an_old_version(monkeypatch: pytest.MonkeyPatch) -> None:
    module = compile.front(kernel("ret;"))
    jit._initialize.cache_clear()
    monkeypatch.setattr(llvm, "llvm_version_info", (20, 1, 8))
    monkeypatch.setattr(jit, "_idle_machines", type(jit._idle_machines)(list))
    with pytest.raises(ptxemu.Error, match=r"has LLVM 20; ptxemu needs 22"):
        compile.emit(module, "k", compile.Options(), "obj")
    monkeypatch.undo()
    assert compile.emit(module, "k", compile.Options(), "obj")
