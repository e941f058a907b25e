"""Register moves (PTX ISA 9.7.9 ``mov``)."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import traits

CHAPTER = "9.7.9 Data Movement and Conversion Instructions"

# Bit-size types also move to or from a vector whose elements share the register evenly (the checker knows).
row("mov", "type=pred,u16,u32,u64,s16,s32,s64,f32,f64", "d:type, a:type", does="copies a", flags="specials", chapter=CHAPTER)
row("mov", "type=b16,b32,b64", "d:type, a:type", does="copies a", flags="specials", chapter=CHAPTER)
row("mov", "type=b128", "d:type, a:type", ptx="8.3", sm=70, does="copies a", flags="specials", chapter=CHAPTER)
for length, types in (("v2", "u16,u32,u64,s16,s32,s64,b16,b32,b64,f32,f64"), ("v4", "u16,u32,s16,s32,b16,b32,f32")):
    row("mov", f"vec={length} type={types}", "d:type*vec, a:type*vec", lower="mov.vector", chapter=CHAPTER)

traits("moves specials symbols base:a", "mov")
