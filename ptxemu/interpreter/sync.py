"""Barriers of blocks and clusters."""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import lib
from ptxemu.device.standing import BARRIERS
from ptxemu.interpreter.barriers import Arrival
from ptxemu.interpreter.lane import SPLIT, Lane, Step
from ptxemu.interpreter.meetings import ALL, Meeting
from ptxemu.interpreter.translate import Translator, method
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.ir.types import U32


@method("barrier_sync", "barrier_arrive", "barrier_red")
def barrier(t: Translator, op: Op) -> Step:
    """bar, barrier: ``.aligned`` (which ``bar`` always is) counts warps, whose lanes come to it together."""
    red, waits = op.get("c") is not None, not op.effects.arrives
    threads = "aligned" in op.row.by_modifier and "aligned" not in op.mods
    number = t.reader(op["a"], U32)
    count = t.reader(op["b"], U32) if op["b"] is not None else (lambda lane: 0)
    predicate = t.operand(op, "c") if red else (lambda lane: 0)
    how, after = Arrival(op.pos, waits, red, threads), t.after
    write = t.result(op)

    def result(lane: Lane, votes: list[bool]) -> None:
        if write is not None:
            value = sum(votes) if op.mods["op"] == "popc" else int((all if op.mods["op"] == "and" else any)(votes))
            write(lane, value)

    def come(warp: Any, lanes: list[Lane], named: list[tuple[int, int]]) -> None:
        for number, count in dict.fromkeys(named):
            if number >= BARRIERS:
                warp.fault(lib.PE_BARRIER_MISUSE, op.pos, -1, f"barrier {number}: there are 16 barriers, 0 to 15")
            same = [lane for lane, name in zip(lanes, named, strict=True) if name == (number, count)]
            votes = [bool(predicate(lane)) for lane in same] if red else []
            warp.block.barriers.arrive(warp, same, number, count, how, votes, result)

    def execute(warp: Any, lanes: list[Lane], meetings: list[Meeting], mask: int) -> None:
        come(warp, lanes, [meetings[0].inputs] * len(lanes))  # of lanes that differ the first counts

    def step(warp: Any, group: list[Lane]) -> int | None:
        named = [(number(lane), count(lane)) for lane in group]
        for lane in group:
            lane.pc = after
        if threads:
            come(warp, group, named)
            return SPLIT
        key = (op.row.lower, op.mods.get("op"))
        meetings = [Meeting(key, ALL, name, execute, lambda lane, results: None, op.pos, True) for name in named]
        warp.meetings.arrive(group, meetings, after)
        return SPLIT

    return step


@method("wgmma_wait")
def wgmma_wait(t: Translator, op: Op) -> Step:
    """wgmma.wait_group: the warps of a warpgroup wait for each other, each with all its lanes."""
    after = t.after

    def execute(warp: Any, lanes: list[Lane], meetings: list[Meeting], mask: int) -> None:
        if len(lanes) < LANES:
            warp.fault(lib.PE_PARTIAL_WARP, op.pos, -1, "an .aligned matrix instruction must be executed by all 32 lanes")
        warp.block.barriers.meet(warp, lanes, op.pos)

    def step(warp: Any, group: list[Lane]) -> int | None:
        for lane in group:
            lane.pc = after
        meetings = [Meeting(op.row.lower, ALL, None, execute, lambda lane, results: None, op.pos, True) for _ in group]
        warp.meetings.arrive(group, meetings, after)
        return SPLIT

    return step


@method("cluster_arrive")
def cluster_arrive(t: Translator, op: Op) -> Step:
    return lambda warp, group: warp.block.cluster.barrier.arrive(warp, group, op.pos)


@method("cluster_wait")
def cluster_wait(t: Translator, op: Op) -> Step:
    after = t.after

    def step(warp: Any, group: list[Lane]) -> int:
        for lane in group:
            lane.pc = after
        warp.block.cluster.barrier.wait(warp, group, op.pos)
        return SPLIT

    return step
