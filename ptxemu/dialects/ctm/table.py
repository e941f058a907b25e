"""The instruction table of CTM, in the row language of :mod:`ptxemu.isa.table`.

There is one table for each type of instruction (ATI CTM Guide, section 3.3): what follows the target differs, ALU
instructions test their result for predicate bits, OUTPUT instructions send it to a target.  The types of operands are
``pair`` (a temporary, the predicate or the output, or two of them), ``source`` and ``input``.
"""

from __future__ import annotations

from msgspec import Struct

from ptxemu.dialects import operations
from ptxemu.isa.table import Row, add_row

CACHED = tuple(f"RNDR_TGT_{letter}" for letter in "ABCD")
SAME, ACQUIRE = "SAME_IDX", "_TEX_SEM_ACQUIRE"
INDICES = (SAME, SAME + ACQUIRE, "PER_PROCESSOR_IDX", "PER_PROCESSOR_IDX" + ACQUIRE)
TESTS = ("PRED_OP_EQUAL", "PRED_OP_LESS", "PRED_OP_GREATER_EQUAL", "PRED_OP_NOT_EQUAL")
SELECTS = ("PRED_SEL_NONE", "PRED_SEL_RGBA", "PRED_SEL_RRRR", "PRED_SEL_GGGG", "PRED_SEL_BBBB", "PRED_SEL_AAAA")
MODIFIERS = {
    "OMOD_U1": 1.0, "OMOD_U2": 2.0, "OMOD_U4": 4.0, "OMOD_U8": 8.0, "OMOD_D2": 0.5, "OMOD_D4": 0.25, "OMOD_D8": 0.125,
}  # fmt: skip
"""Factors of the output modifiers, in the order of their codes."""
DISABLED = "OMOD_DISABLED"


class Arithmetic(Struct, frozen=True):
    """An operation of the units: how many sources it has, and whether it may keep the bits of the one that it chooses."""

    name: str
    sources: int
    chooses: bool = False


OPERATIONS = (
    Arithmetic("MAD", 3), Arithmetic("MUL", 2), Arithmetic("ADD", 2), Arithmetic("FRC", 1), Arithmetic("MOV", 1, True),
    Arithmetic("MIN", 2, True), Arithmetic("MAX", 2, True), Arithmetic("CND", 3, True), Arithmetic("CMP", 3, True),
)  # fmt: skip
"""MOV is MAX of a source and itself, MUL and ADD are MAD without the addition and the multiplication (guide, section 3.6)."""

GATE = f"sel={','.join(SELECTS)}!PRED_SEL_NONE PRED_INV? TEX_SEM_WAIT? NOP?"
TABLES: dict[str, dict[str, list[Row]]] = {"ALU": {}, "OUTPUT": {}}


def uncached() -> dict[str, operations.Operation]:
    """The targets of uncached output, and what each does to memory."""
    return {f"RNDR_TGT_{entry.ctm}_{index}": entry for entry in operations.OPERATIONS if entry.ctm for index in INDICES}


def build(tables: dict[str, dict[str, list[Row]]]) -> None:
    """Add the rows of all operations to the tables of both types."""
    targets = ",".join((*CACHED, *uncached()))
    ends = {"ALU": f"test?={','.join(TESTS)}", "OUTPUT": f"target?={targets} W_OMASK?"}
    for kind, end in ends.items():
        for entry in OPERATIONS:
            factors = ",".join((*MODIFIERS, DISABLED) if entry.chooses else MODIFIERS)
            sources = "".join(f", {letter}:source" for letter in "abc"[: entry.sources])
            add_row(tables[kind], entry.name, f"omod={factors}!OMOD_U1 CLAMP? {GATE} {end}", f"d:pair{sources}")
        add_row(tables[kind], "NOP", "", "")


build(TABLES)
add_row(TABLES["ALU"], "TEX", f"TEX_SEM_ACQUIRE? {GATE}", "d:pair, a:source, i:input")
