"""Copies of tensors, and tensor maps (PTX ISA, "Tensor copy", "tensormap"); the accepted set is the one measured with ptxas.

A map leads to memory that no operand names: what copies to global memory write is stated of the map's address.
"""

from __future__ import annotations

from ptxemu.isa.copy import BYTES, GROUP
from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words
from ptxemu.isa.words import HINT, SCOPE

CHAPTER = "Data Movement and Conversion Instructions"

MAP = "reads [t] for 128"
LOADS = f"{MAP}, writes [d] for ?, updates mbarrier [m]"
STORES = f"{MAP}, writes [t] for ?, reads [s] for ?"
BLACKWELL = "accelerated tensors"
ROWS = "[t]:tensor*5"  # a column, and four rows
BOX = "[t]:tensor*dim"

# Modes: dimensions, qualifier, the map with its coordinates, offsets.
TILE = ("1d,2d,3d,4d,5d", "load?=tile", BOX, "")
IM2COL = tuple((f"{dims}d", "load=im2col", BOX, f", o:u16*{dims - 2}") for dims in (3, 4, 5))
GATHER = ("2d", "load=tile::gather4", ROWS, "")
ALONG_W = ("3d,4d,5d", "load=im2col::w", BOX, ", o:u16*2")
ALONG_W128 = ("3d,4d,5d", "load=im2col::w::128", BOX, ", o:u16*2")
SCATTER = ("2d", "load=tile::scatter4", ROWS, "")
UNSHIFTED = ("3d,4d,5d", "load=im2col_no_offs", BOX, "")

# With the least version and target, and flags.
OLD = [(mode, "8.0", 90, "") for mode in (TILE, *IM2COL)]
NEW = [(mode, "8.6", 100, BLACKWELL) for mode in (GATHER, ALONG_W, ALONG_W128)]
OF_CTA = [(mode, "8.6", 100, "") for mode in (GATHER, ALONG_W)] + NEW[2:]


def _row(qualifiers: str, operands: str, ptx: str, sm: int, flags: str, lower: str, does: str) -> None:
    row("cp", qualifiers, f"{operands}, policy:u64?hint", ptx=ptx, sm=sm, lower=lower, chapter=CHAPTER, flags=flags, does=does)


# ---------------------------------------------------------------- copies

for _dst, _modes, _cast, _ctas, _least in (
    ("shared::cta", OLD + OF_CTA, "", "", "8.6"),
    ("shared::cluster", OLD + NEW, "", "", "8.0"),
    ("shared::cluster", OLD + NEW, "multicast=multicast::cluster ", ", ctas:b16", "8.0"),
):
    for (_dims, _load, _map, _offsets), _ptx, _sm, _flags in _modes:
        _operands = f"[d]@dst:, {_map}, [m]@dst:b64{_offsets}{_ctas}"
        for _pair, _gates in (
            ("", (max(_ptx, _least), _sm, _flags)),
            ("group=cta_group::1,cta_group::2 ", ("8.6", 100, BLACKWELL)),
        ):
            _row(f"async bulk tensor dim={_dims} dst={_dst} src=global {_load} {BYTES} {_cast}{_pair}{HINT}", _operands, *_gates,
                 "tensor_load", LOADS)  # fmt: skip

TO_GLOBAL = ((TILE, "8.0", 90, ""), (UNSHIFTED, "8.0", 90, ""), (SCATTER, "8.6", 100, BLACKWELL))
for (_dims, _load, _map, _), _ptx, _sm, _flags in TO_GLOBAL:
    for _start, _op in (("async", ""), ("reduce async", "op=add,min,max,inc,dec,and,or,xor ")):
        _row(f"{_start} bulk tensor dim={_dims} dst=global src=shared::cta {_op}{_load} {GROUP} {HINT}", f"{_map}, [s]@src:",
             _ptx, _sm, _flags, "tensor_store", STORES)  # fmt: skip

for (_dims, _load, _map, _offsets), _ptx, _sm, _flags in OLD + NEW:
    _row(f"async bulk prefetch tensor dim={_dims} level=L2 src=global {_load} {HINT}", f"{_map}{_offsets}", _ptx, _sm, _flags,
         "hint", "nothing")  # fmt: skip

# ---------------------------------------------------------------- tensormap

_FIELDS = (
    ("global_address", "b64", "v:u64"), ("rank", "b32", "v:u32"), ("global_stride", "b64", "immn:u32(0..4), v:u64"),
    ("box_dim,global_dim,element_stride", "b32", "immn:u32(0..4), v:u32"),
    ("elemtype", "b32", "immv:u32(0..12,13..15)", "packed_last"), ("swizzle_mode", "b32", "immv:u32(0..3,4)", "ultra_last"),
    ("interleave_layout", "b32", "immv:u32(0..2)"), ("fill_mode", "b32", "immv:u32(0..1)"),
)  # fmt: skip


def _replace(fields: str, kind: str, operands: str, *last: str, ptx: str = "8.3", sm: int = 90) -> None:
    row("tensormap", f"replace tile field={fields} space?=global,shared::cta size=b1024 type={kind}", f"[a]:, {operands}",
        ptx=ptx, sm=sm, lower="tensor_replace", chapter=CHAPTER, flags=" ".join(("accelerated widened", *last)),
        does="updates [a] for 128")  # fmt: skip


for _field in _FIELDS:
    _replace(*_field)
_replace("swizzle_atomicity", "b32", "immv:u32(0..3)", ptx="8.6", sm=100)
row("tensormap", f"cp_fenceproxy dst=global src=shared::cta kind=tensormap::generic sem=release {SCOPE} sync aligned",
    "[d]@dst:, [s]@src:, immsize:u32(128)", ptx="8.3", sm=90, lower="tensor_publish", chapter=CHAPTER,
    does="writes [d] for immsize, reads [s] for immsize, meets warp, fences")  # fmt: skip

name_words("tensor", "cp")
name_words("replace cp_fenceproxy", "tensormap")
