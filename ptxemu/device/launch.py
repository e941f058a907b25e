"""Launches: hand a kernel to the runtime's threads, wait, and turn what went wrong into exceptions."""

from __future__ import annotations

import codecs
import errno
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.device.faults import Origin, error_of, last_seen
from ptxemu.device.standing import standing
from ptxemu.process.stages import reached
from ptxemu.text.errors import Error, Fault, InputError, LaunchTimeout
from ptxemu.text.symbols import plain_name

PE_OK = int(lib.PE_OK)
WAITED, COUNTERS = ffi.typeof("pe_waited *"), ffi.typeof("pe_counters *")
SLICE_MS = 50  # how long a wait may keep Python from seeing Ctrl-C
OUTPUT_BYTES = 1 << 16
CHUNKS = 16  # of so many bytes, between two looks at the clock


def _symbols() -> dict[str, int]:
    table = lib.pe_symbols()
    found: dict[str, int] = {}
    while table.name:
        found[ffi.string(table.name).decode()] = int(ffi.cast("uintptr_t", table.address))
        table += 1
    return found


SYMBOLS: dict[str, int] = _symbols()
"""Addresses of all functions that compiled kernels may call, by name."""


class Count(Struct, frozen=True):
    """Something that happened in a launch and that a user should know of if it did."""

    value: int
    text: str


class LaunchResult(Struct):
    """What a launch that ended well reports.

    ``output_dropped`` are bytes of printf output beyond the buffer, ``surface_drops`` accesses through a bad surface handle
    or header that the policy drops, ``format_mismatches`` reductions whose signedness the surface's format does not give.
    ``counts`` are those of the dialect by name, which are attributes as well.
    """

    seconds: float
    ctas: int
    workers: int
    output_dropped: int
    surface_drops: int = 0
    format_mismatches: int = 0
    counts: Mapping[str, Count] = {}

    def also(self, other: LaunchResult) -> LaunchResult:
        """The result of two launches, one after the other."""
        counts = dict(self.counts)
        for name, count in other.counts.items():
            counts[name] = replace(count, value=count.value + (counts[name].value if name in counts else 0))
        return LaunchResult(
            self.seconds + other.seconds,
            self.ctas + other.ctas,
            max(self.workers, other.workers),
            self.output_dropped + other.output_dropped,
            self.surface_drops + other.surface_drops,
            self.format_mismatches + other.format_mismatches,
            counts,
        )

    def __getattr__(self, name: str) -> int:
        if name in LaunchResult.__struct_fields__ or name not in self.counts:
            raise AttributeError(f"LaunchResult has no attribute {name!r}")
        return self.counts[name].value

    @property
    def warnings(self) -> list[str]:
        """What a user should know, in words."""
        counts = (
            Count(self.output_dropped, "bytes of printf output were dropped"),
            Count(self.surface_drops, "surface accesses through an invalid header were dropped"),
            Count(self.format_mismatches, "surface reductions treated a non-integer format as unsigned"),
            *self.counts.values(),
        )
        return [f"{count.value} {count.text}" for count in counts if count.value]


