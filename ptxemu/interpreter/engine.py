"""The interpreter as an engine: how it loads kernels and runs launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from ptxemu._runtime import ffi, lib
from ptxemu.device.code import Facts, KernelCode
from ptxemu.device.launch import LaunchResult, Run
from ptxemu.device.launch_limits import Extent
from ptxemu.driver.program import Program
from ptxemu.interpreter.image import Image, image_of
from ptxemu.interpreter.lane import Stopped
from ptxemu.interpreter.machine import Grid
from ptxemu.interpreter.observer import Tap, Watch, current
from ptxemu.interpreter.standing import stuck
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.source_lines import SourceLines
from ptxemu.text.errors import Error, Fault, InputError, LaunchTimeout

POLL_SECONDS = 0.05
DEADLOCK = ffi.string(lib.pe_fault_name(lib.PE_DEADLOCK)).decode()

_images: WeakKeyDictionary[Program, dict[str, Image]] = WeakKeyDictionary()


class Interpreter:
    """Executes the checked module itself."""

    def load(self, program: Program, kernel: str, block: Extent) -> tuple[KernelCode, Image]:
        found = _images.setdefault(program, {})
        if kernel not in found:
            found[kernel] = image_of(program.ir, kernel)
        image = found[kernel]
        facts = Facts(
            variant=variant_of(block), static_shared=image.static_shared, local_bytes=image.local_bytes, suspends=True,
            calls=image.stacked, stacked=image.stacked,
        )  # fmt: skip
        return KernelCode(object=b"", symbol="", final=True, facts=facts), image

    def watch(self, program: Program, kernel: str, block: Extent) -> Callable[[], None]:
        return lambda: None

    def runs(self, loaded: Image) -> Callable[..., Run]:
        return partial(InterpretedRun, loaded)


class InterpretedRun(Run):
    """One launch, on the calling thread."""

    def __init__(self, image: Image, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.image = image
        self.polled = 0.0
        observer = current()
        self.watch = None if observer is None else Watch(observer, Tap(self.arena.handle))

    def execute(self, config: Any, timeout: float | None, keeps: object) -> LaunchResult:
        with nullcontext() if self.watch is None else self.watch.tap.open():
            return self._execute(config, timeout)

    def _execute(self, config: Any, timeout: float | None) -> LaunchResult:
        started = time.monotonic()
        deadline = None if timeout is None else started + timeout
        session = ffi.new("pe_session **")
        late = False

        def poll(warp: Any) -> None:
            nonlocal late
            now = time.monotonic()
            if now - self.polled < POLL_SECONDS and (deadline is None or now < deadline):
                return
            self.polled = now
            self.report(handle, config)
            if self.must_end(deadline):
                late = True
                lib.pe_session_stop(session[0], warp.w)
                raise Stopped

        try:
            if error := lib.pe_session_start(self.arena.handle, config, session):
                self.refuse(error, config)
            handle = lib.pe_session_launch(session[0])
            self.grid_id = int(lib.pe_launch_number(handle))
            grid = Grid(session[0], config, self.image, poll, self.watch)
            with self._told(grid):
                self._interpret(grid)
                self.drain(handle, final=True)
                with self._standing(grid):
                    counters = ffi.new("pe_counters *")
                    lib.pe_launch_result(handle, ffi.NULL, counters)
                    return self.result(handle, config, counters, time.monotonic() - started, timeout if late else None)
        finally:
            lib.pe_session_end(session)

    def _interpret(self, grid: Grid) -> None:
        """Run all blocks, or until something else comes first."""
        try:
            grid.run()
        except Stopped:
            pass
        except MemoryError:
            raise InputError(f"out of device memory for the blocks of `{self.kernel_name}`") from None

    @contextmanager
    def _told(self, grid: Grid) -> Iterator[None]:
        """The observer is told of the beginning and the end of what is done within."""
        if self.watch is None:
            yield
            return
        observer = self.watch.observer
        observer.begins(grid)
        try:
            yield
        except Error as error:
            observer.ends(grid, error)
            raise
        observer.ends(grid, None)

    @contextmanager
    def _standing(self, grid: Grid) -> Iterator[None]:
        """What is stuck, or was stopped for its time, tells where its warps stand."""
        try:
            yield
        except (Fault, LaunchTimeout) as error:
            if isinstance(error, Fault) and error.details.kind != DEADLOCK:
                raise
            lines = SourceLines(self.image.module)
            text = str(error) + stuck(grid, lambda op: lines.told(op) or str(self.origin.locate(op.pos)), self.arena.describe)
            raise (Fault(text, error.details) if isinstance(error, Fault) else LaunchTimeout(text)) from None
