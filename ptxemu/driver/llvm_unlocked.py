"""The calls of LLVM that may take long, without the one lock that llvmlite holds during every call.

LLVM may be used from several threads if each has a context of its own. But it has locks of its own too, and a child that is
forked while another thread has one can never use LLVM: a fork waits until no call is under way. All other calls go through
llvmlite and its lock, which a thread that forks holds.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from ptxemu.process.locks import hold_in_forks

lock = ffi.lib._lock
"""llvmlite's own: reentrant, held by a thread that forks."""


class _Calls:
    """Calls of LLVM under way: any number at a time, or a fork. A context manager for the thread that forks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._forks = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        with self._changed:
            while self._forks:
                self._changed.wait()
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def __enter__(self) -> None:
        with self._changed:
            self._forks += 1
            try:
                while self._count:
                    self._changed.wait()
            except BaseException:
                self._forks -= 1
                raise
        self._changed.acquire()

    def __exit__(self, *exception: object) -> None:
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()


_calls = _Calls()
LONG_CALLS = (
    "LLVMPY_ParseAssembly",
    "LLVMPY_VerifyModule",
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
)


@cache
def _library() -> ctypes.CDLL:
    """The library that llvmlite has loaded, once more; calls release the interpreter's lock."""
    library = ctypes.CDLL(ffi.lib._name)
    for name in LONG_CALLS:
        call, twin = getattr(library, name), getattr(ffi.lib, name)
        call.argtypes, call.restype = twin.argtypes, twin.restype
    return library


def parse(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """IR text as a module of a context that no other thread uses. Raises RuntimeError for what is wrong with it: in the code
    generator that would end the process."""
    with ffi.OutputString() as message:
        with _calls.one():
            module = llvm.ModuleRef(_library().LLVMPY_ParseAssembly(context, text.encode(), message), context)
            wrong = bool(message) or _library().LLVMPY_VerifyModule(module, message)
        if wrong:
            module.close()
            raise RuntimeError(f"LLVM IR: {message}")
    return module


def run_passes(passes: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    with _calls.one():
        _library().LLVMPY_RunNewModulePassManager(passes, module, builder)


def generate(machine: llvm.TargetMachine, module: llvm.ModuleRef, assembly: bool) -> bytes:
    """The module as an object, or as the text of its assembly."""
    with ffi.OutputString() as message:
        with _calls.one():
            buffer = _library().LLVMPY_TargetMachineEmitToMemory(machine, module, int(not assembly), message)
        if not buffer:
            raise RuntimeError(f"LLVM code generation: {message}")
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


hold_in_forks(_calls)
hold_in_forks(lock)
