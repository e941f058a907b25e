"""The read-modify-write operations, one list for every instruction set (docs/semantics.md).

A row names an entry of the engine (``PE_ATOM_<name>``), the class of types it works on and what each instruction set
calls it.  The instruction tables refer to this list: PTX by the modifiers of ``sured``, ``red`` and ``atom``, SASS and
vISA by everything here.  A new operation is a row here and an entry in the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxemu._runtime import lib
from ptxemu.ir.types import ScalarType


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``classes`` are those of ``u`` (unsigned and untyped), ``s`` (signed) and ``f`` (floating point).

    ``ptx``, ``sass`` and ``visa`` are its words, "" where the instruction set lacks it; ``visa_code`` its number there.
    ``ctm`` is the word in CTM's targets of uncached output: a UMRT write is an exchange whose old value nobody reads.
    ``idempotent``: done again with the same operands, it leaves memory as it is.
    ``sured`` and ``red`` are the sizes that SASS takes for this entry (SASS SURED and RED, "Reduction Operations").
    """

    name: str
    classes: str
    ptx: str = ""
    sass: str = ""
    visa: str = ""
    visa_code: int = -1
    sured: tuple[str, ...] = ()
    red: tuple[str, ...] = ()
    ctm: str = ""
    idempotent: bool = False

    @property
    def code(self) -> int:
        """The engine's number."""
        return int(getattr(lib, f"PE_ATOM_{self.name}"))

    def word(self, front: str) -> str:
        """What ``ptx``, ``sass``, ``visa`` or ``ctm`` calls it."""
        word: str = getattr(self, front)
        return word


OPERATIONS: list[Operation] = []


def operation(
    name: str,
    classes: str,
    ptx: str = "",
    sass: str = "",
    visa: str = "",
    visa_code: int = -1,
    *,
    sured: str = "",
    red: str = "",
    ctm: str = "",
    idempotent: bool = False,
) -> Operation:
    """Add an operation to the list and return it; sizes are separated by blanks."""
    made = Operation(name, classes, ptx, sass, visa, visa_code, tuple(sured.split()), tuple(red.split()), ctm, idempotent)
    OPERATIONS.append(made)
    return made


BITS = "U32 S32 SD32 U64"
PLAIN = "U32 S32 U64"
HALVES = "F16x2.RN F16x2.FTZ.RN"
FLOATS = f"F32.FTZ.RN {HALVES}"

operation("ADD", "us", "add", "ADD", "add", 0x00, sured=BITS, red=PLAIN)
operation("SUB", "us", "", "", "sub", 0x01)
operation("INC", "us", "", "", "inc", 0x02)
operation("DEC", "us", "", "", "dec", 0x03)
operation("UMIN", "u", "min", "MIN", "min", 0x04, sured="U32 U64 SD32 SD64", red="U32 U64", idempotent=True)
operation("UMAX", "u", "max", "MAX", "max", 0x05, sured="U32 U64 SD32 SD64", red="U32 U64", idempotent=True)
operation("XCHG", "us", "exch", "", "xchg", 0x06, ctm="UMRT", idempotent=True)
operation("CAS", "us", "cas", "", "cmpxchg", 0x07, idempotent=True)
operation("AND", "us", "and", "AND", "and", 0x08, sured=BITS, red=PLAIN, idempotent=True)
operation("OR", "us", "or", "OR", "or", 0x09, sured=BITS, red=PLAIN, idempotent=True)
operation("XOR", "us", "xor", "XOR", "xor", 0x0A, sured=BITS, red=PLAIN)
operation("SMIN", "s", "min", "MIN", "imin", 0x0B, sured="S32 S64", red="S32 S64", idempotent=True)
operation("SMAX", "s", "max", "MAX", "imax", 0x0C, sured="S32 S64", red="S32 S64", idempotent=True)
operation("PREDEC", "us", "", "", "predec", 0x0D)
operation("FMAX", "f", "max", "MAX", "fmax", 0x10, sured=HALVES, red=HALVES, idempotent=True)
operation("FMIN", "f", "min", "MIN", "fmin", 0x11, sured=HALVES, red=HALVES, idempotent=True)
operation("FCAS", "f", "", "", "fcmpwr", 0x12)
operation("FADD", "f", "add", "ADD", sured=FLOATS, red=f"{FLOATS} F64.RN")
operation("INC_WRAP", "u", "inc", "INC", sured="U32", red="U32")
operation("DEC_WRAP", "u", "dec", "DEC", sured="U32", red="U32")


def type_class(kind: ScalarType) -> str:
    """``u``, ``s`` or ``f``."""
    if kind.is_float or kind.kind == "packed":
        return "f"
    return "s" if kind.is_signed else "u"


def find(front: str, word: str, kind: ScalarType) -> Operation:
    """The operation that an instruction set calls ``word`` on a type. Raises KeyError if there is none."""
    wanted = type_class(kind)
    for entry in OPERATIONS:
        if entry.word(front) == word and wanted in entry.classes:
            return entry
    raise KeyError(f"no {word} on {kind}")
