"""Comparison and selection (PTX ISA 9.7.5 and 9.7.6)."""

from __future__ import annotations

from functools import partial

from ptxemu.isa.fidelity import UNCHECKED
from ptxemu.isa.table import row
from ptxemu.isa.traits import traits

CHAPTER = "9.7.5 Comparison and Selection Instructions"
HALF_CHAPTER = "9.7.6 Half Precision Comparison Instructions"
BITS = "b16,b32,b64"
UNSIGNED = "u16,u32,u64"
SIGNED = "s16,s32,s64"
FLOAT_CMP = "cmp=eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan"
BOOL = "bool=and,or,xor"
SELECTED = f"type={BITS},{UNSIGNED},{SIGNED},f32,f64"

# Each comparison: modifiers, source types, least version and target.
COMPARISONS = (
    ("cmp=eq,ne", BITS, "1.0", 10),
    ("cmp=eq,ne,lt,le,gt,ge,lo,ls,hi,hs", UNSIGNED, "1.0", 10),
    ("cmp=eq,ne,lt,le,gt,ge", SIGNED, "1.0", 10),
    (FLOAT_CMP + " ftz?", "f32", "1.0", 10),
    (FLOAT_CMP, "f64", "1.0", 13),
    (FLOAT_CMP + " ftz?", "f16", "4.2", 53),
    (FLOAT_CMP, "bf16", "7.8", 90),
)
PACKED = ((FLOAT_CMP + " ftz?", "f16x2", "4.2", 53), (FLOAT_CMP, "bf16x2", "7.8", 90))


def _setp() -> None:
    for cmp, types, ptx, sm in COMPARISONS:
        half = "f16" in types
        d = "d_:pred" if half else "d_:pred|q:pred?"
        chapter = HALF_CHAPTER if half else CHAPTER
        does = "any nan" if types == "f32" else ""
        row("setp", f"{cmp} type={types}", f"{d}, a:type, b:type", ptx=ptx, sm=sm, does=does, chapter=chapter)
        operands = f"{d}, a:type, b:type, c:pred"
        row("setp", f"{cmp} {BOOL} type={types}", operands, ptx=ptx, sm=sm, does=does, chapter=chapter)
    for cmp, types, ptx, sm in PACKED:
        setp2 = partial(row, "setp", ptx=ptx, sm=sm, lower="setp2", chapter=HALF_CHAPTER)
        setp2(f"{cmp} type={types}", "d_:pred|q:pred?, a:type, b:type")
        setp2(f"{cmp} {BOOL} type={types}", "d_:pred|q:pred?, a:type, b:type, c:pred")


def _set(cmp: str, dtypes: str, stypes: str, ptx: str, sm: int, lower: str = "set") -> None:
    chapter = HALF_CHAPTER if "f16" in dtypes + stypes else CHAPTER
    gates = "u16@6.5@53 s16@6.5@53 u32@6.5@53 s32@6.5@53" if stypes in ("f16", "f16x2") else ""
    types = f"dtype={dtypes} stype={stypes}"
    row("set", f"{cmp} {types}", "d:dtype, a:stype, b:stype", ptx=ptx, sm=sm, lower=lower, chapter=chapter, gates=gates)
    row(
        "set",
        f"{cmp} {BOOL} {types}",
        "d:dtype, a:stype, b:stype, c:pred",
        ptx=ptx,
        sm=sm,
        lower=lower,
        chapter=chapter,
        gates=gates,
    )


_setp()
for cmp, types, ptx, sm in COMPARISONS:
    half = "f16" in types
    _set(cmp, "u16,s16,u32,s32" if half else "u32,s32,f32", types, ptx, sm)
    if types != "bf16":
        _set(cmp, "f16", types, ptx if half else "4.2", max(sm, 53))
    _set(cmp.removesuffix(" ftz?"), "bf16", types, "7.8", 90)
_set(FLOAT_CMP + " ftz?", "f16x2,u32,s32", "f16x2", "4.2", 53, "set2")
_set(FLOAT_CMP, "bf16x2,u32,s32", "bf16x2", "7.8", 90, "set2")

for _cmp, _types in (("eq,ne,lt,le,gt,ge,lo,ls,hi,hs", "u8x4,u16x2"), ("eq,ne,lt,le,gt,ge", "s8x4,s16x2")):
    row("set", f"cmp={_cmp} type={_types}", "d:type, a.whole:type, b.whole:type", ptx="9.4", sm=107, lower="set.packed",
        flags="accelerated rubin", bits=UNCHECKED, chapter=CHAPTER)  # fmt: skip

row("selp", SELECTED, "d:type, a:type, b:type, c:pred", chapter=CHAPTER)
SLCT_TYPE = SELECTED.replace("type=", "dtype=")
row("slct", SLCT_TYPE + " ctype=s32", "d:dtype, a:dtype, b:dtype, c:ctype", chapter=CHAPTER)
row("slct", "ftz? " + SLCT_TYPE + " ctype=f32", "d:dtype, a:dtype, b:dtype, c:ctype", chapter=CHAPTER)
traits("base:a base:b selects", "selp", "slct")
