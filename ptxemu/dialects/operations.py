"""The read-modify-write operations by the words that each dialect has for them; the instruction tables follow this list."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.ir import operations as engine
from ptxemu.ir.types import ScalarType


class Operation(Struct, frozen=True):
    """One operation of the engine.

    ``sass`` and ``visa`` are its words, "" where the instruction set lacks it; ``visa_code`` its number there.  ``sured`` and
    ``red`` are the sizes that SASS takes for it (SASS SURED and RED, "Reduction Operations").  ``ctm`` is the word in CTM's
    targets of uncached output: a UMRT write is an exchange whose old value nobody reads.
    """

    engine: engine.Operation
    sass: str = ""
    visa: str = ""
    visa_code: int = -1
    sured: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    ctm: str = ""

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def classes(self) -> str:
        return self.engine.classes

    @property
    def code(self) -> int:
        return self.engine.code


OPERATIONS: list[Operation] = []


def operation(
    name: str, sass: str = "", visa: str = "", visa_code: int = -1, *, sured: str = "", red: str = "", ctm: str = ""
) -> Operation:
    """Add words for an operation of the engine to the list and return them; sizes are separated by blanks."""
    entry = next(entry for entry in engine.OPERATIONS if entry.name == name)
    made = Operation(entry, sass, visa, visa_code, tuple(sured.split()), tuple(red.split()), ctm)
    OPERATIONS.append(made)
    return made


BITS = "U32 S32 SD32 U64"
PLAIN = "U32 S32 U64"
HALVES = "F16x2.RN F16x2.FTZ.RN"
FLOATS = f"F32.FTZ.RN {HALVES}"

operation("ADD", "ADD", "add", 0x00, sured=BITS, red=PLAIN)
operation("SUB", "", "sub", 0x01)
operation("INC", "", "inc", 0x02)
operation("DEC", "", "dec", 0x03)
operation("UMIN", "MIN", "min", 0x04, sured="U32 U64 SD32 SD64", red="U32 U64")
operation("UMAX", "MAX", "max", 0x05, sured="U32 U64 SD32 SD64", red="U32 U64")
operation("XCHG", "", "xchg", 0x06, ctm="UMRT")
operation("CAS", "", "cmpxchg", 0x07)
operation("AND", "AND", "and", 0x08, sured=BITS, red=PLAIN)
operation("OR", "OR", "or", 0x09, sured=BITS, red=PLAIN)
operation("XOR", "XOR", "xor", 0x0A, sured=BITS, red=PLAIN)
operation("SMIN", "MIN", "imin", 0x0B, sured="S32 S64", red="S32 S64")
operation("SMAX", "MAX", "imax", 0x0C, sured="S32 S64", red="S32 S64")
operation("PREDEC", "", "predec", 0x0D)
operation("FMAX", "MAX", "fmax", 0x10, sured=HALVES, red=HALVES)
operation("FMIN", "MIN", "fmin", 0x11, sured=HALVES, red=HALVES)
operation("FCAS", "", "fcmpwr", 0x12)
operation("FADD", "ADD", sured=FLOATS, red=f"{FLOATS} F64.RN")
operation("INC_WRAP", "INC", sured="U32", red="U32")
operation("DEC_WRAP", "DEC", sured="U32", red="U32")


def find_sass(word: str, kind: ScalarType) -> Operation:
    """The operation that SASS calls ``word`` on a type. Raises KeyError if there is none."""
    wanted = engine.type_class(kind)
    for entry in OPERATIONS:
        if entry.sass == word and wanted in entry.classes:
            return entry
    raise KeyError(f"no {word} on {kind}")
