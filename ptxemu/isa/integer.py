"""Integer arithmetic, bit fields and extended precision (PTX ISA 9.7.1 and 9.7.2)."""

from __future__ import annotations

from functools import partial

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

ARITHMETIC = "9.7.1 Integer Arithmetic Instructions"
EXTENDED = "9.7.2 Extended-Precision Integer Arithmetic Instructions"
ALL = "type=u16,u32,u64,s16,s32,s64"
DOT_OPERANDS = "d:dot(atype,btype), a:atype, b:btype, c:dot(atype,btype)"
CARRY_TYPE = "type=u32,s32,u64,s64"
CARRY_GATES = "cc&u64@4.3@20 cc&s64@4.3@20"

for opcode in ("add", "sub"):
    row(opcode, ALL, "d:type, a:type, b:type", lower=f"{opcode}.int", chapter=ARITHMETIC)
    row(opcode, "sat type=s32", "d:type, a:type, b:type", lower=f"{opcode}.int", chapter=ARITHMETIC)
row("add", "type=u16x2,s16x2", "d:type, a:type, b:type", ptx="8.0", sm=90, lower="add.packed", chapter=ARITHMETIC)
packed = partial(row, ptx="9.2", sm=107, flags="accelerated bytes", chapter=ARITHMETIC)
for opcode in ("add", "sub"):
    packed(opcode, "sat? type=u8x4,s8x4", "d:type, a:type, b:type", lower=f"{opcode}.packed")
packed("add", "sat type=u16x2,s16x2", "d:type, a:type, b:type", lower="add.packed")
packed("add", "sat type=u32", "d:type, a:type, b:type", lower="add.int")
packed("neg", "type=s8x4", "d:type, a:type", lower="neg.packed")
for opcode in ("min", "max"):
    packed(opcode, "type=u8x4", "d:type, a:type, b:type", lower=f"{opcode}.packed")
    packed(opcode, "relu? type=s8x4", "d:type, a:type, b:type", lower=f"{opcode}.packed")
row("clmad", "mode=hi,lo type=u64", "d:type, a:type, b:type, c:type", ptx="9.3", sm=80, chapter=ARITHMETIC)

row("mul", "mode=hi,lo " + ALL, "d:type, a:type, b:type", lower="mul.int", chapter=ARITHMETIC)
row("mul", "mode=wide type=u16,u32,s16,s32", "d:wide(type), a:type, b:type", lower="mul.int", chapter=ARITHMETIC)
row("mad", "mode=hi,lo " + ALL, "d:type, a:type, b:type, c:type", lower="mad.int", chapter=ARITHMETIC)
row(
    "mad",
    "mode=wide type=u16,u32,s16,s32",
    "d:wide(type), a:type, b:type, c:wide(type)",
    lower="mad.int",
    chapter=ARITHMETIC,
)
row("mad", "mode=hi sat type=s32", "d:type, a:type, b:type, c:type", lower="mad.int", chapter=ARITHMETIC)
row("mul24", "mode=hi,lo type=u32,s32", "d:type, a:type, b:type", chapter=ARITHMETIC)
row("mad24", "mode=hi,lo type=u32,s32", "d:type, a:type, b:type, c:type", chapter=ARITHMETIC)
row("mad24", "mode=hi sat type=s32", "d:type, a:type, b:type, c:type", chapter=ARITHMETIC)
row("sad", ALL, "d:type, a:type, b:type, c:type", chapter=ARITHMETIC)
row("div", ALL, "d:type, a:type, b:type", lower="div.int", chapter=ARITHMETIC)
row("rem", ALL, "d:type, a:type, b:type", chapter=ARITHMETIC)
row("abs", "type=s16,s32,s64", "d:type, a:type", lower="abs.int", chapter=ARITHMETIC)
row("neg", "type=s16,s32,s64", "d:type, a:type", lower="neg.int", chapter=ARITHMETIC)
for opcode in ("min", "max"):
    row(opcode, ALL, "d:type, a:type, b:type", lower=f"{opcode}.int", chapter=ARITHMETIC)
    row(opcode, "relu type=s32", "d:type, a:type, b:type", ptx="8.0", sm=90, lower=f"{opcode}.int", chapter=ARITHMETIC)
    row(opcode, "type=u16x2", "d:type, a:type, b:type", ptx="8.0", sm=90, lower=f"{opcode}.packed", chapter=ARITHMETIC)
    row(
        opcode,
        "relu? type=s16x2",
        "d:type, a:type, b:type",
        ptx="8.0",
        sm=90,
        lower=f"{opcode}.packed",
        chapter=ARITHMETIC,
    )

