"""Control flow (PTX ISA, "Control Flow Instructions" and "Miscellaneous Instructions")."""

from __future__ import annotations

from ptxemu.isa.table import row

CHAPTER = "Control Flow Instructions"
MISCELLANEOUS = "Miscellaneous Instructions"

row("bra", "uni?", "t:label", flags="branch", chapter=CHAPTER)
row("brx", "idx uni?", "a:u32, t:targets", ptx="6.0", sm=30, flags="branch", chapter=CHAPTER)
row("call", "uni?", "...", flags="call varying", chapter=CHAPTER)
row("ret", "uni?", "", flags="return", chapter=CHAPTER)
row("exit", "", "", flags="exit", chapter=CHAPTER)
row("trap", "", "", flags="exit", chapter=MISCELLANEOUS)
row("brkpt", "", "", sm=11, chapter=MISCELLANEOUS)
row("pmevent", "", "immA:u32(0..15)", ptx="1.4", chapter=MISCELLANEOUS)
row("pmevent", "mask", "immA:u32(0..65535)", ptx="3.0", sm=20, chapter=MISCELLANEOUS)
