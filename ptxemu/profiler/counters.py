"""What is counted, instruction by instruction, while a launch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from ptxemu._runtime import lib
from ptxemu.device.launch_limits import Shape
from ptxemu.interpreter.births import Birth, Births
from ptxemu.interpreter.lane import Lane
from ptxemu.interpreter.machine import Grid, Warp
from ptxemu.interpreter.observer import Access, Observer
from ptxemu.interpreter.schedule import Schedule
from ptxemu.interpreter.standing import block_of
from ptxemu.interpreter.translate import Code
from ptxemu.ir.ops import Op
from ptxemu.isa.work import ATOMIC, class_of
from ptxemu.profiler.traffic import Traffic, different_bytes, ideal_sectors, local_sectors, sectors_of, wavefronts_of
from ptxemu.text.errors import InputError

PATIENCE = 100  # turns until lanes that have waited longest go first: a GPU has lanes catch up wherever it can
HOTTEST = 8  # addresses of atomics that are shown
KINDS = {lib.PE_READ: "ld", lib.PE_WRITE: "st", lib.PE_UPDATE: "atom"}
SPACES = {
    lib.PE_GLOBAL: "global", lib.PE_SHARED: "shared", lib.PE_LOCAL: "local", lib.PE_CONST: "const", lib.PE_PARAM: "param",
    lib.PE_TEXEL: "texel",
}  # fmt: skip


class Counts(Struct):
    """Of one instruction. ``executed`` counts warps, ``threads`` their threads, ``active`` those whose guard holds; ``divergent``
    the branches that threads left for different places; ``passes`` what atomics of one warp would take one after the other,
    where threads update the same address."""

    executed: int = 0
    threads: int = 0
    active: int = 0
    divergent: int = 0
    passes: int = 0
    traffic: dict[tuple[str, str], Traffic] = {}


class FirstBirth(Struct):
    """The first NaN, infinity or subnormal number that an instruction made: its block and thread, the bits of the operands and of
    the result; and how often threads made one."""

    block: tuple[int, int, int]
    thread: tuple[int, ...]
    operands: tuple[int, ...]
    result: int
    times: int = 0


class LaunchCounts(Struct, eq=False):
    """Of a launch, by instruction. ``updates`` counts those of each address by atomics; ``sectors`` are those of global memory
    that it touches at all; ``hottest`` are the addresses with the most updates, in words."""

    image: Any
    shape: Shape
    shared: int
    counts: dict[Op, Counts] = {}
    updates: Counter[tuple[str, int]] = field(default_factory=Counter)
    sectors: set[int] = set()
    hottest: list[tuple[str, int]] = []
    births: dict[tuple[Op, str], FirstBirth] = {}
    blocks: int = 0  # that were run
    stopped: bool = False


class Profiler(Observer):
    """Counts what launches do; ``launches`` has those that have begun. ``describe`` says where a global address lies.

    ``births``: also which instructions make NaNs, infinities and subnormal numbers. ``sample``: the blocks that are run, of each
    launch.
    """

    def __init__(self, describe: Callable[[int], str], births: bool = False, sample: slice = slice(None)) -> None:
        self._describe = describe
        self._births = Births() if births else None
        self.schedule = Schedule(patience=PATIENCE)
        self.launches: list[LaunchCounts] = []
        self.sample = sample

    def chosen(self, blocks: range) -> Sequence[int]:
        found = blocks[self.sample]
        if not found:
            raise InputError(f"none of the blocks to be profiled is there: the launch has {len(blocks)}")
        return found

    def begins(self, grid: Grid) -> None:
        config = grid.config
        shape = Shape(tuple(config.grid), tuple(config.block))
        shared = grid.image.static_shared + config.dynamic_shared
        self.launches.append(LaunchCounts(grid.image, shape, shared, blocks=grid.blocks))

    def executes(self, warp: Warp, group: list[Lane], code: Code, pc: int) -> None:
        op, found = code.ops[pc], self.launches[-1].counts
        counts = found.get(op) or found.setdefault(op, Counts())
        counts.executed += 1
        counts.threads += len(group)
        if op.guard is None:
            counts.active += len(group)
        else:
            slot, negated = code.slots[op.guard[0]], op.guard[1]
            counts.active += sum(bool(lane.r[slot]) != negated for lane in group)
        if self._births is not None:
            self._births.before(group, code, op)

    def executed(self, warp: Warp, group: list[Lane], code: Code, pc: int, accesses: list[Access]) -> None:
        op = code.ops[pc]
        if op.labels and len({lane.pc for lane in group}) > 1:
            self.launches[-1].counts[op].divergent += 1
        for access in accesses:
            self._access(warp, op, access)
        if self._births is not None:
            for birth in self._births.after(op):
                self._note(op, birth)

    def _note(self, op: Op, birth: Birth) -> None:
        known, key = self.launches[-1].births, (op, birth.kind)
        if key not in known:
            known[key] = FirstBirth(block_of(birth.lane.warp.block), birth.lane.tid, birth.operands, birth.result)
        known[key].times += 1

    def ends(self, grid: Grid, error: Exception | None) -> None:
        launch = self.launches[-1]
        launch.stopped = error is not None
        for (space, address), times in launch.updates.most_common(HOTTEST):
            place = self._describe(address) if space == "global" else f"byte {address} of {space} memory"
            launch.hottest.append((place, times))

    def _access(self, warp: Warp, op: Op, access: Access) -> None:
        launch = self.launches[-1]
        kind, size, atomic = KINDS[access.kind], access.size, class_of(op) == ATOMIC
        kind = kind if kind != "atom" or not atomic or op.dsts else "red"
        for (space, _), (lanes, addresses) in _by_space(warp, access).items():
            traffic = launch.counts[op].traffic.setdefault((space, kind), Traffic())
            traffic.requests += 1
            traffic.bytes += size * len(addresses) if space == "local" else different_bytes(addresses, size)
            if space == "shared":
                wavefronts, least = wavefronts_of(lanes, addresses, size)
                traffic.wavefronts += wavefronts
                traffic.least += least
            elif space == "local":
                traffic.sectors += local_sectors(lanes, addresses, size)
            else:
                touched = sectors_of(addresses, size)
                traffic.sectors += len(touched)
                traffic.ideal += ideal_sectors(addresses, size)
                if space in ("global", "texel"):
                    launch.sectors |= touched
            if atomic:
                times = Counter(addresses)
                launch.counts[op].passes += max(times.values())
                launch.updates.update({(space, address): count for address, count in times.items()})


def _by_space(warp: Warp, access: Access) -> dict[tuple[str, int], tuple[list[int], list[int]]]:
    """The lanes of an access and their addresses by the space that these are in and, of shared memory, by the rank of the block
    whose it is; those of shared and local memory are offsets."""
    if access.space in SPACES:
        return {(SPACES[access.space], 0): (list(access.lanes), list(access.addresses))}
    w, shared = warp.w, warp.windows
    found: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
    windows = (
        ("local", w.local_base, w.local_size * 32), ("const", w.const_base, w.const_size), ("param", w.param_base, w.param_size),
    )  # fmt: skip
    for lane, address in zip(access.lanes, access.addresses, strict=True):
        space, base = next(((name, base) for name, base, size in windows if 0 <= address - base < size), ("global", 0))
        key, offset = (space, 0), (address - base) % w.local_size if space == "local" else address
        if shared.within(address):
            key, offset = ("shared", shared.rank_of(address)), shared.offset(address)
        lanes, addresses = found.setdefault(key, ([], []))
        lanes.append(lane)
        addresses.append(offset)
    return found
