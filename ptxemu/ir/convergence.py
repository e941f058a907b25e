"""Instructions at which threads wait for each other: barriers, and ``.sync`` instructions of a warp."""

from __future__ import annotations

from ptxemu.ir.ops import Function, Imm, Op, Operand

ALL_LANES = 0xFFFFFFFF
ALIGNED = "aligned"

Qualifiers = tuple[str, tuple[str, ...], tuple[bool, ...]]


def meets(op: Op) -> bool:
    """Whether lanes of a warp wait for each other at an instruction."""
    return op.effects.meets in ("membermask", "warp") or is_grid_barrier(op)


def is_grid_barrier(op: Op) -> bool:
    callee = None if op.call is None else op.call.callee
    return isinstance(callee, Function) and callee.name.startswith("cudaCGSynchronize")


def is_plain_barrier(op: Op) -> bool:
    """A barrier of all threads of the CTA that gives no result, with a number that is known."""
    return op.effects.waits == "cta" and not op.dsts and isinstance(op["a"], Imm) and op["b"] is None


def membermask(op: Op) -> Operand | None:
    """Which lanes meet, if the instruction says: else all that have not exited."""
    members: Operand | None = op.get("membermask")
    return members


def counts_threads(op: Op) -> bool:
    """A barrier without ``.aligned``: every thread arrives for itself (PTX ISA "bar, barrier")."""
    return op.effects.counts_cta and ALIGNED in op.row.by_modifier and ALIGNED not in op.mods


def meets_all(op: Op) -> bool:
    """Whether no lane of a warp gets past an instruction before all are there."""
    if op.effects.counts_cta:
        return not counts_threads(op)
    members = membermask(op)
    return isinstance(members, Imm) and members.bits & ALL_LANES == ALL_LANES


def only_meets(op: Op) -> bool:
    """Whether lanes wait for each other at an instruction and do nothing else."""
    return op.row.names == {"membermask"}


def qualifiers(op: Op) -> Qualifiers | None:
    """What instructions with a membermask must have in common to meet; None for all other instructions."""
    if op.effects.meets != "membermask" or op.guard is not None:
        return None
    return op.opcode, tuple(sorted(op.mods.values())), op.negs
