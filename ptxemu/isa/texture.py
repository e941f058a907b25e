"""Texture instructions (PTX ISA, "Texture Instructions"); the accepted set is the one measured with ptxas.

Depth comparison (the operand ``f``) compares nothing, as no texture of CUDA has depths (docs/semantics.md, "Textures").
"""

from __future__ import annotations

import re

from ptxemu.isa.fidelity import MEASURED, OPEN
from ptxemu.isa.table import UNSUPPORTED, row
from ptxemu.isa.traits import name_words

CHAPTER = "Texture Instructions"

FETCHES = "reads constant t, varying"
FLAT = "1d,2d,3d,a1d,a2d"
COMPARED = "1d,2d,a1d,a2d"
CUBES = "cube,acube"
GATES = "a1d@2.3@20 a2d@2.3@20 cube@2.3@20 acube@3.0@20 2dms@3.2@30 a2dms@3.2@30 f16@4.2@53 f16x2@4.2@53"
OPERAND_GATES = " |p@7.1@60 +e@4.3@20"
RESULTS = ("vec=v4 dtype=u32,s32,f32,f16", "vec=v2 dtype=f16x2")
RESULT = "d:dtype*vec|p:pred?, t:texture*geom"
DEPTHS = ("f:f32", "f:b32")
LOD, GRADIENTS, OFFSET = "lod:ctype", "x:gradient*geom, y:gradient*geom", "e:offset*geom?"


def _tex(qualifiers: str, *operands: str, ptx: str = "1.0", supported: bool = True, bits: str = MEASURED) -> None:
    for results in RESULTS:
        text = qualifiers.replace("*", results)
        words = re.split(r"[ =,]", text)
        gates = " ".join(gate for gate in GATES.split() if gate.partition("@")[0] in words) + OPERAND_GATES
        row("tex", text, ", ".join([RESULT, *operands]), ptx=ptx, chapter=CHAPTER, gates=gates,
            does=FETCHES, bits=bits, lower="tex" if supported else UNSUPPORTED)  # fmt: skip


_tex(f"mode?=base geom={FLAT} * ctype=s32,f32", OFFSET)
_tex(f"mode?=base geom={CUBES} * ctype=f32")
_tex("mode?=base geom=2dms,a2dms * ctype=s32", OFFSET, bits=OPEN)
_tex(f"mode=level geom={FLAT} * ctype=s32,f32", LOD, OFFSET, ptx="3.1")
_tex(f"mode=level geom={CUBES} * ctype=f32", LOD, ptx="3.1")
_tex(f"mode=grad geom={FLAT} * ctype=f32", GRADIENTS, OFFSET, ptx="3.1")
_tex(f"mode=grad geom={CUBES} * ctype=f32", GRADIENTS, ptx="4.3", bits=OPEN)
# Of a 1D texture, gradients beside integer coordinates or a reference read zero, as the instruction fits no texture of CUDA.
_tex("mode=grad geom=2d,3d,a1d,a2d * ctype=s32", GRADIENTS, OFFSET, ptx="3.1")
_tex("mode=grad geom=1d * ctype=s32", GRADIENTS, OFFSET, ptx="3.1", supported=False)
for _depth in DEPTHS:
    for _mode, _middle in (("mode?=base", ()), ("mode=level", (LOD,))):
        _tex(f"{_mode} geom={COMPARED} * ctype=f32", *_middle, OFFSET, _depth, ptx="4.3")
        _tex(f"{_mode} geom={CUBES} * ctype=f32", *_middle, _depth, ptx="4.3")
    _tex("mode=grad geom=2d,a1d,a2d * ctype=f32", GRADIENTS, OFFSET, _depth, ptx="4.3")
    _tex("mode=grad geom=1d * ctype=f32", GRADIENTS, OFFSET, _depth, ptx="4.3", supported=False)
    _tex(f"mode=grad geom={CUBES} * ctype=f32", GRADIENTS, _depth, ptx="4.3", bits=OPEN)

TLD4 = "comp=r,g,b,a geom={} vec=v4 dtype=u32,s32,f32 ctype=f32"
for _geometries, _offset in (("2d,a2d", [OFFSET]), (CUBES, [])):
    for _compare in ([], *([depth] for depth in DEPTHS)):
        row("tld4", TLD4.format(_geometries), ", ".join([RESULT, *_offset, *_compare]), ptx="4.3" if _compare else "2.2",
            sm=20, chapter=CHAPTER, does=FETCHES, bits=MEASURED, gates="a2d@4.3@20 cube@4.3@20 acube@4.3@20" + OPERAND_GATES,
            lower="tld4")  # fmt: skip

EXTENTS = "width,height,depth"
TEXTURE = f"{EXTENTS},channel_data_type,channel_order,normalized_coords,array_size,num_mipmap_levels,num_samples"
SAMPLER = "filter_mode,addr_mode_0,addr_mode_1,addr_mode_2"
QUERY_GATES = "array_size@4.1@10 num_mipmap_levels@4.1@10 num_samples@4.1@10"
row("txq", f"query={TEXTURE} type=b32", "d:type, t:texture", ptx="1.5", chapter=CHAPTER, gates=QUERY_GATES, does="faults")
row("txq", f"level query={EXTENTS} type=b32", "d:type, t:texture, lod:u32", ptx="4.3", sm=30, chapter=CHAPTER, does="faults")
row("txq", f"query={SAMPLER},force_unnormalized_coords type=b32", "d:type, s:sampler", ptx="1.5", chapter=CHAPTER,
    does="faults")  # fmt: skip
row("txq", f"query={SAMPLER} type=b32", "d:type, t:texture", ptx="1.5", flags="unified", chapter=CHAPTER,
    does="faults")  # fmt: skip

name_words("base level grad", "tex")
name_words("level", "txq")
