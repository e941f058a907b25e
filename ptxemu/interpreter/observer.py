"""Those who watch launches: a profiler, a debugger. What instructions do knows nothing of them.

Accesses to memory come from the runtime, which tells of those of all instructions alike (``csrc/launch/observer.h``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.schedule import Schedule

if TYPE_CHECKING:
    from ptxemu.interpreter.machine import Grid, Warp
    from ptxemu.interpreter.translate import Code


class Access(Struct, frozen=True):
    """What lanes of a warp did to memory in one instruction: ``size`` bytes at the address of each of ``lanes``.

    ``kind`` is PE_READ, PE_WRITE or PE_UPDATE; ``space`` that of the instruction, PE_GENERIC ... PE_TEXEL, in which the
    addresses are.
    """

    kind: int
    space: int
    size: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]


class Observer:
    """Is told what happens, in order, on the thread of the launch. What it raises ends the launch and comes out of it."""

    schedule = Schedule()
    """How the launches that it watches give turns."""

    def chosen(self, blocks: range) -> Sequence[int]:
        """The blocks of a launch that are run, of all that it has. Raises InputError."""
        return blocks

    def begins(self, grid: Grid) -> None:
        """A launch begins."""

    def executes(self, warp: Warp, group: list[Lane], code: Code, pc: int) -> None:
        """Lanes of a warp, whose ``pc`` it is, come to the instruction ``code.ops[pc]``."""

    def executed(self, warp: Warp, group: list[Lane], code: Code, pc: int, accesses: list[Access]) -> None:
        """They have executed it, or wait for others to do so with them. It is not told of one that has faulted."""

    def ends(self, grid: Grid, error: Exception | None) -> None:
        """The launch ends, with a fault or for its time if there is an error; all of its state can still be seen."""


_observer: ContextVar[Observer | None] = ContextVar("ptxemu_observer", default=None)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Tell an observer of the launches that the calling thread does within, on devices with this engine."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def current() -> Observer | None:
    """The observer of launches on this thread, if there is one."""
    return _observer.get()


class Tap:
    """Gathers the accesses that the runtime tells of, until they are taken."""

    def __init__(self, arena: Any) -> None:
        self._arena = arena
        self._events: list[tuple[int, int, int, int, int]] = []
        self._callback = ffi.callback("uint32_t(void *, const pe_warp *, const pe_memory_event *)", self._note)
        self._observer = ffi.new("pe_observer *", {"memory": self._callback})

    @contextmanager
    def open(self) -> Iterator[None]:
        """Listen to the launches that start within."""
        lib.pe_arena_observe(self._arena, self._observer)
        try:
            yield
        finally:
            lib.pe_arena_observe(self._arena, ffi.NULL)

    def _note(self, context: Any, warp: Any, event: Any) -> int:
        """All lanes go on."""
        kind, space, size, mask = event.kind, event.space, event.size, event.mask
        while mask:
            lane = (mask & -mask).bit_length() - 1
            self._events.append((kind, space, size, lane, event.address[lane]))
            mask &= mask - 1
        return int(event.mask)

    def take(self) -> list[Access]:
        """What there was since the last time: one access for each kind, space and size."""
        if not self._events:
            return []
        found: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
        for kind, space, size, lane, address in self._events:
            found.setdefault((kind, space, size), []).append((lane, address))
        self._events.clear()
        return [Access(*key, *map(tuple, zip(*places))) for key, places in found.items()]


class Watch:
    """An observer at work: the steps of code as it is told of them."""

    def __init__(self, observer: Observer, tap: Tap) -> None:
        self.observer, self.tap = observer, tap
        self._steps: dict[Code, list[Step]] = {}

    def steps(self, code: Code) -> list[Step]:
        if code not in self._steps:
            self._steps[code] = [self._watched(code, pc, step) for pc, step in enumerate(code.steps)]
        return self._steps[code]

    def _watched(self, code: Code, pc: int, step: Step) -> Step:
        observer, take = self.observer, self.tap.take

        def watched(warp: Warp, group: list[Lane]) -> int | None:
            for lane in group:
                lane.pc = pc
            observer.executes(warp, group, code, pc)
            result = step(warp, group)
            observer.executed(warp, group, code, pc, take())
            return result

        return watched
