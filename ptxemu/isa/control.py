"""Control flow (PTX ISA, "Control Flow Instructions" and "Miscellaneous Instructions")."""

from __future__ import annotations

from ptxemu.isa.table import row

CHAPTER = "Control Flow Instructions"
MISCELLANEOUS = "Miscellaneous Instructions"

row("bra", "uni?", "t:label", does="leaves block", chapter=CHAPTER)
row("brx", "idx uni?", "a:u32, t:targets", ptx="6.0", sm=30, does="leaves block", chapter=CHAPTER)
row("call", "uni?", "...", does="calls, varying", chapter=CHAPTER)
row("ret", "uni?", "", does="leaves function", chapter=CHAPTER)
row("exit", "", "", does="leaves kernel", chapter=CHAPTER)
row("trap", "", "", does="leaves launch", chapter=MISCELLANEOUS)
row("brkpt", "", "", sm=11, does="nothing", chapter=MISCELLANEOUS)
row("pmevent", "", "immA:u32(0..15)", ptx="1.4", does="nothing", chapter=MISCELLANEOUS)
row("pmevent", "mask", "immA:u32(0..65535)", ptx="3.0", sm=20, does="nothing", chapter=MISCELLANEOUS)
