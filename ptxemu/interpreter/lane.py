"""One thread: its registers, its frames and where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxemu.interpreter.machine import Warp
    from ptxemu.interpreter.meetings import Meeting
    from ptxemu.interpreter.translate import Code

READY, WAITING, EXITED = range(3)

Step = Callable[["Warp", list["Lane"]], int | None]
"""An instruction of some lanes of a warp: the program counter where all of them go on (None: the next), or one of these."""
SPLIT = -1  # each lane's own counter says
YIELD = -2  # the next, when others have had a turn


class Stopped(Exception):
    """The launch has ended in a fault, or is to end."""


class Lane:
    """``r`` are the registers of the current frame; ``base`` and ``stack`` are offsets in the thread's local memory, where the
    frame begins and where free memory does; ``held`` is what its frames take of the host's memory, in bytes."""

    __slots__ = ("base", "bit", "code", "frames", "held", "index", "meeting", "pc", "r", "stack", "stamp", "state", "tid", "warp")

    def __init__(self, warp: Warp, index: int, code: Code) -> None:
        self.warp, self.index, self.bit = warp, index, 1 << index
        self.tid = tuple(int(warp.w.tid[axis][index]) for axis in range(3))
        self.code, self.r, self.pc = code, code.template.copy(), 0
        self.base, self.stack, self.held = 0, code.frame_bytes, 0
        self.frames: list[tuple[Code, list[int], int, int, int, int]] = []
        self.state, self.stamp = READY, 0
        self.meeting: Meeting | None = None

    def enter(self, code: Code, base: int, end: int, after: int) -> None:
        """Call a function whose frame is from ``base`` to ``end``; the caller goes on at ``after``."""
        self.frames.append((self.code, self.r, after, self.base, self.stack, self.held))
        self.code, self.r, self.pc = code, code.template.copy(), 0
        self.base, self.stack = base, end
        self.held += code.host_bytes

    def leave(self) -> None:
        """Return to the caller."""
        self.code, self.r, self.pc, self.base, self.stack, self.held = self.frames.pop()
