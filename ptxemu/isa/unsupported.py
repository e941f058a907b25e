"""The rest of the PTX instruction set: checked, so that modules which contain it can be judged, but not run.

The accepted set is the one measured with ptxas. Of tcgen05, what ``ptxemu/isa/tcgen05.py`` does not have is recognised only.
"""

from __future__ import annotations

from ptxemu.isa.table import UNSUPPORTED, row
from ptxemu.isa.traits import name_words
from ptxemu.isa.words import SCOPE

MOVEMENT = "Data Movement and Conversion Instructions"
MATRIX = "Warp Level Matrix Instructions"


def _row(opcode: str, qualifiers: str, operands: str, ptx: str, sm: int, chapter: str, flags: str = "") -> None:
    row(opcode, qualifiers, operands, ptx=ptx, sm=sm, lower=UNSUPPORTED, flags=flags, chapter=chapter)


# ---------------------------------------------------------------- multimem

HALVES, PAIRS = "type=f16,bf16", "type=f16x2,bf16x2"
REDUCED = (
    "op=add type=u32,s32,u64,f32,f64", "op=min,max type=u32,s32,u64,s64", "op=and,or,xor type=b32,b64",
    "op=add vec=v2,v4 type=f32", f"op=add,min,max vec=v2,v4,v8 {HALVES}", f"op=add,min,max vec=v2,v4 {PAIRS}", f"op=add {PAIRS}",
)  # fmt: skip
LOADED = (*REDUCED, f"op=min,max {PAIRS}")
ACCUMULATED = tuple((f"op=add acc::f32 {form}", "8.2", 90, "") for form in (f"vec=v2,v4,v8 {HALVES}", f"vec?=v2,v4 {PAIRS}"))
STORED = ("type=b32,b64,u32,u64,s32,s64,f32,f64", "vec=v2,v4 type=f32", f"vec=v2,v4,v8 {HALVES}", f"vec?=v2,v4 {PAIRS}")
BYTES = ("vec=v4,v8 type=e4m3,e5m2", "vec=v2,v4,v8 type=e4m3x2,e5m2x2", "vec?=v2,v4 type=e4m3x4,e5m2x4")
ACCELERATED_BYTES = tuple(
    (f"{op}{form}", "8.6", 100, "accelerated") for op in ("op=add acc::f16? ", "op=min,max ") for form in BYTES
)

for _forms, _name, _orders, _operands in (
    ([(form, "8.1", 90, "") for form in LOADED] + [*ACCUMULATED, *ACCELERATED_BYTES], "ld_reduce",
     ("sem?=weak", f"sem=relaxed,acquire {SCOPE}"), "d:type*vec, [a]:type"),
    ([(form, "8.1", 90, "") for form in STORED] + [(form, "8.6", 100, "accelerated") for form in BYTES], "st",
     ("sem?=weak", f"sem=relaxed,release {SCOPE}"), "[a]:type, v:type*vec"),
    ([(form, "8.1", 90, "") for form in REDUCED], "red", ("", f"sem=relaxed,release {SCOPE}"), "[a]:type, v:type*vec"),
):  # fmt: skip
    for _order in _orders:
        for _form, _ptx, _sm, _flags in _forms:
            _counted = _operands if "vec" in _form else _operands.replace("*vec", "")
            _row("multimem", f"{_name} {_order} space?=global {_form}", _counted, _ptx, _sm, MOVEMENT, _flags)

for _name, _form in (("st", "type=b32,b64,u32,u64,s32,s64,f32,f64"), ("red", "op=add type=u32,s32,u64,s64")):
    _row("multimem", f"{_name} async sem=release scope=gpu,sys space?=global {_form}", "[a]:type, v:type", "9.3", 100, MOVEMENT)

# ---------------------------------------------------------------- tcgen05

row("tcgen05", "...", "...", ptx="8.6", sm=100, lower=UNSUPPORTED, flags="accelerated", chapter=MATRIX)

# ---------------------------------------------------------------- fabric, compression

row("fabric", "...", "...", ptx="9.3", sm=100, lower=UNSUPPORTED, chapter="9.7.11 Fabric Instructions")
for _opcode in ("spcompress", "spdecompress"):
    row(_opcode, "...", "...", ptx="9.4", sm=107, lower=UNSUPPORTED, flags="accelerated rubin", chapter=MATRIX)

name_words("ld_reduce st red", "multimem")
