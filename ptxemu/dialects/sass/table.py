"""The instruction table of SASS, in the row language of :mod:`ptxemu.isa.table`.

The types of operands are kinds of SASS operands: ``reg``, ``term`` (a register that may be negated), ``data`` (one register
or an even pair), ``source`` (``term``, literal or constant), ``literal``, ``pred``, ``test`` (a predicate that may be
inverted), ``special``, ``word`` (register or 13-bit literal), ``coordinates`` and ``address`` (in brackets), ``label``.
SURED and RED follow the list of operations; the reference documents mode D only.
"""

from __future__ import annotations

from ptxemu.dialects import operations
from ptxemu.ir import geometry
from ptxemu.ir.types import TYPES, ScalarType
from ptxemu.isa.table import UNSUPPORTED, Row, add_row

TABLE: dict[str, list[Row]] = {}
DEFAULT_SIZE = "U32"
GEOMETRIES = {
    "1D": geometry.GEOMETRIES["1d"], "1D_BUFFER": geometry.GEOMETRIES["1d_buffer"], "1D_ARRAY": geometry.GEOMETRIES["a1d"],
    "2D": geometry.GEOMETRIES["2d"], "2D_ARRAY": geometry.GEOMETRIES["a2d"], "3D": geometry.GEOMETRIES["3d"],
}  # fmt: skip
DIMS = tuple(GEOMETRIES)
CLAMPS = ("IGN", "NEAR", "TRAP")
JOINED = (("F32", "FTZ", "RN"), ("F16x2", "FTZ", "RN"), ("F16x2", "RN"), ("F64", "RN"))
"""Sizes of several words."""
ALIASES = {"32": "U32", "64": "U64"}
"""Other names of RED's sizes."""

# The type that the engine updates; SD32 and SD64 take their signedness from the surface.
ENGINE_TYPES: dict[str, ScalarType] = {
    "U32": TYPES["u32"], "S32": TYPES["s32"], "SD32": TYPES["b32"], "U64": TYPES["u64"], "S64": TYPES["s64"],
    "SD64": TYPES["b64"], "F32.FTZ.RN": TYPES["f32"], "F16x2.RN": TYPES["f16x2"], "F16x2.FTZ.RN": TYPES["f16x2"],
    "F64.RN": TYPES["f64"],
}  # fmt: skip


def _listed(opcode: str, op: str) -> tuple[str, ...]:
    entries = [entry for entry in operations.OPERATIONS if entry.sass == op]
    listed = {size for entry in entries for size in (entry.sured if opcode == "SURED" else entry.red)}
    return tuple(size for size in ENGINE_TYPES if size in listed)


# What the reference lists for each operation of SURED and RED.
SIZES: dict[tuple[str, str], tuple[str, ...]] = {
    (opcode, op): _listed(opcode, op)
    for opcode in ("SURED", "RED")
    for op in dict.fromkeys(entry.sass for entry in operations.OPERATIONS if entry.sass)
}


def build(table: dict[str, list[Row]]) -> None:
    """Add the rows of SURED and RED to a table: one for each operation that SASS has a word for."""
    dims, clamps = ",".join(DIMS), ",".join(CLAMPS)
    for entry in operations.OPERATIONS:
        for mode, lower in (("D", "sass_sured"), ("P", UNSUPPORTED)) if entry.sured else ():
            qualifiers = f"mode={mode} BA? dim={dims} op={entry.sass} size={_sizes(entry.sured)} clamp={clamps}!NEAR"
            add_row(table, "SURED", qualifiers, "[a]:coordinates, b:data, h:word", lower=lower, does="updates h")
        if entry.red:
            qualifiers = f"E? op={entry.sass} size={_sizes(entry.red)}"
            add_row(table, "RED", qualifiers, "[a]:address, b:data", lower="sass_red", does="updates [a] as b")


def _sizes(sizes: tuple[str, ...]) -> str:
    """The values of the size qualifier; U32 may be left out."""
    return ",".join(sizes) + (f"!{DEFAULT_SIZE}" if DEFAULT_SIZE in sizes else "")


build(TABLE)

add_row(TABLE, "MOV", "", "d:reg, a:source")
add_row(TABLE, "MOV32I", "", "d:reg, a:literal")
add_row(TABLE, "S2R", "", "d:reg, a:special")
add_row(TABLE, "IADD", "X?", "d:reg, a:term, b:source")
add_row(TABLE, "IADD32I", "", "d:reg, a:term, b:literal")
add_row(TABLE, "IMAD", "", "d:reg, a:term, b:source, c:source")
add_row(TABLE, "SHL", "", "d:reg, a:reg, b:source")
add_row(TABLE, "SHR", "size=U32,S32!S32", "d:reg, a:reg, b:source")
add_row(TABLE, "LOP", "op=AND,OR,XOR", "d:reg, a:reg, b:source")
SET = "cmp=LT,EQ,LE,GT,NE,GE size=U32,S32!S32 bool=AND,OR,XOR!AND"
add_row(TABLE, "ISETP", SET, "p:pred, q:pred, a:reg, b:source, c:test")
add_row(TABLE, "BRA", "", "t:label")
add_row(TABLE, "EXIT", "", "")
add_row(TABLE, "NOP", "", "")
