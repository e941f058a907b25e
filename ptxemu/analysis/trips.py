"""What a trip of a loop has from the trips before it, and what from outside."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.ir.graph import Block, Phi, reads, writes
from ptxemu.ir.ops import Imm, Op, Reg

Makers = dict[Reg, Op | Phi]


def makers(blocks: Iterable[Block]) -> Makers:
    """What makes the registers of the blocks of a loop."""
    made: Makers = {}
    for block in blocks:
        made |= {phi.dst: phi for phi in block.phis}
        made |= {reg: op for op in block.ops for reg in writes(op)}
    return made


def sources(start: Iterable[Reg], made: Makers) -> tuple[set[Op | Phi], set[Reg]]:
    """What makes values in a loop, down to its phis, and the registers from outside that they follow from."""
    found: set[Op | Phi] = set()
    outside: set[Reg] = set()
    work = list(start)
    while work:
        reg = work.pop()
        maker = made.get(reg)
        if maker is None:
            outside.add(reg)
        elif maker not in found:
            found.add(maker)
            if isinstance(maker, Op):
                work.extend(reads(maker))
    return found, outside


def steps(phi: Phi, latches: Iterable[Block], made: Makers) -> tuple[bool, set[Reg]]:
    """Whether a value of the header follows from that of the trip before alone, and from which registers from outside."""
    start = [arg for latch in latches if isinstance(arg := phi.args[latch], Reg)]
    inside, outside = sources(start, made)
    return all(source == phi or (isinstance(source, Op) and not source.accesses) for source in inside), outside


def step_of(phi: Phi, latch: Block, made: Makers) -> Op | None:
    """What makes a value of the header of that of the trip before, if one op does."""
    after = phi.args[latch]
    step = made.get(after) if isinstance(after, Reg) else None
    return step if isinstance(step, Op) and phi.dst in step.srcs else None


def constant_step(phi: Phi, latch: Block, made: Makers) -> int | None:
    """By how much, up or down, it is from that, if the op has a constant, too."""
    step = step_of(phi, latch, made)
    numbers = [source for source in step.srcs if isinstance(source, Imm)] if step is not None else []
    return min(map(_size, numbers), default=None)


def _size(number: Imm) -> int:
    """Without its sign."""
    return min(number.bits, (1 << number.type.bits) - number.bits)