for opcode in ("popc", "clz"):
    row(opcode, "type=b32,b64", "d:u32, a:type", ptx="2.0", sm=20, chapter=ARITHMETIC)
row("brev", "type=b32,b64", "d:type, a:type", ptx="2.0", sm=20, chapter=ARITHMETIC)
row("bfind", "shiftamt? type=u32,u64,s32,s64", "d:u32, a:type", ptx="2.0", sm=20, chapter=ARITHMETIC)
row("fns", "type=b32", "d:b32, a:b32, b:b32, c:s32", ptx="6.0", sm=30, chapter=ARITHMETIC)
row("bfe", "type=u32,u64,s32,s64", "d:type, a:type, b:u32<0..255>, c:u32<0..255>", ptx="2.0", sm=20, chapter=ARITHMETIC)
row("bfi", "type=b32,b64", "d:type, a:type, b:type, c:u32<0..255>, e:u32<0..255>", ptx="2.0", sm=20,
    chapter=ARITHMETIC)  # fmt: skip
row("szext", "mode=clamp,wrap type=u32,s32", "d:type, a:type, b:u32", ptx="7.6", sm=70, chapter=ARITHMETIC)
row("bmsk", "mode=clamp,wrap type=b32", "d:b32, a:u32, b:u32", ptx="7.6", sm=70, chapter=ARITHMETIC)
row("dp4a", "atype=u32,s32 btype=u32,s32", DOT_OPERANDS, ptx="5.0", sm=61, chapter=ARITHMETIC)
row(
    "dp2a",
    "mode=lo,hi atype=u32,s32 btype=u32,s32",
    DOT_OPERANDS,
    ptx="5.0",
    sm=61,
    chapter=ARITHMETIC,
)

# CC.CF, the carry flag, is an implicit register: these rows read it, write it or both.
extended = partial(row, chapter=EXTENDED, gates=CARRY_GATES)
for opcode in ("add", "sub"):
    carry = partial(extended, ptx="1.2", lower=f"{opcode}.carry")
    carry(opcode, "cc " + CARRY_TYPE, "d:type, a:type, b:type", does="writes cc")
    carry(opcode + "c", CARRY_TYPE, "d:type, a:type, b:type", does="reads cc")
    carry(opcode + "c", "cc " + CARRY_TYPE, "d:type, a:type, b:type", does="reads cc, writes cc")
mad_carry = partial(extended, ptx="3.0", sm=20, lower="mad.carry")
MAD_OPERANDS = "d:type, a:type, b:type, c:type"
mad_carry("mad", "mode=hi,lo cc " + CARRY_TYPE, MAD_OPERANDS, does="writes cc")
mad_carry("madc", "mode=hi,lo " + CARRY_TYPE, MAD_OPERANDS, does="reads cc")
mad_carry("madc", "mode=hi,lo cc " + CARRY_TYPE, MAD_OPERANDS, does="reads cc, writes cc")

traits("integer sized", "bmsk")
traits("steps numbers", "add", "sub", "mul", "mad", "mul24", "mad24")
traits("base:a", "add", "sub")
traits("base:b", "add")
traits("base:c", "mad")
traits("integer sized:3", "dp2a", "dp4a")
traits("composed:64", "div", "rem")
traits("unsized:1 unsized:2 unsized:3", "fns")
name_words("lo hi wide", "mul", "mad", "madc", "mul24", "mad24", "dp2a")
