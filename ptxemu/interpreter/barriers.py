"""The barriers of a block and of a cluster (PTX ISA "bar, barrier", "barrier.cluster"), and where pairs of blocks meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from msgspec import Struct, field

from ptxemu._runtime import lib
from ptxemu.device.standing import BARRIERS
from ptxemu.interpreter.lane import EXITED, READY, WAITING, Lane
from ptxemu.ir.block_shape import LANES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxemu.interpreter.machine import Block, Cluster, Warp

WARPGROUP = 4  # warps


class Arrival(Struct):
    """What an instruction does at a barrier: ``red`` combines predicates, ``waits`` is false for ``arrive``.

    ``threads``: it counts threads; else whole warps.
    """

    pos: int
    waits: bool
    red: bool
    threads: bool


class Barrier(Struct):
    """``count`` 0 stands for all threads of the block that have not exited. ``votes`` are the predicates so far."""

    count: int
    red: bool
    arrived: int = 0
    pos: int = 0
    who: set[int] = field(default_factory=set)  # threads, of those that wait for the whole block
    waiting: list[tuple[Lane, Callable[[Lane, list[bool]], None]]] = []
    votes: list[bool] = []


class Barriers:
    def __init__(self, block: Block) -> None:
        self.block = block
        self.active: dict[int, Barrier] = {}

    def arrive(
        self, warp: Warp, lanes: list[Lane], number: int, count: int, how: Arrival, votes: list[bool],
        finish: Callable[[Lane, list[bool]], None],
    ) -> None:  # fmt: skip
        """Lanes come to a barrier; ``finish`` gives each the votes of all when it goes on."""
        if not how.waits and not count:
            self._misuse(warp, how.pos, number, "an arrival that does not wait needs a thread count")
        threads = len(lanes) if how.threads else LANES
        if wrong := self._objection(number, count, threads, how):
            self._misuse(warp, how.pos, number, wrong)
        warp.grid.tell_barrier(warp, how.pos, number, lanes)
        barrier = self.active.setdefault(number, Barrier(count, how.red))
        barrier.arrived += threads
        barrier.pos = how.pos
        barrier.votes += votes
        barrier.who |= {warp.index * LANES + lane.index for lane in lanes}
        if how.waits:
            for lane in lanes:
                lane.state = WAITING
                barrier.waiting.append((lane, finish))
        self._review(number)

    def meet(self, warp: Warp, lanes: list[Lane], pos: int) -> None:
        """The lanes of a warp wait for the other warps of their warpgroup."""
        number = lib.PE_BARRIER_WARPGROUP + warp.index // WARPGROUP
        how = Arrival(pos, waits=True, red=False, threads=False)
        self.arrive(warp, lanes, number, WARPGROUP * LANES, how, [], lambda lane, votes: None)

    def left(self, warp: Warp) -> None:
        """Lanes of a warp have exited: those that wait for all others may be all."""
        for number in list(self.active):
            self._review(number)

    def deadlock(self) -> None:
        """A fault if a warp waits here."""
        for number, barrier in sorted(self.active.items()):
            if barrier.waiting:
                expected, arrived = barrier.count or self._live(), barrier.arrived
                name = f"barrier {number}" if number < BARRIERS else f"warpgroup {number - lib.PE_BARRIER_WARPGROUP}"
                note = f"{name} waits for {expected} threads, {arrived} arrived and no warp can run"
                warp = min((lane.warp for lane, _ in barrier.waiting), key=lambda warp: warp.index)
                warp.fault(lib.PE_DEADLOCK, barrier.pos, -1, note)

    def _live(self) -> int:
        return LANES * sum(1 for warp in self.block.warps if warp.live)

    def _objection(self, number: int, count: int, threads: int, how: Arrival) -> str:
        barrier = self.active.get(number)
        if count % LANES:
            return "the thread count is not a multiple of the warp size"
        if barrier is None:
            return "" if not count or threads <= count else "more threads arrive than it was set up for"
        if barrier.count != count:
            return "the thread count differs from that of an earlier arrival"
        if barrier.red != how.red:
            return "reductions and other arrivals are mixed"
        return "more threads arrive than it was set up for" if count and barrier.arrived + threads > count else ""

    def _review(self, number: int) -> None:
        barrier = self.active[number]
        if barrier.count and barrier.arrived < barrier.count:
            return
        if not barrier.count and not self._all_here(barrier):
            return
        del self.active[number]
        self.block.cluster.progress()
        for lane, finish in barrier.waiting:
            lane.state = READY
            finish(lane, barrier.votes)

    def _all_here(self, barrier: Barrier) -> bool:
        """Every thread that has not exited has come."""
        return all(
            lane.state == EXITED or warp.index * LANES + lane.index in barrier.who
            for warp in self.block.warps
            for lane in warp.lanes
        )

    def _misuse(self, warp: Warp, pos: int, number: int, what: str) -> NoReturn:
        warp.fault(lib.PE_BARRIER_MISUSE, pos, -1, f"barrier {number}: {what}")
        raise AssertionError


class ClusterBarrier:
    """barrier.cluster: arrival and wait are two instructions."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.arrived: set[Lane] = set()  # in this phase
        self.passes: set[Lane] = set()  # in the last one, without having waited yet
        self.waiting: list[Lane] = []
        self.pos = 0

    def arrive(self, warp: Warp, lanes: list[Lane], pos: int) -> None:
        again = [lane for lane in lanes if lane in self.arrived or lane in self.passes]
        if again:
            self._misuse(warp, pos, again[0], "barrier.cluster: a thread arrives twice without waiting")
        warp.grid.tell_barrier(warp, pos, lib.PE_BARRIER_CLUSTER, lanes)
        self.arrived.update(lanes)
        self.review()

    def wait(self, warp: Warp, lanes: list[Lane], pos: int) -> None:
        early = [lane for lane in lanes if lane not in self.arrived and lane not in self.passes]
        if early:
            self._misuse(warp, pos, early[0], "barrier.cluster: a thread waits without having arrived")
        for lane in lanes:
            lane.state = WAITING
        self.waiting += lanes
        self.pos = pos
        self.review()

    def review(self) -> None:
        """All that have not exited may have arrived: the next phase begins."""
        lanes = (lane for warp in self.cluster.warps for lane in warp.lanes if lane.state != EXITED)
        if self.arrived and all(lane in self.arrived for lane in lanes):
            self.passes |= self.arrived
            self.arrived = set()
            self.cluster.progress()
        for lane in [lane for lane in self.waiting if lane in self.passes]:
            lane.state = READY
            self.waiting.remove(lane)
            self.passes.remove(lane)

    def deadlock(self) -> None:
        """A fault if a warp waits here."""
        if self.waiting:
            warp = min((lane.warp for lane in self.waiting), key=lambda warp: (warp.block.number, warp.index))
            warp.fault(lib.PE_DEADLOCK, self.pos, -1, "barrier.cluster: no warp can run")

    def _misuse(self, warp: Warp, pos: int, lane: Lane, what: str) -> NoReturn:
        warp.fault(lib.PE_BARRIER_MISUSE, pos, lane.index, what)
        raise AssertionError


class Pairing:
    """Where a block waits for the other one of its pair, as both allocate tensor memory together (PTX ISA, "tcgen05.alloc")."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.waiting: list[Lane] = []
        self.pos = 0
        self._ask: Callable[[], bool] = bool

    def come(self, lanes: list[Lane], pos: int, ask: Callable[[], bool]) -> None:
        """A warp comes; ``ask`` tells whether the other block has, and has the effect if so."""
        if not ask():
            for lane in lanes:
                lane.state = WAITING
            self.waiting, self.pos, self._ask = lanes, pos, ask
            return
        self.block.peer.pairing.go_on()
        self.block.cluster.progress()

    def go_on(self) -> None:
        """Who waits has got what it waits for."""
        self._ask()
        for lane in self.waiting:
            lane.state = READY
        self.waiting = []

    def deadlock(self) -> None:
        """A fault if a warp waits here."""
        if self.waiting:
            note = "tcgen05.alloc: the other CTA of the pair does not come, and no warp can run"
            self.waiting[0].warp.fault(lib.PE_DEADLOCK, self.pos, -1, note)