class Run:
    """One launch in flight, on the runtime's threads. It ends soon after ``stop`` is set."""

    def __init__(
        self,
        arena: Arena,
        origin: Origin,
        printf: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self.arena = arena
        self.stop = stop
        self.origin = origin
        self.printf = printf
        self.output: _Output | None = None
        self.grid_id = 0  # as the kernel finds it

    @property
    def kernel_name(self) -> str:
        """What messages call the kernel."""
        return plain_name(self.origin.kernel)

    def execute(self, config: Any, timeout: float | None, keeps: object) -> LaunchResult:
        """Run a ``pe_config`` and wait for its end, ``timeout`` in seconds. ``keeps`` is what must not go away while threads are
        in the kernel.

        Raises Fault, LaunchTimeout, CancelledError, InputError (no memory, wrong shape), or what interrupts the wait; the kernel
        has been stopped by then.
        """
        started = time.monotonic()
        memory = self.arena.handle
        waited = _waited((memory, config, keeps))
        deadline = None if timeout is None else started + timeout
        try:
            if error := lib.pe_launch_run(memory, config, _slice(deadline), waited):
                self.refuse(error, config)
            handle, counters = waited.launch, waited.counters
            self.grid_id = waited.number
            timed_out = not counters.ended and self._wait(handle, config, deadline)
            if not counters.ended or counters.output:
                self.drain(handle, final=True)
                lib.pe_launch_result(handle, ffi.NULL, ffi.addressof(waited, "counters"))
            return self.result(handle, config, counters, time.monotonic() - started, timeout if timed_out else None)
        finally:
            ffi.release(waited)

    def refuse(self, error: int, config: Any) -> NoReturn:
        """Raise what an errno value says of the start of a launch."""
        if error == errno.ENOMEM:
            raise InputError(f"out of device memory for the launch of `{self.kernel_name}`{_local_memory(config)}")
        if error == errno.E2BIG:
            raise InputError(f"grid {tuple(config.grid)} is too large for a cooperative launch of `{self.kernel_name}`")
        if error == errno.EINVAL:
            grid, block = tuple(config.grid), tuple(config.block)
            raise InputError(f"cannot launch `{self.kernel_name}`: grid {grid}, block {block} is out of range")
        raise Error(f"cannot start a thread for `{self.kernel_name}`: {os.strerror(error)}")

    def _wait(self, handle: Any, config: Any, deadline: float | None) -> bool:
        """Go on waiting for the end, passing output on. True: something else came first (the launch has been stopped)."""
        late = False
        while True:
            self.report(handle, config)
            if not late and self.must_end(deadline):
                lib.pe_launch_request_stop(handle)
                late = True
            if lib.pe_launch_wait(handle, SLICE_MS if late else _slice(deadline)):
                return late

    def must_end(self, deadline: float | None) -> bool:
        """Whether the launch has been cancelled, or its time is over."""
        return self._is_stopped or (deadline is not None and time.monotonic() >= deadline)

    @property
    def _is_stopped(self) -> bool:
        return self.stop is not None and self.stop.is_set()

    def report(self, handle: Any, config: Any) -> None:
        """Pass on what there is to tell while the launch goes on."""
        self.drain(handle)
        reached(lib.pe_launch_completed(handle), blocks_of(config))

    def drain(self, handle: Any, final: bool = False) -> None:
        """Pass on what kernels have printed: all of it at the end; before that a part, as they may print faster than this."""
        chunks = 0
        while (final or chunks < CHUNKS) and lib.pe_launch_has_output(handle):
            if self.output is None:
                self.output = _Output(self.printf or sys.stdout.write)
            self.output.take(handle)
            chunks += 1
        if final and self.output is not None:
            self.output.end()

    def result(self, handle: Any, config: Any, counters: Any, seconds: float, timeout: float | None) -> LaunchResult:
        """What became of a launch that has ended, of which C has told ``counters``; raises what it ended with."""
        if counters.kind != PE_OK or counters.orphaned or timeout is not None or self._is_stopped:
            self._raise_failure(handle, config, timeout)
        if counters.no_memory:
            raise InputError(f"out of device memory for the stacks of `{self.kernel_name}`")
        return LaunchResult(seconds, counters.ctas, counters.workers, counters.output_dropped)

    def _raise_failure(self, handle: Any, config: Any, timeout: float | None) -> None:
        """Raise what a launch ended with, if it did not end well."""
        record, counters = ffi.new("pe_record *"), ffi.new(COUNTERS)
        lib.pe_launch_result(handle, record, counters)
        if counters.orphaned:
            raise Error(f"the process was forked while `{self.kernel_name}` ran: the launch goes on in the parent alone")
        if counters.kind not in (PE_OK, lib.PE_STOPPED):
            error = error_of(record, counters.faults, self.origin, self.arena)
            if isinstance(error, Fault) and counters.kind == lib.PE_DEADLOCK:
                error = Fault(str(error) + standing(handle, self.origin), error.details)
            raise error
        if self._is_stopped:
            from concurrent.futures import CancelledError  # streams have imported it

            raise CancelledError
        if timeout is not None and counters.ctas < blocks_of(config):
            message = f"kernel `{self.kernel_name}` did not end within {timeout:g} s"
            seen = last_seen(record, self.origin) + standing(handle, self.origin) if counters.kind == lib.PE_STOPPED else ""
            raise LaunchTimeout(message + seen)


class _Output:
    """What kernels print on its way to a function that takes texts."""

    def __init__(self, printf: Callable[[str], Any]) -> None:
        self.printf = printf
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.chunk = ffi.new("char[]", OUTPUT_BYTES)

    def take(self, handle: Any) -> None:
        size = lib.pe_launch_output(handle, self.chunk, OUTPUT_BYTES)
        self.printf(self.decoder.decode(ffi.buffer(self.chunk, size)[:]))

    def end(self) -> None:
        if rest := self.decoder.decode(b"", final=True):
            self.printf(rest)


class _End(partial[None]):
    """The call that ends a launch, and what that launch uses until then."""

    __slots__ = ("keeps",)
    keeps: object


def _waited(keeps: object) -> Any:
    """A place for a launch, a ``pe_waited``. The launch is ended when the place is released or, at the latest, when nothing
    refers to it any more.

    That is one call of C in either case: a signal handler that raises can come before or after it, but not within.
    """
    end = _End(lib.pe_waited_end)
    end.keeps = keeps
    return ffi.gc(ffi.new(WAITED), end)


def blocks_of(config: Any) -> int:
    """The blocks that are run."""
    return int(config.blocks) or math.prod(config.grid)


def _local_memory(config: Any) -> str:
    threads = config.block[0] * config.block[1] * config.block[2]
    return f": {config.local_bytes} bytes of local memory for each of {threads} threads" if config.local_bytes else ""


def _slice(deadline: float | None) -> int:
    """Milliseconds of the next wait."""
    if deadline is None:
        return SLICE_MS
    return int(max(0, min(SLICE_MS, (deadline - time.monotonic()) * 1000 + 1)))
