"""The per-thread stack (PTX ISA, "Stack Manipulation Instructions")."""

from __future__ import annotations

from ptxemu.isa.table import row

CHAPTER = "Stack Manipulation Instructions"

POWERS = ",".join(str(1 << bit) for bit in range(24))

row("alloca", "type=u32,u64", f"d:type, a:type, immAlign:u32({POWERS})?", ptx="7.3", sm=52,
    does="reads stack, writes stack, faults", chapter=CHAPTER)  # fmt: skip
row("stacksave", "type=u32,u64", "d:type", ptx="7.3", sm=52, does="reads stack", chapter=CHAPTER)
row("stackrestore", "type=u32,u64", "a.whole:type", ptx="7.3", sm=52, does="writes stack", chapter=CHAPTER)
