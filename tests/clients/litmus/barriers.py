"""The barriers of litmus tests: which one each instruction comes to, and whether all threads get past theirs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.clients.litmus.text import BRANCHES, Instruction, Litmus, NotExpressible, Thread, is_register

LAST_BARRIER = 15
"""The barrier at which the threads of a block end a round, which no text may use."""
WRITES = ("ld", "cold", "tld", "suld", "atom", "add", "sub", "mul", "div")


@dataclass(frozen=True)
class Arrival:
    """At the barrier of a number in a CTA, which so many threads complete."""

    cta: tuple[int, int]
    number: int
    quorum: int
    waits: bool


def is_barrier(instruction: Instruction) -> bool:
    return instruction.opcode.startswith("bar.")


def arrival(litmus: Litmus, thread: Thread, instruction: Instruction) -> Arrival:
    """Without a number, that of the place in the program is one; without a quorum, those who name the barrier come."""
    number, quorum = _named(thread, instruction)
    if number >= LAST_BARRIER:
        raise NotExpressible("more than 15 barriers")
    if quorum is None:
        others = [other for other in litmus.threads if other.cta == thread.cta]
        quorum = sum(any(_named(other, i)[0] == number for i in other.instructions if is_barrier(i)) for other in others)
    return Arrival(thread.cta, number, quorum, instruction.opcode.endswith("sync"))


def _named(thread: Thread, instruction: Instruction) -> tuple[int, int | None]:
    place, *given = [_constant(thread, operand) for operand in instruction.operands]
    return given[0] if given else place, given[1] if len(given) > 1 else None


def _constant(thread: Thread, operand: str) -> int:
    if not is_register(operand):
        return int(operand, 0)
    for instruction in thread.instructions:
        if instruction.operands[:1] == (operand,) and instruction.opcode.split(".")[0] in WRITES:
            raise NotExpressible("a barrier whose number is loaded: lanes that stand for runs would come to several")
    return thread.registers.get(operand, 0)


def all_get_past(litmus: Litmus) -> bool:
    """Whether no thread waits for ever; with branches nobody says so beforehand."""
    if any(instruction.opcode in BRANCHES for thread in litmus.threads for instruction in thread.instructions):
        return True
    left = [[arrival(litmus, thread, i) for i in thread.instructions if is_barrier(i)] for thread in litmus.threads]
    arrived: Counter[tuple[tuple[int, int], int]] = Counter()
    waiting: dict[int, tuple[tuple[int, int], int]] = {}
    while able := [i for i, sequence in enumerate(left) if sequence and i not in waiting]:
        came = left[able[0]].pop(0)
        barrier = (came.cta, came.number)
        arrived[barrier] += 1
        if came.waits:
            waiting[able[0]] = barrier
        if arrived[barrier] == came.quorum:
            arrived[barrier] = 0
            waiting = {thread: other for thread, other in waiting.items() if other != barrier}
    return not waiting
