"""Instructions among the lanes of a warp: shfl, vote, match, redux, elect, activemask (PTX ISA)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxemu.interpreter.lane import YIELD, Lane, Step
from ptxemu.interpreter.meetings import ALL, Meeting
from ptxemu.interpreter.translate import Translator, bits_of, method, write_all
from ptxemu.ir.ops import Op
from ptxemu.ir.types import U32

Inputs = Sequence[Any]
Compute = Callable[[dict[int, Inputs], set[int]], dict[int, Inputs]]
"""The results of each lane from the operands of those that execute, and the lanes that take part."""


def collective(t: Translator, op: Op, names: Sequence[str], compute: Compute) -> Step:
    """An instruction that lanes execute together: those of its membermask, or, without one, those that are there.

    ``names`` are the operands that ``compute`` takes.
    """
    readers = [t.operand(op, name) for name in names]
    writers = t.writers(op)
    members = None if op.get("membermask") is None else t.reader(op["membermask"], U32)
    key = (op.opcode, tuple(sorted(op.mods.values())), op.negs)
    after = t.after

    def run(lanes: list[Lane], inputs: list[Inputs], mask: int) -> dict[int, Inputs]:
        given = {lane.index: values for lane, values in zip(lanes, inputs, strict=True)}
        return compute(given, {index for index in given if mask >> index & 1})

    def execute(warp: Any, lanes: list[Lane], meetings: list[Meeting], mask: int) -> None:
        results = run(lanes, [meeting.inputs for meeting in meetings], mask)
        for lane, meeting in zip(lanes, meetings, strict=True):
            meeting.finish(lane, results[lane.index])

    def finish(lane: Lane, results: Inputs) -> None:
        write_all(writers, lane, results[: len(writers)])

    def step(warp: Any, group: list[Lane]) -> int | None:
        inputs: list[Inputs] = [[read(lane) for read in readers] for lane in group]
        if members is None:
            for lane, results in zip(group, run(group, inputs, ALL).items(), strict=True):
                finish(lane, results[1])
            return None
        meetings = [
            Meeting(key, members(lane), values, execute, finish, op.pos, False)
            for lane, values in zip(group, inputs, strict=True)
        ]
        return warp.meetings.arrive(group, meetings, after)  # type: ignore[no-any-return]

    return step


@method("shfl")
def shfl(t: Translator, op: Op) -> Step:
    mode = op.mods["mode"]

    def compute(given: dict[int, Inputs], who: set[int]) -> dict[int, Inputs]:
        results: dict[int, Inputs] = {}
        for lane, (own, b, c) in given.items():
            source, valid = _source(mode, lane, b & 31, c >> 8 & 31, c & 31)
            results[lane] = (given[source][0] if source in given else own, int(valid))
        return results

    return collective(t, op, "abc", compute)


def _source(mode: str, lane: int, b: int, segment: int, limit: int) -> tuple[int, bool]:
    """The lane that one reads, and whether it is in range (PTX ISA, pseudocode of "shfl.sync")."""
    low = lane & segment
    bound = low | limit & ~segment
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | b & ~segment}[mode]
    valid = source >= bound if mode == "up" else source <= bound
    return (source if valid else lane), valid


@method("vote")
def vote(t: Translator, op: Op) -> Step:
    mode = op.mods["mode"]

    def compute(given: dict[int, Inputs], who: set[int]) -> dict[int, Inputs]:
        yes = [lane for lane in who if given[lane][0]]
        result = {
            "ballot": sum(1 << lane for lane in yes), "any": int(bool(yes)), "all": int(len(yes) == len(who)),
            "uni": int(len(yes) in (0, len(who))),
        }[mode]  # fmt: skip
        return {lane: (result,) for lane in given}

    return collective(t, op, "a", compute)


@method("activemask")
def activemask(t: Translator, op: Op) -> Step:
    return collective(t, op, "", lambda given, who: {lane: (sum(1 << other for other in who),) for lane in given})


@method("elect")
def elect(t: Translator, op: Op) -> Step:
    """The leader is the lowest lane, which the manual leaves open."""

    def compute(given: dict[int, Inputs], who: set[int]) -> dict[int, Inputs]:
        leader = min(who, default=32)
        return {lane: (leader, int(lane == leader)) for lane in given}

    return collective(t, op, "", compute)


@method("match")
def match(t: Translator, op: Op) -> Step:
    everyone = op.mods["mode"] == "all"

    def compute(given: dict[int, Inputs], who: set[int]) -> dict[int, Inputs]:
        results: dict[int, Inputs] = {}
        members = sum(1 << lane for lane in who)
        for lane in given:
            same = sum(1 << other for other in who if given[other] == given[lane])
            results[lane] = (members * (same == members), int(same == members)) if everyone else (same,)
        return results

    return collective(t, op, "a", compute)


@method("redux")
def redux(t: Translator, op: Op) -> Step:
    kind = op.type()
    combine = _redux_float if kind.is_float else _redux_integer

    def compute(given: dict[int, Inputs], who: set[int]) -> dict[int, Inputs]:
        result = combine(op, [given[lane][0] for lane in sorted(who)])
        return {lane: (result,) for lane in given}

    return collective(t, op, "a", compute)


def _redux_integer(op: Op, values: list[int]) -> int:
    name, kind = op.mods["op"], op.type()
    if name in ("min", "max"):
        sign = 1 << 31 if kind.is_signed else 0  # signed order is that of the patterns with the sign inverted
        best = (min if name == "min" else max)(value ^ sign for value in values)
        return best ^ sign
    total = values[0]
    for value in values[1:]:
        total = {"add": total + value, "and": total & value, "or": total | value, "xor": total ^ value}[name]
    return total & bits_of(kind)


def _redux_float(op: Op, values: list[int]) -> int:
    """-0 is below +0; NaNs count with ``.NaN`` only."""
    numbers = [value for value in values if value & 0x7FFFFFFF <= 0x7F800000]
    if not numbers or ("nan" in op.mods and len(numbers) < len(values)):
        return 0x7FFFFFFF
    if "abs" in op.mods:
        numbers = [value & 0x7FFFFFFF for value in numbers]
    pick = min if op.mods["op"] == "min" else max
    return pick(numbers, key=lambda value: ~(value & 0x7FFFFFFF) if value >> 31 else value)


@method("bar_warp_sync")
def bar_warp_sync(t: Translator, op: Op) -> Step:
    return collective(t, op, "", lambda given, who: {lane: () for lane in given})


@method("nanosleep")
def nanosleep(t: Translator, op: Op) -> Step:
    """The pause may be as short as nothing; the others have a turn."""
    return lambda warp, group: YIELD
