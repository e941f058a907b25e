"""What an instruction's modifiers say of other threads (PTX ISA, "Memory Consistency Model")."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Op

RELEASING = frozenset({"release", "acq_rel", "sc"})
ACQUIRING = frozenset({"acquire", "acq_rel", "sc"})


def narrowness(op: Op) -> int:
    """Of a strong access: PE_NARROW or PE_CLUSTERED of ``observer.h``, or 0."""
    return int({"cta": lib.PE_NARROW, "cluster": lib.PE_CLUSTERED}.get(str(op.mods.get("scope")), 0))


def strength(op: Op) -> int:
    """The same, and PE_LOOSE and PE_LOCK, or'ed."""
    if not ACQUIRING.isdisjoint(op.mods.values()):
        return narrowness(op)
    return int(narrowness(op) | lib.PE_LOOSE | (lib.PE_LOCK if op.mods.get("op") == "cas" else 0))


def of_system(op: Op) -> bool:
    """Whether threads of other devices and of the host may take part."""
    return op.mods.get("scope", "sys" if "system" in op.row.traits else "gpu") == "sys"
