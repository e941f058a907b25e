"""Stops, steps, breakpoints and watchpoints; and time, counted in instructions, in which it goes back by running again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.debugger import inspect
from ptxemu.debugger.expressions import holds
from ptxemu.debugger.inspect import Frame, Spot
from ptxemu.debugger.places import Places, checked_spot
from ptxemu.debugger.variables import Scope
from ptxemu.device.arena import Arena
from ptxemu.interpreter.births import Births
from ptxemu.interpreter.lane import EXITED, Lane
from ptxemu.interpreter.machine import Block, Grid, Warp
from ptxemu.interpreter.observer import Access, Observer
from ptxemu.interpreter.schedule import Schedule
from ptxemu.interpreter.standing import op_at
from ptxemu.interpreter.translate import Code
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.text.errors import InputError
from ptxemu.text.source import Location

SHARED, LOCAL = "shared", "local"
WATCHED = {
    lib.PE_SHARED: SHARED, lib.PE_LOCAL: LOCAL, lib.PE_GENERIC: inspect.GLOBAL, lib.PE_GLOBAL: inspect.GLOBAL,
    lib.PE_TEXEL: inspect.GLOBAL,
}  # fmt: skip
Key = tuple[int, int, int]  # a thread: its block, warp and lane by number
Wanted = Callable[[Warp, list[Lane], Op], Lane | None]
"""Whether to stop before an instruction, and at which of its lanes."""


class Leave(Exception):
    """The program is not to go on."""


class Again(Exception):
    """It is to run from the start, up to the step ``Debugger.target``."""


class Breakpoint(Struct):
    """Before the instructions that ``spot`` means, if ``condition`` holds for one of the threads."""

    number: int
    spot: str
    condition: str = ""
    temporary: bool = False
    enabled: bool = True
    hits: int = 0
    ops: list[Op] = []


class Watchpoint(Struct):
    """The bytes of ``spot``: after accesses of ``kinds`` (PE_READ, PE_WRITE); those that write the same value do not count.

    ``find`` finds the spot when the program runs again; ``owner`` is the thread whose shared or local memory it is.
    """

    number: int
    text: str
    spot: Spot
    kinds: int
    find: Callable[[], Spot]
    owner: Key | None = None
    enabled: bool = True
    hits: int = 0
    old: bytes = b""


class Stop(Struct, frozen=True):
    """Why the program stands still: ``reason`` is breakpoint, watchpoint, birth, step, fault or goto."""

    reason: str
    text: str
    number: int | None = None


class Front(Protocol):
    """What talks to the person. ``stopped`` returns when the program is to go on, as it has told the debugger before."""

    def stopped(self, stop: Stop) -> None: ...

    def attend(self) -> None:
        """Something came in while the program runs."""


class Debugger(Observer):
    """``now`` counts the instructions of warps since the program began; the state is that before the last of them."""

    def __init__(self, seed: int | None = None) -> None:
        self.schedule = Schedule(seed=seed)
        self.seed = seed
        self.front: Front
        self.arena: Arena
        self.breakpoints: dict[int, Breakpoint] = {}
        self.watchpoints: dict[int, Watchpoint] = {}
        self._numbers = count(1)
        self.caught: set[str] = set()  # kinds of numbers whose births stop it
        self._births = Births()
        self.attention = False  # ``attend`` of the front is to be called
        self.target = 0  # the step to run up to without a stop
        self._search: tuple[Wanted, int, int] | None = None  # going back: what for, where it began, what was found last
        self._kept: Key | None = None  # the thread in focus when it began
        self._note = ""  # what there is to say where it ends
        self._reset()

    def _reset(self) -> None:
        self.now = 0
        self.grid: Grid | None = None
        self.places: Places | None = None
        self.focus: Lane | None = None
        self.level = 0  # of the frame in focus
        self._leveled: tuple[int, Key] | None = None  # the step and the thread that it was chosen at
        self.op: Op | None = None
        self.after = False  # the state is that behind the instruction
        self._at: dict[Op, list[Breakpoint]] = {}
        self._wanted: Wanted | None = None
        self.fault: Exception | None = None

    # ------------------------------------------------------------ what the front end asks for

    def start(self) -> None:
        """The program begins, once more or for the first time."""
        self._reset()

    def add_breakpoint(self, spot: str, condition: str = "", temporary: bool = False) -> Breakpoint:
        made = Breakpoint(next(self._numbers), checked_spot(spot), condition.strip(), temporary)
        self._resolve(made)
        self.breakpoints[made.number] = made
        self._index()
        return made

    def add_watchpoint(self, text: str, kinds: int, find: Callable[[], Spot]) -> Watchpoint:
        """Watch what ``find`` finds, in each run anew. Raises InputError."""
        spot = find()
        if spot.space not in (inspect.GLOBAL, SHARED, LOCAL):
            raise InputError(f"{spot.space} memory cannot be watched: nobody writes it")
        if spot.space == inspect.GLOBAL and self.focus is not None and self.focus.warp.windows.within(spot.address):
            raise InputError("that is shared memory of another block, which can be watched with a thread of that block in focus")
        owner = None if spot.space == inspect.GLOBAL else key_of(self.lane())
        made = Watchpoint(next(self._numbers), text, spot, kinds, find, owner)
        made.old = self._bytes(made)
        self.watchpoints[made.number] = made
        return made

    def remove(self, number: int) -> None:
        if self.breakpoints.pop(number, None) is None and self.watchpoints.pop(number, None) is None:
            raise InputError(f"there is no breakpoint or watchpoint {number}")
        self._index()

    def lane(self) -> Lane:
        """The thread in focus. Raises InputError if nothing runs."""
        if self.focus is None:
            raise InputError("the program is not being run")
        return self.focus

    def focus_on(self, wanted: Callable[[Lane], bool]) -> Lane:
        """The first thread of the blocks that have begun for which something holds."""
        lanes = (lane for block in self.resident() for warp in block.warps for lane in warp.lanes)
        found: Lane | None = next((lane for lane in lanes if wanted(lane)), None)
        if found is None:
            raise InputError("there is no such thread in the blocks that have begun and not ended: info blocks")
        self.focus = found
        return found

    def frames(self) -> list[Frame]:
        """The functions that the thread in focus is in, the innermost first."""
        return list(inspect.frames_of(self.lane()))

    def frame(self) -> Frame:
        """The one in focus: that of ``level``, as long as the thread is the same and stands where it did."""
        frames = self.frames()
        return frames[self.level if self._leveled == (self.now, key_of(self.lane())) and self.level < len(frames) else 0]

    def select(self, level: int) -> Frame:
        """Another frame in focus. Raises InputError if there is none."""
        if not 0 <= level < len(self.frames()):
            raise InputError(f"the thread has {len(self.frames())} frames: 0 to {len(self.frames()) - 1}")
        self.level, self._leveled = level, (self.now, key_of(self.lane()))
        return self.frame()

    def resident(self) -> list[Any]:
        return [] if self.grid is None else self.grid.resident

    # ------------------------------------------------------------ how it goes on

    def go(self) -> None:
        """To the next breakpoint."""
        self._wanted = None

    def step_instruction(self, unit: str = "warp") -> None:
        """To the next instruction of the thread in focus, of its ``warp``, or of ``all``."""
        self._wanted = self._next_instruction(unit)

    def _next_instruction(self, unit: str) -> Wanted:
        if unit == "all":
            return lambda warp, group, op: group[0]
        key = key_of(self.lane())
        if unit == "thread":
            return _thread(key)
        return lambda warp, group, op: _pick(group, key) if _warp_key(warp) == key[:2] else None

    def step_line(self, over: bool = False) -> None:
        """To another line of the thread in focus; ``over``: not into functions."""
        lane = self.lane()
        self._wanted = self._other_line(key_of(lane), len(lane.frames), over)

    def _other_line(self, key: Key, depth: int, over: bool) -> Wanted:
        assert self.places is not None and self.op is not None
        places, begun = self.places, self.places.line(op_at(self.lane()))
        same = _thread(key)

        def other(warp: Warp, group: list[Lane], op: Op) -> Lane | None:
            lane = same(warp, group, op)
            if lane is None or (over and len(lane.frames) > depth):
                return None
            return lane if len(lane.frames) != depth or places.line(op) != begun else None

        return other

    def finish(self) -> None:
        """Until the function of the thread in focus returns."""
        lane = self.lane()
        depth, same = len(lane.frames), _thread(key_of(lane))
        if not depth:
            raise InputError("the thread is in the kernel itself, which returns to nobody")

        def returned(warp: Warp, group: list[Lane], op: Op) -> Lane | None:
            lane = same(warp, group, op)
            return lane if lane is not None and len(lane.frames) < depth else None

        self._wanted = returned

    def go_to(self, step: int) -> None:
        """To a step, forward or back."""
        if step < 1:
            raise InputError("steps are counted from 1")
        self.target = step
        self._kept = None if self.focus is None else key_of(self.focus)
        if step <= self.now:
            raise Again

    def back(self, unit: str) -> None:
        """To the last instruction before this one: of the ``thread`` in focus, its ``warp``, or ``all``.

        ``line``: to where the thread came to its line; ``breakpoint``: to the last one that would have stopped it. When the
        program has ended, no thread is in focus: to the last instruction of all.
        """
        unit = unit if self.focus is not None or unit == "breakpoint" else "all"
        wanted = self._hits if unit == "breakpoint" else self._came_to_line() if unit == "line" else self._next_instruction(unit)
        until = self.now + self.after
        self._kept = None if self.focus is None else key_of(self.focus)
        self._search = (wanted, until, 0)
        self.target = until
        raise Again

    def _came_to_line(self) -> Wanted:
        """Instructions at which the thread in focus comes to a line."""
        same = _thread(key_of(self.lane()))
        last: Location | None = None

        def came(warp: Warp, group: list[Lane], op: Op) -> Lane | None:
            nonlocal last
            lane = same(warp, group, op)
            if lane is None or self.places is None:
                return None
            before, last = last, self.places.line(op)
            return lane if last != before else None

        return came

    # ------------------------------------------------------------ what happens

    def begins(self, grid: Grid) -> None:
        self.grid, self.places, self.focus = grid, Places(grid.image), None
        for one in self.breakpoints.values():
            self._resolve(one)
        self._index()
        for watch in self.watchpoints.values():
            with suppress(InputError):
                watch.spot = watch.spot if watch.owner is not None else watch.find()
                watch.old = self._bytes(watch)

    def executes(self, warp: Warp, group: list[Lane], code: Code, pc: int) -> None:
        self.now += 1
        self.after = False
        self.op = op = code.ops[pc]
        if self.attention:
            self.attention = False
            self.front.attend()
        if self.caught:
            self._births.before(group, code, op)
        if self.target:
            self._replay(warp, group, op)
            return
        if (stop := self._stop_before(warp, group, op)) is not None:
            self._tell(stop)

    def _replay(self, warp: Warp, group: list[Lane], op: Op) -> None:
        """Run up to the target, and remember what is looked for on the way."""
        if self._search is not None:
            wanted, until, found = self._search
            if self.now < until and wanted(warp, group, op) is not None:
                self._search = (wanted, until, self.now)
            elif self.now >= until:
                self._found(found)
        if self.now >= self.target:
            self.target = 0
            self.focus = _pick(group, self._kept)
            self._tell(Stop("goto", self._note))

    def _found(self, step: int) -> None:
        self._search = None
        self.target = max(1, step)
        self._note = "" if step else "this is the first instruction"
        raise Again

    def ended(self) -> bool:
        """The program has come to its end. Whether it is to run again, as somebody goes back from there."""
        if self._search is None:
            return False
        with suppress(Again):
            self._found(self._search[2])
        return True

    def executed(self, warp: Warp, group: list[Lane], code: Code, pc: int, accesses: list[Access]) -> None:
        self.after = True
        for watch in self.watchpoints.values():
            for access in accesses:
                self._look(watch, warp, access)
        born = [birth for birth in self._births.after(code.ops[pc]) if birth.kind in self.caught] if self.caught else []
        if born and not self.target:
            self.focus = born[0].lane
            self._tell(Stop("birth", f"{born[0].kind} is made"))

    def ends(self, grid: Grid, error: Exception | None) -> None:
        self.fault = error
        if error is not None and self._search is None:
            self.target = 0
            lanes = [lane for block in self.resident() for warp in block.warps for lane in warp.lanes]
            at = getattr(getattr(error, "details", None), "pos", None)
            here = [lane for lane in lanes if at is not None and lane.state != EXITED and op_at(lane).pos == at]
            self.focus = next(iter(here or lanes), None)
            if self.focus is not None:
                self._tell(Stop("fault", str(error)))
        self.grid = self.focus = None

    def _tell(self, stop: Stop) -> None:
        self._wanted = None
        self.front.stopped(stop)

    # ------------------------------------------------------------ stops

    def _stop_before(self, warp: Warp, group: list[Lane], op: Op) -> Stop | None:
        lane = None if self._wanted is None else self._wanted(warp, group, op)
        ended = self._wanted is not None and self.focus is not None and self.focus.state == EXITED
        hit = self._hit(warp, group, op)
        if hit is not None:
            one, self.focus = hit
            one.hits += 1
            if one.temporary:
                self.remove(one.number)
            return Stop("breakpoint", f"breakpoint {one.number}", one.number)
        if lane is not None or ended:
            self.focus = lane or group[0]
            return Stop("step", "the thread has ended; this is another one" if ended else "")
        return None

    def _hits(self, warp: Warp, group: list[Lane], op: Op) -> Lane | None:
        found = self._hit(warp, group, op)
        return None if found is None else found[1]

    def _hit(self, warp: Warp, group: list[Lane], op: Op) -> tuple[Breakpoint, Lane] | None:
        for one in self._at.get(op, ()):
            if not one.enabled:
                continue
            for lane in group:
                if not one.condition or self._holds(one, lane):
                    return one, lane
        return None

    def _holds(self, one: Breakpoint, lane: Lane) -> bool:
        """A condition that cannot be evaluated is true, so that it is seen."""
        try:
            frame = inspect.frame_of(lane)
            return holds(one.condition, inspect.names_of(frame), self.scope(frame))
        except InputError:
            return True

    def scope(self, frame: Frame) -> Scope:
        """The variables of CUDA C++ that a frame sees."""
        return Scope(frame, self.arena, frame.lane.warp.grid.image)

    def _resolve(self, one: Breakpoint) -> None:
        one.ops = [] if self.places is None else self.places.meant(one.spot, self.op if self.grid is not None else None)

    def _index(self) -> None:
        self._at = {}
        for one in self.breakpoints.values():
            for op in one.ops:
                self._at.setdefault(op, []).append(one)

    def _look(self, watch: Watchpoint, warp: Warp, access: Access) -> None:
        lanes = [lane for lane, address in zip(access.lanes, access.addresses, strict=True)
                 if self._touches(watch, warp, access, lane, address)]  # fmt: skip
        if not lanes or not watch.enabled:
            return
        new, old = self._bytes(watch), watch.old
        watch.old = new
        wrote, read = access.kind & watch.kinds & lib.PE_WRITE and new != old, access.kind & watch.kinds & lib.PE_READ
        if self.target or not (wrote or read):
            return
        watch.hits += 1
        self.focus = next(lane for lane in warp.lanes if lane.index == lanes[0])
        change = f"{_hex(old)} -> {_hex(new)}" if wrote else f"read, {_hex(new)}"
        self._tell(Stop("watchpoint", f"watchpoint {watch.number}: {watch.text}: {change}", watch.number))

    def _touches(self, watch: Watchpoint, warp: Warp, access: Access, lane: int, address: int) -> bool:
        space, address, block = _place(warp, access, lane, address)
        spot, owner = watch.spot, watch.owner
        if space != spot.space or (owner is not None and owner[0] != block.number):
            return False
        mine = space != LOCAL or owner == (*_warp_key(warp), lane)
        return mine and address < spot.address + spot.size and spot.address < address + access.size

    def _bytes(self, watch: Watchpoint) -> bytes:
        spot, owner = watch.spot, watch.owner
        if owner is None:
            return inspect.read(self.arena, None, spot.space, spot.address, spot.size)
        lanes = (lane for block in self.resident() if block.number == owner[0] for warp in block.warps for lane in warp.lanes)
        lane = next((lane for lane in lanes if key_of(lane) == owner), None)
        return b"" if lane is None else inspect.read(self.arena, lane, spot.space, spot.address, spot.size)


def _place(warp: Warp, access: Access, lane: int, address: int) -> tuple[str, int, Block]:
    """The space that an address of an access is in, of those that can be watched, the offset in that, and whose it is: the
    lane's, or shared memory of another block of the cluster."""
    w, windows, block = warp.w, warp.windows, warp.block
    if access.space == lib.PE_GENERIC:
        if windows.within(address):
            return SHARED, windows.offset(address), block.cluster.blocks[windows.rank_of(address)]
        if 0 <= address - w.local_base < w.local_size * LANES:
            return LOCAL, address - w.local_base - lane * w.local_size, block
    return WATCHED.get(access.space, ""), address, block


def _hex(data: bytes) -> str:
    return "0x" + data[::-1].hex()


def key_of(lane: Lane) -> Key:
    return (*_warp_key(lane.warp), lane.index)


def _warp_key(warp: Warp) -> tuple[int, int]:
    return warp.block.number, warp.index


def _thread(key: Key) -> Wanted:
    return lambda warp, group, op: next((lane for lane in group if key_of(lane) == key), None)


def _pick(group: Iterable[Lane], key: Key | None) -> Lane:
    """The lane of a group that is in focus, or else its first."""
    lanes = list(group)
    return next((lane for lane in lanes if key_of(lane) == key), lanes[0])
