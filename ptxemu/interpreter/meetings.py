"""Instructions at which lanes of a warp wait for each other: those with a membermask, and those of whole warps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.interpreter.lane import READY, SPLIT, WAITING, Lane

if TYPE_CHECKING:
    from ptxemu.interpreter.machine import Warp

ALL = 0xFFFFFFFF
Execute = Callable[["Warp", list["Lane"], list["Meeting"], int], None]


class Meeting(Struct):
    """What one lane brings: lanes of one ``key`` and ``mask`` meet, and ``execute`` is for all of them.

    ``finish`` takes a lane's results; ``whole`` tells that the instruction does not name its lanes: it is for whole warps.
    """

    key: Hashable
    mask: int
    inputs: Any
    execute: Execute
    finish: Callable[[Lane, Any], None]
    pos: int
    whole: bool


class Meetings:
    def __init__(self, warp: Warp) -> None:
        self.warp = warp
        self.waiting: list[Lane] = []

    def complete(self, group: list[Lane], mask: int) -> bool:
        """Whether nobody waits, and these lanes are all that a mask names, of those that have not exited."""
        return not self.waiting and mask & self.warp.live & ~sum(lane.bit for lane in group) == 0

    def arrive(self, group: list[Lane], meetings: list[Meeting], after: int) -> int | None:
        """Lanes come to an instruction. None: all of them have executed it."""
        mask = meetings[0].mask
        if self.complete(group, mask) and all(meeting.mask == mask for meeting in meetings):
            self._execute(group, meetings)
            return None
        for lane, meeting in zip(group, meetings, strict=True):
            lane.state, lane.meeting, lane.pc = WAITING, meeting, after
        self.waiting += group
        self.review()
        return SPLIT

    def review(self) -> None:
        """Let those go on of whom all members have come."""
        live = self.warp.live
        for key, lanes in self._sorted().items():
            if key[1] & live & ~sum(lane.bit for lane in lanes) == 0:
                self._release(lanes)

    def force(self) -> bool:
        """Nobody else can come: instructions of whole warps are executed by those who did."""
        found = [lanes for lanes in self._sorted().values() if lanes[0].meeting is not None and lanes[0].meeting.whole]
        for lanes in found:
            self._release(lanes)
        return bool(found)

    def stuck(self) -> None:
        """A fault if any lane waits here."""
        if self.waiting:
            lanes = sum(lane.bit for lane in self.waiting)
            first = min(self.waiting, key=lambda lane: lane.index)
            assert first.meeting is not None
            note = f"lanes 0x{lanes:08x} wait for lanes that exited or wait elsewhere"
            self.warp.fault(lib.PE_DEADLOCK, first.meeting.pos, first.index, note)

    def _sorted(self) -> dict[tuple[Hashable, int], list[Lane]]:
        found: dict[tuple[Hashable, int], list[Lane]] = {}
        for lane in sorted(self.waiting, key=lambda lane: lane.index):
            assert lane.meeting is not None
            found.setdefault((lane.meeting.key, lane.meeting.mask), []).append(lane)
        return found

    def _release(self, lanes: list[Lane]) -> None:
        meetings = [lane.meeting for lane in lanes if lane.meeting is not None]
        self.waiting = [lane for lane in self.waiting if lane not in lanes]
        for lane in lanes:
            lane.state, lane.meeting = READY, None
        self._execute(lanes, meetings)

    def _execute(self, lanes: list[Lane], meetings: list[Meeting]) -> None:
        meetings[0].execute(self.warp, lanes, meetings, meetings[0].mask)
