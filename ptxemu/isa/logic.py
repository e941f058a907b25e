"""Logic, shift and byte permutation (PTX ISA 9.7.8)."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "9.7.8 Logic and Shift Instructions"
PERMUTE = "9.7.9 Data Movement and Conversion Instructions"

for opcode in ("and", "or", "xor"):
    row(opcode, "type=pred,b16,b32,b64", "d:type, a:type, b:type", chapter=CHAPTER)
row("not", "type=pred,b16,b32,b64", "d:type, a:type", chapter=CHAPTER)
row("cnot", "type=b16,b32,b64", "d:type, a:type", chapter=CHAPTER)
row("lop3", "type=b32", "d_:b32, a:b32, b:b32, c:b32, immLut:u32", ptx="4.3", sm=50, chapter=CHAPTER)
row(
    "lop3",
    "bool=or,and type=b32",
    "d:b32|q:pred, a:b32, b:b32, c:b32, immLut:u32, p:pred",
    ptx="8.2",
    sm=70,
    chapter=CHAPTER,
)
row("shf", "dir=l,r mode=clamp,wrap type=b32", "d:b32, a:b32, b:b32, c:u32", ptx="3.1", sm=32, chapter=CHAPTER)
row("shl", "type=b16,b32,b64", "d:type, a:type, b:u32", chapter=CHAPTER)
row("shr", "type=b16,b32,b64,u16,u32,u64,s16,s32,s64", "d:type, a:type, b:u32", chapter=CHAPTER)
row("prmt", "type=b32 mode?=f4e,b4e,rc8,ecl,ecr,rc16", "d:b32, a:b32, b:b32, c:b32", ptx="2.0", sm=20, chapter=PERMUTE)

traits("unsized:1 unsized:2 unsized:3", "lop3", "prmt")
traits("unsized:1 unsized:2", "shf")
traits("assembles", "and", "or", "lop3", "prmt", "shf")
traits("absorbs:0", "and")
traits("absorbs:1", "or")
traits("count:2 functionless steps", "shl", "shr")
name_words("l r", "shf")
