"""Launches: hand a compiled kernel to the runtime's threads, wait, and turn what went wrong into exceptions."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.errors import Error, Fault, InputError, InternalError, LaunchTimeout, UnsupportedError
from ptxemu.memory import Arena

Dim3 = tuple[int, int, int]
Record = dict[str, object]

SLICE_MS = 50  # how long a wait may keep Python from seeing Ctrl-C
OUTPUT_BYTES = 1 << 16

SPACES = ("generic", "global", "shared", "local", "constant", "parameter")

KINDS: dict[int, str] = {
    lib.PE_ILLEGAL_ADDRESS: "illegal address",
    lib.PE_MISALIGNED: "misaligned address",
    lib.PE_NULL: "null pointer",
    lib.PE_SURFACE_TRAP: "surface access out of bounds",
    lib.PE_INVALID_SURFACE: "invalid surface handle",
    lib.PE_UNBOUND_SURFACE: "unbound surface",
    lib.PE_GEOMETRY_MISMATCH: "surface geometry mismatch",
    lib.PE_FORMAT_MISMATCH: "surface format mismatch",
    lib.PE_INVALID_ADDRESS_SPACE: "invalid address space",
    lib.PE_TRAP: "trap",
    lib.PE_ASSERT: "assertion failed",
    lib.PE_DEADLOCK: "deadlock",
    lib.PE_STACK_OVERFLOW: "stack overflow",
    lib.PE_BARRIER_MISUSE: "barrier misuse",
    lib.PE_INVALID_BRANCH: "invalid branch target",
    lib.PE_INVALID_CALL: "invalid call target",
    lib.PE_ILLEGAL_OP_TYPE: "illegal operation for the type",
    lib.PE_INVALID_FREE: "invalid free",
    lib.PE_PARTIAL_WARP: "partial warp",
    lib.PE_INVALID_TEXTURE: "invalid texture or sampler handle",
    lib.PE_UNBOUND_TEXTURE: "unbound texture or sampler",
    lib.PE_TEXTURE_GEOMETRY: "texture geometry mismatch",
    lib.PE_TEXTURE_FORMAT: "texture of integers read as floats",
    lib.PE_UMRT_ALPHA: "UMRT write whose alpha is not zero",
    lib.PE_PARTIAL_UMRT: "UMRT write of some channels only",
    lib.PE_UMRT_INDEX: "UMRT writes of one group with different indices",
    lib.PE_UNSUPPORTED_FORMAT: "unsupported: a formatted store to packed components",
}

CODES: dict[int, int] = {
    lib.PE_INVALID_SURFACE: 400, lib.PE_UNBOUND_SURFACE: 400, lib.PE_INVALID_TEXTURE: 400, lib.PE_UNBOUND_TEXTURE: 400,
    lib.PE_ILLEGAL_ADDRESS: 700, lib.PE_NULL: 700, lib.PE_ASSERT: 710, lib.PE_STACK_OVERFLOW: 714,
    lib.PE_ILLEGAL_OP_TYPE: 715, lib.PE_MISALIGNED: 716, lib.PE_INVALID_ADDRESS_SPACE: 717, lib.PE_INVALID_BRANCH: 718,
    lib.PE_INVALID_CALL: 718,
}  # fmt: skip
"""The ``cudaError_t`` that a device would report."""
LAUNCH_FAILURE = 719  # cudaErrorLaunchFailure: everything else

MEMORY_KINDS = {lib.PE_ILLEGAL_ADDRESS, lib.PE_MISALIGNED, lib.PE_NULL, lib.PE_INVALID_ADDRESS_SPACE}


def _symbols() -> dict[str, int]:
    table = lib.pe_symbols()
    found: dict[str, int] = {}
    while table.name:
        found[ffi.string(table.name).decode()] = int(ffi.cast("uintptr_t", table.address))
        table += 1
    return found


SYMBOLS: dict[str, int] = _symbols()
"""Addresses of all functions that compiled kernels may call, by name."""


@dataclass(slots=True, frozen=True)
class LaunchResult:
    """What a launch that ended well reports.

    ``output_dropped`` are bytes of printf output beyond the buffer, ``surface_drops`` accesses through a bad surface handle
    or header that the policy drops, ``format_mismatches`` reductions whose signedness the surface's format does not give,
    ``umrt_dropped`` and ``umrt_partial`` UMRT writes of CTM out of bounds, and of some channels only, which write nothing,
    ``unsynced_reads`` instructions of CTM that read, by another name, the surface that UMRT writes, unsynchronized.
    """

    seconds: float
    ctas: int
    workers: int
    output_dropped: int
    surface_drops: int = 0
    format_mismatches: int = 0
    umrt_dropped: int = 0
    umrt_partial: int = 0
    unsynced_reads: int = 0

    @property
    def warnings(self) -> list[str]:
        """What a user should know, in words."""
        counts = (
            (self.output_dropped, "bytes of printf output were dropped"),
            (self.surface_drops, "surface accesses through an invalid header were dropped"),
            (self.format_mismatches, "surface reductions treated a non-integer format as unsigned"),
            (self.umrt_dropped, "UMRT writes out of bounds were dropped"),
            (self.umrt_partial, "UMRT writes of some channels only were skipped"),
            (self.unsynced_reads, "UNSYNCED_READ: reads of what UMRT writes, which no write acquires the texture semaphore for"),
        )
        return [f"{count} {text}" for count, text in counts if count]


def launch(
    arena: Arena,
    address: int,
    *,
    kernel_name: str,
    grid: Dim3,
    block: Dim3,
    params: bytes,
    static_shared: int,
    dynamic_shared: int,
    local_bytes: int,
    suspends: bool,
    spins: bool = False,
    cooperative: bool = False,
    global_base: int = 0,
    const_base: int = 0,
    const_size: int = 0,
    handles: int = 0,
    surfaces: Any = None,
    stack_bytes: int = 0,
    workers: int = 0,
    timeout: float | None = None,
    locate: Callable[[Record], str],
    dialect: str = "ptx",
    surface_name: Callable[[int], str | None] = lambda slot: None,
    printf: Callable[[str], None] | None = None,
    keeps: object = None,
    runs: Callable[..., Run] | None = None,
) -> LaunchResult:
    """Run the kernel at ``address`` over the grid and wait for its end.

    ``locate`` turns a fault record's ``pos`` into ``file:line``, or "" if it has none;
    ``surface_name`` says by which name the program knows a slot of the surface table.
    ``printf`` takes the kernel's output as it comes; by default it goes to ``sys.stdout``.
    ``keeps`` is what must not go away while threads are in the kernel: its code, the tables it reads.  ``runs`` makes what
    executes the launch, by default on the runtime's threads.
    Raises Fault, LaunchTimeout, InputError (no memory, wrong shape), or what interrupts the wait; the kernel has
    been stopped by then.
    """
    config = ffi.new("pe_config *")
    buffer = ffi.from_buffer(params)
    config.kernel, config.params, config.params_size = address, buffer, len(params)
    config.grid, config.block = list(grid), list(block)
    config.static_shared, config.dynamic_shared = static_shared, dynamic_shared
    config.local_bytes, config.stack_bytes = local_bytes, stack_bytes
    config.global_base, config.const_base, config.const_size = global_base, const_base, const_size
    config.handles, config.surfaces = handles, ffi.NULL if surfaces is None else surfaces
    config.suspends, config.workers = suspends or spins or cooperative, workers
    config.spins, config.cooperative = spins, cooperative
    origin = Origin(dialect, kernel_name, locate, surface_name)
    run = (runs or Run)(arena, origin, printf or sys.stdout.write)
    return run.execute(config, timeout, (keeps, buffer))


@dataclass(slots=True, frozen=True)
class Origin:
    """What faults call the places of a program."""

    dialect: str
    kernel_name: str
    locate: Callable[[Record], str]
    surface_name: Callable[[int], str | None]


class Run:
    """One launch in flight, on the runtime's threads."""

    def __init__(self, arena: Arena, origin: Origin, printf: Callable[[str], None] | Any) -> None:
        self.arena = arena
        self.origin = origin
        self.kernel_name = origin.kernel_name
        self.printf = printf
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.chunk = ffi.new("char[]", OUTPUT_BYTES)

    def execute(self, config: Any, timeout: float | None, keeps: object) -> LaunchResult:
        started = time.monotonic()
        memory = self.arena.handle
        slot = _slot((memory, config, keeps))
        try:
            self._start(memory, config, slot)
            timed_out = self._wait(slot[0], None if timeout is None else started + timeout)
            self.drain(slot[0], final=True)
            return self.result(slot[0], config, time.monotonic() - started, timeout if timed_out else None)
        finally:
            ffi.release(slot)

    def _start(self, memory: Any, config: Any, out: Any) -> None:
        self.refuse(lib.pe_launch_start(memory, config, out), config)

    def refuse(self, error: int, config: Any) -> None:
        """Raise what an errno value says of the start of a launch."""
        if error == errno.ENOMEM:
            raise InputError(f"out of device memory for the launch of `{self.kernel_name}`{_local_memory(config)}")
        if error == errno.E2BIG:
            raise InputError(f"grid {tuple(config.grid)} is too large for a cooperative launch of `{self.kernel_name}`")
        if error == errno.EINVAL:
            grid, block = tuple(config.grid), tuple(config.block)
            raise InputError(f"cannot launch `{self.kernel_name}`: grid {grid}, block {block} is out of range")
        if error:
            raise Error(f"cannot start a thread for `{self.kernel_name}`: {os.strerror(error)}")

    def _wait(self, handle: Any, deadline: float | None) -> bool:
        """Wait for the end, passing output on. True: the deadline came first (the launch has been stopped)."""
        late = False
        while not lib.pe_launch_wait(handle, SLICE_MS if late else _slice(deadline)):
            self.drain(handle)
            if deadline is not None and not late and time.monotonic() >= deadline:
                lib.pe_launch_request_stop(handle)
                late = True
        return late

    def drain(self, handle: Any, final: bool = False) -> None:
        while size := lib.pe_launch_output(handle, self.chunk, OUTPUT_BYTES):
            self.printf(self.decoder.decode(ffi.buffer(self.chunk, size)[:]))
        if final and (rest := self.decoder.decode(b"", final=True)):
            self.printf(rest)

    def result(self, handle: Any, config: Any, seconds: float, timeout: float | None) -> LaunchResult:
        record, counters = ffi.new("pe_record *"), ffi.new("pe_counters *")
        lib.pe_launch_result(handle, record, counters)
        if record.kind not in (lib.PE_OK, lib.PE_STOPPED):
            raise self._fault(record, counters.faults)
        if timeout is not None and counters.ctas < config.grid[0] * config.grid[1] * config.grid[2]:
            message = f"kernel `{self.kernel_name}` did not end within {timeout:g} s"
            raise LaunchTimeout(message + (self._last_seen(record) if record.kind == lib.PE_STOPPED else ""))
        if counters.no_memory:
            raise InputError(f"out of device memory for the stacks of `{self.kernel_name}`")
        return LaunchResult(seconds, counters.ctas, counters.workers, counters.output_dropped)

    def _last_seen(self, raw: Any) -> str:
        """Where one of its warps was: at its last access of memory or call."""
        where = self._record(raw, 0)["where"]
        return f": block {_dim(raw.ctaid)}, warp {raw.warp} was running" + (f", last seen at {where}" if where else "")

    def _fault(self, raw: Any, count: int) -> Error:
        record = self._record(raw, count)
        message = self._message(raw, record)
        if raw.kind == lib.PE_ARITHMETIC:
            return InternalError(message)
        if raw.kind == lib.PE_UNSUPPORTED_FORMAT:
            return UnsupportedError(message)
        return Fault(message, record)

    def _record(self, raw: Any, count: int) -> Record:
        record: Record = {
            "kind": KINDS.get(raw.kind, "arithmetic trap in compiled code"),
            "code": CODES.get(raw.kind, LAUNCH_FAILURE),
            "dialect": self.origin.dialect,
            "kernel": self.kernel_name,
            "pos": None if raw.pos == lib.PE_NO_POS else raw.pos,
            "pc": raw.pc,
            "block": tuple(raw.ctaid),
            "thread": None if raw.lane < 0 else tuple(raw.tid),
            "lane": raw.lane,
            "channel": raw.channel - 1 if raw.channel else None,
            "warp": raw.warp,
            "space": None,
            "address": None,
            "size": raw.size,
            "note": ffi.string(raw.note).decode(errors="replace"),
            "count": count,
        }
        if raw.kind in MEMORY_KINDS and not raw.has_coordinates:
            record["space"], record["address"] = SPACES[raw.space], raw.address
        if raw.has_coordinates:
            record["slot"], record["coordinates"] = raw.slot, tuple(raw.coordinates)
            record["surface"] = self.origin.surface_name(raw.slot)
        where = self.origin.locate(record)
        line = where.rpartition(":")[2]
        record["where"], record["line"] = where, int(line) if line.isdecimal() else None
        return record

    def _message(self, raw: Any, record: Record) -> str:
        where = f" at {record['where']}" if record["where"] else ""
        unit = f"warp {raw.warp}" if raw.lane < 0 else f"thread {_dim(raw.tid)}"
        unit += f", channel {raw.channel - 1}" if raw.channel else ""
        parts = [f"{record['kind']} in kernel `{self.kernel_name}`{where}: block {_dim(raw.ctaid)}, {unit}"]
        if raw.kind in MEMORY_KINDS and not raw.has_coordinates:
            parts.append(self._access(raw))
        if raw.has_coordinates:
            x, y, z, layer = raw.coordinates
            surface = raw.slot if record["surface"] is None else f"`{record['surface']}`"
            parts.append(f"{raw.size}-byte access of surface {surface} at x={x}, y={y}, z={z}, layer={layer}")
        if record["note"]:
            parts.append(str(record["note"]))
        if raw.kind == lib.PE_ARITHMETIC:
            parts.append("this is a bug in ptxemu")
        return ", ".join(parts)

    def _access(self, raw: Any) -> str:
        size = f"{raw.size}-byte access to" if raw.size else "access to"
        text = f"{size} {SPACES[raw.space]} address 0x{raw.address:x}"
        own_space = bool(raw.note[0] != b"\0")  # the note says which: no device address
        if raw.space in (lib.PE_GENERIC, lib.PE_GLOBAL) and raw.kind == lib.PE_ILLEGAL_ADDRESS and not own_space:
            text += f", {self.arena.describe(raw.address)}"
        return text


class _End(partial[None]):
    """The call that ends a launch, and what that launch uses until then."""

    keeps: object = None


def _slot(keeps: object) -> Any:
    """A place for a launch, which is ended when the place is released or, at the latest, when nothing refers to it any more.

    That is one call of C in either case: a signal handler that raises can come before or after it, but not within.
    """
    end = _End(lib.pe_launch_end)
    end.keeps = keeps
    return ffi.gc(ffi.new("pe_launch **"), end)


def _local_memory(config: Any) -> str:
    threads = config.block[0] * config.block[1] * config.block[2]
    return f": {config.local_bytes} bytes of local memory for each of {threads} threads" if config.local_bytes else ""


def _slice(deadline: float | None) -> int:
    """Milliseconds of the next wait."""
    if deadline is None:
        return SLICE_MS
    return int(max(0, min(SLICE_MS, (deadline - time.monotonic()) * 1000 + 1)))


def _dim(values: Any) -> str:
    return f"({values[0]},{values[1]},{values[2]})"
