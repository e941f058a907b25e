"""What a trip of a loop has from the trips before it, and what from outside."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.ir.graph import Block, Phi, reads, writes
from ptxemu.ir.ops import Op, Reg

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
