"""Surface instructions (PTX ISA, "Surface Instructions"); the accepted set is the one measured with ptxas."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "Surface Instructions"

GEOMETRY = "geom=1d,2d,3d,a1d,a2d"
REDUCED = "geom=1d,2d,3d"
CLAMP = "clamp=trap,clamp,zero!trap"
GATES = "clamp@2.0@20 zero@2.0@20 ca@2.0@20 cg@2.0@20 cs@2.0@20 cv@2.0@20 wb@2.0@20 wt@2.0@20 3d@3.0@20 a1d@3.0@20 a2d@3.0@20"

# An access moves at most 128 bits, hence no ``.v4.b64``.
for _data in ("vec?=v2,v4 type=b8,b16,b32", "vec?=v2 type=b64"):
    row("suld", f"mode=b {GEOMETRY} cop?=ca,cg,cs,cv {_data} {CLAMP}", "d:type*vec, s:surface*geom", ptx="1.5",
        does="reads s, varying", chapter=CHAPTER, gates=GATES)  # fmt: skip
    row("sust", f"mode=b {GEOMETRY} cop?=wb,cg,cs,wt {_data} {CLAMP}", "s:surface*geom, v:type*vec", ptx="1.5",
        does="writes s", chapter=CHAPTER, gates=GATES)  # fmt: skip
row("sust", f"mode=p {GEOMETRY} cop?=wb,cg,cs,wt vec?=v2,v4 type=b32 {CLAMP}", "s:surface*geom, v:type*vec", ptx="2.0",
    sm=20, does="writes s", chapter=CHAPTER, gates="3d@3.0@20 a1d@4.1@20 a2d@4.1@20")  # fmt: skip

for _mode, _op, _types, _ptx, _sm in (
    ("b", "add", "u32,s32,u64", "2.0", 20),
    ("b", "min,max", "u32,s32", "2.0", 20),
    ("b", "min,max", "u64,s64", "8.1", 50),
    ("b", "and,or", "b32", "2.0", 20),
    ("p", "add,min,max,and,or", "b32", "2.0", 20),
    ("p", "min,max", "b64", "8.1", 50),
):
    row("sured", f"mode={_mode} op={_op} {REDUCED} type={_types} {CLAMP}", "s:surface*geom, v:type", ptx=_ptx, sm=_sm,
        does="updates s", chapter=CHAPTER, gates="3d@3.0@20")  # fmt: skip

row("suq", "query=width,height,depth,channel_data_type,channel_order,array_size,memory_layout type=b32",
    "d:type, s:surface", ptx="1.5", does="faults", chapter=CHAPTER,
    gates="channel_data_type@2.1@10 channel_order@2.1@10 array_size@4.1@10 memory_layout@4.2@10")  # fmt: skip
row("istypep", "type=texref,samplerref,surfref", "d:pred, a:u64", ptx="4.0", sm=30, does="pure", chapter="Texture Instructions")

traits("relaxed", "suld", "sust", "sured")
traits("packed", "suld", "sust")
name_words("b p", "suld", "sust", "sured")
