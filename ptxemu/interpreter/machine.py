"""The machine: clusters, blocks, warps and lanes, and whose turn it is.

Every lane has a program counter and frames of its own.  Lanes of a warp that are at the same place go on together, those that
are behind first, so that they catch up; a group that takes long gives the others a turn, so that every lane makes progress
(:mod:`ptxemu.interpreter.schedule`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from ptxemu._runtime import ffi, lib
from ptxemu.device.launch import blocks_of
from ptxemu.interpreter.barriers import Barriers, ClusterBarrier, Pairing
from ptxemu.interpreter.distributed import Windows
from ptxemu.interpreter.lane import EXITED, READY, SPLIT, WAITING, YIELD, Lane, Stopped
from ptxemu.interpreter.meetings import Meetings
from ptxemu.interpreter.schedule import Schedule
from ptxemu.interpreter.transfer import Transfer
from ptxemu.ir.block_shape import LANES

if TYPE_CHECKING:
    from ptxemu.interpreter.image import Image
    from ptxemu.interpreter.observer import Watch
    from ptxemu.interpreter.translate import Code

PATIENCE = 40  # turns of a cluster before the next one is begun beside it
MAX_RESIDENT = 64  # blocks
STUCK = 2000  # rounds in which all that can run has only waited for mbarriers


class Warp:
    """A warp; ``w`` is the runtime's record of it."""

    def __init__(self, block: Block, index: int, code: Code) -> None:
        self.block: Block = block
        self.grid: Grid = block.grid
        self.w: Any = lib.pe_session_warp(self.grid.session, block.place, index)
        self.index = index
        self.windows = Windows(self.w)
        self.lanes = [Lane(self, lane, code) for lane in range(LANES) if self.w.active >> lane & 1]
        self.meetings = Meetings(self)
        self.clock = 0
        self.turns = 0
        self.fair = False  # who has waited longest goes first, for once
        self.polling = False  # its last wait for an mbarrier failed
        self.local: Any = None
        if self.w.local_size:
            self.local = ffi.buffer(ffi.cast("char *", self.w.local_base), self.w.local_size * LANES)

    @property
    def live(self) -> int:
        """Lanes that have not exited."""
        return sum(lane.bit for lane in self.lanes if lane.state != EXITED)

    def turn(self) -> bool:
        """Some instructions. False: no lane can run."""
        given = budget = self.grid.schedule.turn()
        while budget > 0:
            ready = [lane for lane in self.lanes if lane.state == READY]
            if not ready:
                return budget < given
            budget = self._run(*self._choose(ready), budget)
        self.grid.poll(self)
        self.turns += 1
        self.fair = self.turns % self.grid.schedule.patience == 0
        return True

    def _choose(self, ready: list[Lane]) -> tuple[list[Lane], float]:
        """The lanes that go on, and the counter where others wait for them."""
        if self.fair:
            first = min(ready, key=lambda lane: lane.stamp)
            self.fair = False
        else:
            first = min(ready, key=lambda lane: (-len(lane.frames), lane.code.number, lane.pc))
        code, pc, depth = first.code, first.pc, len(first.frames)
        group, stop = [], float("inf")
        for lane in ready:
            if lane.code is code and len(lane.frames) == depth:
                if lane.pc == pc:
                    group.append(lane)
                elif pc < lane.pc < stop:
                    stop = lane.pc
        self.clock += 1
        for lane in group:
            lane.stamp = self.clock
        return group, stop

    def _run(self, group: list[Lane], stop: float, budget: int) -> int:
        """Go on with a group; what is left of the budget."""
        code, pc, watch = group[0].code, group[0].pc, self.grid.watch
        steps = code.steps if watch is None else watch.steps(code)
        while pc < stop and budget > 0:
            budget -= 1
            result = steps[pc](self, group)
            if result is None:
                pc += 1
            elif result >= 0:
                pc = result
            elif result == YIELD:
                pc += 1
                budget = 0
            else:
                return budget
        for lane in group:
            lane.pc = pc
        return budget

    def exit(self, group: list[Lane]) -> int:
        """Lanes leave the kernel; those that wait for them may go on."""
        for lane in group:
            lane.state = EXITED
            self.w.exited |= lane.bit
        self.block.cluster.progress()
        self.meetings.review()
        self.block.barriers.left(self)
        self.block.cluster.barrier.review()
        return SPLIT

    def fault(self, kind: int, pos: int, lane: int, note: str = "", *, space: int = 0, address: int = 0, size: int = 0) -> None:
        """End the launch; ``lane`` -1 stands for the warp."""
        text = ffi.new("char[]", note.encode())
        self.grid.call("pe_lanes_fault", self, kind, pos, lane & 0xFFFFFFFF, space, address, size, text)


