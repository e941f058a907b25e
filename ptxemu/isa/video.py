"""Video instructions: scalar ones on bytes and halves, SIMD ones on four bytes or two halves (PTX ISA 9.7.17)."""

from __future__ import annotations

from functools import partial

from ptxemu.isa.table import row

CHAPTER = "9.7.17 Video Instructions"
TYPES = "dtype=u32,s32 atype=u32,s32 btype=u32,s32"
SOURCE_TYPES = "atype=u32,s32 btype=u32,s32"
CMP = "cmp=eq,ne,lt,le,gt,ge"
scalar = partial(row, ptx="2.0", sm=20, chapter=CHAPTER)
simd = partial(row, ptx="3.0", sm=30, chapter=CHAPTER)


def _scalar(opcode: str, qualifiers: str, kind: str, lower: str) -> None:
    """Alone (a third source is ignored), combined with the third source, and merged into it."""
    sources = "a.part:atype, b.part:btype"
    scalar(opcode, qualifiers, f"d:{kind}, {sources}, c:{kind}?", lower=lower)
    scalar(opcode, qualifiers + " second=add,min,max", f"d:{kind}, {sources}, c:{kind}", lower=lower)
    scalar(opcode, qualifiers, f"d.part!:{kind}, {sources}, c:{kind}", lower=lower)


def _simd(opcode: str, qualifiers: str, sat: str, kind: str, lower: str) -> None:
    for lanes, family, mask in (("2", "halves", "halfmask"), ("4", "bytes", "bytemask")):
        operands = f"d.{mask}:{kind}, a.{family}:atype, b.{family}:btype, c.whole:{kind}"
        simd(opcode + lanes, f"{qualifiers} {sat}", operands, lower=lower)
        simd(opcode + lanes, f"{qualifiers} add", operands, lower=lower)


for opcode in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
    _scalar(opcode, TYPES + " sat?", "dtype", "video")
for opcode in ("vshl", "vshr"):
    _scalar(opcode, "dtype=u32,s32 atype=u32,s32 btype=u32 sat? mode=clamp,wrap", "dtype", "video.shift")
_scalar("vset", f"{SOURCE_TYPES} {CMP}", "u32", "video.set")
MAD = TYPES + " sat? scale?=shr7,shr15"
scalar("vmad", MAD, "d:dtype, -a.part:atype, -b.part:btype, c:dtype", lower="video.mad")
scalar("vmad", MAD, "d:dtype, a.part:atype, b.part:btype, -c:dtype", lower="video.mad")
scalar("vmad", "po " + MAD, "d:dtype, a.part:atype, b.part:btype, c:dtype", lower="video.mad")
for opcode in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"):
    _simd(opcode, TYPES, "sat?", "dtype", "video.simd")
_simd("vset", f"{SOURCE_TYPES} {CMP}", "", "u32", "video.simd.set")
