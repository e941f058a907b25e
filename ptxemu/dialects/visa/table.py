"""The instruction table of vISA, in the row language of :mod:`ptxemu.isa.table`.

The types of operands are kinds of vISA operands: ``surface``; raw operands: ``coordinate``, ``optional`` (or the null
variable), ``value``, ``null`` (nothing else), ``ignored`` (anything), ``result``; ``target`` and ``source`` (regions, sources
also immediates), ``pred``, ``flag`` (predicate or target), ``label``.  TYPED_ATOMIC follows the list of operations.
"""

from __future__ import annotations

from ptxemu.dialects import operations
from ptxemu.dialects.operations import Operation
from ptxemu.ir.types import TYPES, ScalarType
from ptxemu.isa.table import Row, add_row

TABLE: dict[str, list[Row]] = {}
ATOMIC = "typed_atomic"
HALF = "16"
ALIASES = {"minsint": "imin", "maxsint": "imax"}
"""What the finalizer calls signed minimum and maximum."""

NO_VALUE = ("INC", "DEC")
TWO_VALUES = ("CAS", "FCAS")


def build(table: dict[str, list[Row]]) -> None:
    """Add a row of TYPED_ATOMIC to a table for each operation that vISA has a word for."""
    for entry in operations.OPERATIONS:
        if entry.visa:
            first, second = values_of(entry)
            text = f"s:surface, u:coordinate, v:optional, r:optional, lod:optional, a:{first}, b:{second}, d:result"
            add_row(table, ATOMIC, f"op={entry.visa} {HALF}?", text, lower="visa_typed_atomic", does="updates s, varying")


def entry_of(word: str) -> Operation:
    """The operation that vISA calls so."""
    return next(entry for entry in operations.OPERATIONS if entry.visa == word)


def values_of(entry: Operation) -> tuple[str, str]:
    """The kinds of src0 and src1 (TYPED_ATOMIC, "Src0", "Src1")."""
    if entry.name in NO_VALUE:
        return "null", "null"
    if entry.name == "PREDEC":
        return "ignored", "null"
    return "value", "value" if entry.name in TWO_VALUES else "null"


def element_type(entry: Operation, half: bool) -> ScalarType:
    """The type that the engine updates."""
    letter = "u" if "u" in entry.classes else entry.classes[0]
    return TYPES[f"{letter}{16 if half else 32}"]


build(TABLE)

TWO, THREE = "d:target, a:source, b:source", "d:target, a:source, b:source, c:source"
for _opcode in ("add", "mul", "min", "max", "and", "or", "xor", "shl", "shr", "asr", "sel"):
    add_row(TABLE, _opcode, "", TWO)
add_row(TABLE, "mad", "", THREE)
add_row(TABLE, "mov", "", "d:target, a:source")
add_row(TABLE, "not", "", "d:target, a:source")
add_row(TABLE, "cmp", "cmp=eq,ne,lt,le,gt,ge", "d:flag, a:source, b:source")
add_row(TABLE, "setp", "", "p:pred, a:source")
add_row(TABLE, "movs", "", "s:surface, a:source")
add_row(TABLE, "jmp", "", "t:label")
add_row(TABLE, "goto", "", "t:label")
add_row(TABLE, "ret", "", "")