class Block:
    """A block of the grid, in one of the session's places."""

    def __init__(self, cluster: Cluster, rank: int) -> None:
        self.cluster: Cluster = cluster
        self.grid = cluster.grid
        self.rank: int = rank
        self.place, self.number = cluster.place + rank, cluster.first + rank
        self.barriers, self.pairing = Barriers(self), Pairing(self)
        self.warps = [Warp(self, index, self.grid.code) for index in range(self.grid.warps)]

    @property
    def peer(self) -> Block:
        """The other one of its pair."""
        return self.cluster.blocks[self.rank ^ 1]


class Cluster:
    """Blocks of the grid that run together, in the session's places from one on; ``first`` is the number of the first."""

    def __init__(self, grid: Grid, place: int, first: int) -> None:
        self.grid, self.place, self.first = grid, place, first
        grid.place(place, first)
        self.barrier = ClusterBarrier(self)
        self.blocks = [Block(self, rank) for rank in range(grid.cluster)]
        self.warps = [warp for block in self.blocks for warp in block.warps]
        self.turns = 0
        self.stuck = 0

    @property
    def done(self) -> bool:
        return all(lane.state == EXITED for warp in self.warps for lane in warp.lanes)

    def progress(self) -> None:
        """Something happened that a warp may have waited for."""
        self.stuck = 0
        for warp in self.warps:
            warp.polling = False

    def round(self) -> None:
        """A turn for every warp. Lanes that wait for what cannot come are a fault."""
        self.turns += 1
        ran = [warp for warp in self.grid.schedule.order(self.warps) if warp.turn()]
        if ran:
            self.stuck = self.stuck + 1 if all(warp.polling for warp in ran) else 0
        elif not self.done and not self.grid.waits_elsewhere(self) and not self._give_up():
            self._deadlock()

    def _give_up(self) -> bool:
        """Instructions that wait for whole warps are executed by those that came; false if there are none."""
        return any([warp.meetings.force() for warp in self.warps])

    def _deadlock(self) -> None:
        """Nothing can run any more."""
        for warp in self.warps:
            warp.meetings.stuck()
        for block in self.blocks:
            block.barriers.deadlock()
        for block in self.blocks:
            block.pairing.deadlock()
        self.barrier.deadlock()


