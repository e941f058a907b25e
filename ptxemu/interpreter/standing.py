"""Where the warps of a launch stand, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from ptxemu.device.standing import at_barrier, listed
from ptxemu.device.standing import in_words as line_of
from ptxemu.interpreter.lane import EXITED, READY, WAITING, Lane
from ptxemu.interpreter.machine import Block, Grid, Warp
from ptxemu.interpreter.translate import Code
from ptxemu.ir.ops import STRONG, Addr, Op, Reg
from ptxemu.isa.table import CLUSTER
from ptxemu.isa.work import ATOMIC, class_of

STATES = {READY: "can run", EXITED: "exited", WAITING: "waits"}


def position(lane: Lane) -> int:
    """The instruction that a lane is at: one that waits has not left its own."""
    return lane.pc - 1 if lane.state == WAITING else lane.pc


def op_at(lane: Lane) -> Op:
    return lane.code.ops[position(lane)]


class Stand(Struct, frozen=True):
    """Lanes of a warp that are at the same place: ``waits`` says for what, if they do."""

    warp: Warp
    lanes: tuple[Lane, ...]
    op: Op | None
    waits: str

    @property
    def mask(self) -> int:
        return sum(lane.bit for lane in self.lanes)


def stands(grid: Grid) -> Iterator[Stand]:
    """Where all warps of all blocks are that have begun and not ended."""
    for block in grid.resident:
        for warp in block.warps:
            yield from stands_of(warp)


def stands_of(warp: Warp) -> Iterator[Stand]:
    found: dict[tuple[Any, ...], list[Lane]] = {}
    for lane in warp.lanes:
        place = (None, 0) if lane.state == EXITED else (lane.code, position(lane))
        found.setdefault((*place, lane.state, waits_for(lane)), []).append(lane)
    for (code, pc, _, waits), lanes in found.items():
        yield Stand(warp, tuple(lanes), None if code is None else code.ops[pc], waits)


def waits_for(lane: Lane) -> str:
    """What a lane waits for, in words; empty if it can go on."""
    if lane.state != WAITING:
        return "an mbarrier, again and again" if lane.warp.polling and lane.state != EXITED else ""
    if lane.meeting is not None:
        missing = lane.meeting.mask & lane.warp.live & ~sum(
            other.bit for other in lane.warp.meetings.waiting
            if other.meeting is not None and (other.meeting.key, other.meeting.mask) == (lane.meeting.key, lane.meeting.mask)
        )  # fmt: skip
        return f"lanes 0x{missing:08x} of its membermask 0x{lane.meeting.mask:08x}"
    barriers = lane.warp.block.barriers
    for number, barrier in barriers.active.items():
        if any(other is lane for other, _ in barrier.waiting):
            threads = sum(1 for warp in lane.warp.block.warps for other in warp.lanes if other.state != EXITED)
            return at_barrier(number, barrier.arrived, barrier.count or threads)
    if lane in lane.warp.block.cluster.barrier.waiting:
        return "barrier.cluster"
    if lane in lane.warp.block.pairing.waiting:
        return "the other block of its pair"
    return "the barrier of the grid" if lane in lane.warp.grid.arrived else "others"


def spot_of_spin(lane: Lane) -> tuple[Op, int] | None:
    """What a lane reads again and again, as others may write it: the instruction in its loop, and the address."""
    loop = _loop(lane.code, position(lane))
    for op in lane.code.ops[loop.start : loop.stop]:
        if op.row.effects.accesses and (class_of(op) == ATOMIC or STRONG & set(op.mods.values())):
            address = op.access.address
            if op.access.shared_with_others and isinstance(address, Addr) and isinstance(address.base, Reg):
                return op, lane.r[lane.code.slots[address.base]] + address.offset
    return None


def _loop(code: Code, pc: int) -> range:
    """The shortest way round of an instruction; empty if there is none."""
    ways = [
        range(code.labels[label], end + 1)
        for end, op in enumerate(code.ops) if end >= pc
        for label in op.labels if code.labels[label] <= pc
    ]  # fmt: skip
    return min(ways, key=len, default=range(0))


def block_of(block: Block) -> tuple[int, int, int]:
    x, y, z = block.warps[0].w.ctaid
    return int(x), int(y), int(z)


def in_words(stand: Stand, where: Callable[[Op], str], describe: Callable[[int], str]) -> str:
    """``block (0,0,0) warp 1 lanes 0xffffffff waits for barrier 0 ...  k.cu:3``.

    ``where`` says where an instruction is, ``describe`` where a global address lies.
    """
    lane = stand.lanes[0]
    state = f"waits for {stand.waits}" if stand.waits else STATES[lane.state]
    if lane.state == READY and not stand.waits and (spin := spot_of_spin(lane)) is not None:
        state += f", in a loop on {_memory(*spin, describe)}"
    place = "" if stand.op is None else where(stand.op)
    return line_of(stand.warp.index, block_of(stand.warp.block), stand.mask, state, place)


def _memory(op: Op, address: int, describe: Callable[[int], str]) -> str:
    """The memory that an instruction is about, in words."""
    space = op.access.space.split("::")[0]
    return f"{op.opcode}, {f'byte {address} of shared memory' if space in ('shared', CLUSTER) else describe(address)}"


def stuck(grid: Grid, where: Callable[[Op], str], describe: Callable[[int], str]) -> str:
    """Where all lanes are that have not exited, a line for each place of a warp."""
    lines = [in_words(stand, where, describe) for stand in stands(grid) if stand.op is not None]
    return listed(lines, len(lines))
