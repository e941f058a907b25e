"""What an instruction's modifiers say of other threads (PTX ISA, "Memory Consistency Model")."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Op

RELEASING = frozenset({"release", "acq_rel", "sc"})
ACQUIRING = frozenset({"acquire", "acq_rel", "sc"})


def strength(op: Op) -> int:
    """Of a strong access: PE_NARROW, PE_CLUSTERED, PE_LOCK of ``observer.h``, or'ed."""
    narrow = {"cta": lib.PE_NARROW, "cluster": lib.PE_CLUSTERED}.get(str(op.mods.get("scope")), 0)
    locks = op.mods.get("op") == "cas" and ACQUIRING.isdisjoint(op.mods.values())
    return int(narrow | lib.PE_LOCK if locks else narrow)


def of_system(op: Op) -> bool:
    """Whether threads of other devices and of the host may take part."""
    return op.mods.get("scope", "sys" if "system" in op.row.traits else "gpu") == "sys"