class Grid:
    """A launch in progress: what its blocks share."""

    def __init__(self, session: Any, config: Any, image: Image, poll: Callable[[Warp], None], watch: Watch | None = None) -> None:
        self.session, self.config, self.image, self.poll, self.watch = session, config, image, poll, watch
        self.code = image.code
        self.schedule = Schedule() if watch is None else watch.observer.schedule
        self.schedule.begin()
        threads = config.block[0] * config.block[1] * config.block[2]
        self.threads, self.warps = threads, -(-threads // LANES)
        self.cluster = max(1, config.cluster[0]) * max(1, config.cluster[1]) * max(1, config.cluster[2])
        self.firsts = self._chosen(range(config.first, config.first + blocks_of(config)))
        self.blocks = len(self.firsts) * self.cluster
        self.cooperative = bool(config.cooperative)
        self.transfer = Transfer()
        self.clusters: list[Cluster] = []  # that are run
        self.begun = 0  # clusters
        self.arrived: list[Lane] = []  # at the barrier of the grid
        self.host_stack = config.stack_bytes // LANES  # that frames of one thread may take
        self._call = ffi.new("pe_call *")
        self._observed = bool(lib.pe_session_observed(session))

    def _chosen(self, every: range) -> list[int]:
        """The first blocks of the clusters that are run: one is run as a whole."""
        numbers = every if self.watch is None else self.watch.observer.chosen(every)
        return sorted({number - number % self.cluster for number in numbers})

    @property
    def resident(self) -> list[Block]:
        """The blocks that have begun and whose clusters have not ended, in order."""
        return [block for cluster in sorted(self.clusters, key=lambda one: one.first) for block in cluster.blocks]

    def call(self, name: str, warp: Warp, *arguments: Any) -> int:
        """A function of the runtime for a warp; its result. Raises Stopped if it does not return."""
        call = self._call
        call.function = self.transfer.functions[name]
        given = call.arguments
        given[0] = int(ffi.cast("uintptr_t", warp.w))
        for index, value in enumerate(arguments, 1):
            given[index] = value if isinstance(value, int) else int(ffi.cast("uintptr_t", value))
        if not lib.pe_session_call(self.session, warp.w, call):
            raise Stopped
        return int(call.result)

    def tell_barrier(self, warp: Warp, pos: int, number: int, lanes: list[Lane]) -> None:
        """Lanes arrive at a barrier, one of a block or PE_BARRIER_...: the observer is told."""
        if self._observed:
            self.call("pe_lanes_arrive", warp, pos, number, sum(lane.bit for lane in lanes))

    def place(self, place: int, first: int) -> None:
        if lib.pe_session_place(self.session, place, first):
            raise MemoryError

    @contextmanager
    def offer(self) -> Iterator[None]:
        """The next cluster is cancelled within. Those of cooperative launches count as started."""
        left = self.begun < len(self.firsts) and not self.cooperative
        lib.pe_session_offer(self.session, self.firsts[self.begun] if left else 0, left)
        yield
        self.begun += left

    def run(self) -> None:
        """All clusters, one after another; more at a time where they wait for each other. Raises Stopped."""
        while self._admit() or self.clusters:
            for cluster in list(self.clusters):
                cluster.round()
                if cluster.done:
                    self.clusters.remove(cluster)
                    lib.pe_session_complete(self.session)
            self._look_for_deadlock()

    def _may_admit(self) -> bool:
        """Whether the clusters that run do not end, or may wait for all others."""
        patient = all(cluster.turns >= PATIENCE for cluster in self.clusters)
        return self.cooperative or (patient and (len(self.clusters) + 1) * self.cluster <= MAX_RESIDENT)

    def _admit(self) -> bool:
        """Begin a cluster if the others are done, or do not end."""
        if self.begun == len(self.firsts) or (self.clusters and not self._may_admit()):
            return False
        taken = {cluster.place for cluster in self.clusters}
        place = next(place for place in count(0, self.cluster) if place not in taken)
        try:
            self.clusters.append(Cluster(self, place, self.firsts[self.begun]))
        except MemoryError:
            if not self.clusters or self.cooperative:
                raise
            return False
        self.begun += 1
        for cluster in self.clusters:
            cluster.turns = 0
        return True

    def waits_elsewhere(self, cluster: Cluster) -> bool:
        """Whether a cluster may wait for another one: at the barrier of the grid."""
        return any(lane.warp.block.cluster is cluster for lane in self.arrived)

    def arrive(self, warp: Warp, pos: int, group: list[Lane]) -> int:
        """The barrier of the grid."""
        self.tell_barrier(warp, pos, lib.PE_BARRIER_GRID, group)
        for lane in group:
            lane.state = WAITING
        self.arrived += group
        if len(self.arrived) == self.blocks * self.threads:
            for lane in self.arrived:
                lane.state = READY
            self.arrived = []
        return SPLIT

    def _look_for_deadlock(self) -> None:
        none_left = self.begun == len(self.firsts)
        if self.clusters and none_left and all(cluster.stuck > STUCK for cluster in self.clusters):
            warp = next(warp for warp in self.clusters[0].warps if warp.polling)
            self.call("pe_lanes_mbarrier_deadlock", warp)
