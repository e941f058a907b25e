"""What executes kernels: the compiler, whose code the runtime's threads run, or the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ptxemu.device.code import KernelCode
from ptxemu.device.launch import Run
from ptxemu.device.launch_limits import Extent
from ptxemu.driver.program import Program
from ptxemu.process.locks import importing


class Loaded(Protocol):
    """A kernel that is ready to run. ``address`` is that of its code, or any other than 0."""

    @property
    def address(self) -> int: ...


class Engine(Protocol):
    """``load`` raises UnsupportedError for what the engine cannot run; ``watch`` is told of a launch whose code is not final, and
    returns what is to be called when it ends; ``runs`` makes the object that executes it."""

    def load(self, program: Program, kernel: str, block: Extent) -> tuple[KernelCode, Loaded]: ...

    def watch(self, program: Program, kernel: str, block: Extent) -> Callable[[], None]: ...

    def runs(self, loaded: Any) -> Callable[..., Run]: ...


class Compiler:
    """Machine code through LLVM."""

    def load(self, program: Program, kernel: str, block: Extent) -> tuple[KernelCode, Loaded]:
        return program.load(kernel, block)

    def watch(self, program: Program, kernel: str, block: Extent) -> Callable[[], None]:
        return program.watch(kernel, block)

    def runs(self, loaded: Any) -> Callable[..., Run]:
        return Run


_compiler = Compiler()


def engine_of(name: str) -> Engine:
    """The engine of a name in :data:`ptxemu.device.device.ENGINES`; the interpreter is imported when it is first wanted."""
    if name == "jit":
        return _compiler
    with importing:
        from ptxemu.interpreter.engine import Interpreter

    return Interpreter()
