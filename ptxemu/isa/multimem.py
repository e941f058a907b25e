"""multimem: operations on memory that several devices have a copy of (PTX ISA, "multimem"); here there is one device.

The accepted set is the one measured with ptxas.  What is done to one copy is an ordinary load, store or reduction, so that the
lowerings are those of ``ld``, ``st``, ``red``, their asynchronous forms and bulk copies.
"""

from __future__ import annotations

from functools import partial

from ptxemu.isa.copy import NOFTZ_GATE, REDUCED_IN_GLOBAL, SIDES, SIZE
from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits
from ptxemu.isa.words import SCOPE

CHAPTER = "Data Movement and Conversion Instructions"

HALVES, PAIRS = "type=f16,bf16", "type=f16x2,bf16x2"
REDUCED = (
    "op=add type=u32,s32,u64,f32,f64", "op=min,max type=u32,s32,u64,s64", "op=and,or,xor type=b32,b64",
    "op=add vec=v2,v4 type=f32", f"op=add,min,max vec=v2,v4,v8 {HALVES}", f"op=add,min,max vec=v2,v4 {PAIRS}",
)  # fmt: skip
STORED = ("type=b32,b64,u32,u64,s32,s64,f32,f64", "vec=v2,v4 type=f32", f"vec=v2,v4,v8 {HALVES}", f"vec?=v2,v4 {PAIRS}")
ACCUMULATED = tuple(f"op=add acc::f32 {form}" for form in (f"vec=v2,v4,v8 {HALVES}", f"vec?=v2,v4 {PAIRS}"))
BYTES = ("vec=v4,v8 type=e4m3,e5m2", "vec=v2,v4,v8 type=e4m3x2,e5m2x2", "vec?=v2,v4 type=e4m3x4,e5m2x4")
LOADED_BYTES = tuple(f"{op} {form}" for op in ("op=add acc::f16?", "op=min,max") for form in BYTES)

_row = partial(row, "multimem", chapter=CHAPTER)
_halves = partial(_row, ptx="8.1", sm=90)
_accumulated = partial(_row, ptx="8.2", sm=90)
_bytes = partial(_row, ptx="8.6", sm=100, flags="accelerated")


def _many(form: str) -> str:
    """The operand's type and how many there are of it."""
    return "type*vec" if "vec" in form else "type"


for _order in ("sem?=weak", f"sem=relaxed,acquire {SCOPE}"):
    for _add, _forms in ((_halves, (*REDUCED, f"op=add,min,max {PAIRS}")), (_accumulated, ACCUMULATED), (_bytes, LOADED_BYTES)):
        for _form in _forms:
            _add(f"ld_reduce {_order} space?=global {_form}", f"d:{_many(_form)}, [a]:type", lower="ld", does="reads [a] as d")
for _order in ("sem?=weak", f"sem=relaxed,release {SCOPE}"):
    for _add, _forms in ((_halves, STORED), (_bytes, BYTES)):
        for _form in _forms:
            _add(f"st {_order} space?=global {_form}", f"[a]:type, v:{_many(_form)}", lower="st", does="writes [a] as v")
for _order in ("", f"sem=relaxed,release {SCOPE}"):
    for _form in (*REDUCED, f"op=add {PAIRS}"):
        _halves(f"red {_order} space?=global {_form}", f"[a]:type, b:{_many(_form)}", lower="red", does="updates [a] as b")

_ASYNC = "async sem=release scope=gpu,sys space?=global"
_row(f"st {_ASYNC} type=b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64", "[a]:type, v:type", ptx="9.3", sm=100,
     flags="relaxed", lower="st_async", does="writes [a] as v")  # fmt: skip
_row(f"red {_ASYNC} op=add type=u32,s32,u64", "[a]:type, b:type", ptx="9.3", sm=100, lower="red_async", does="updates [a] as b")

_BULK = "async bulk dst=global src=shared::cta completion=bulk_group"
_row(f"cp {_BULK} mask?=cp_mask", f"{SIDES}, {SIZE}, bytes:b16?mask", ptx="9.1", sm=90, gates="cp_mask@9.1@100",
     lower="bulk_copy", does="writes [d] for size, reads [s] for size")  # fmt: skip
for _form in REDUCED_IN_GLOBAL:
    _row(f"cp reduce {_BULK} {_form}", f"{SIDES}, {SIZE}", ptx="9.1", sm=90, gates=NOFTZ_GATE, lower="bulk_reduce",
         does="updates [d] for size, reads [s] for size")  # fmt: skip

traits("system", "multimem")
name_words("ld_reduce st red async cp reduce bulk", "multimem")
