"""The read-modify-write operations of the engine, one list for every instruction set (docs/semantics.md).

A row names an entry of the engine (``PE_ATOM_<name>``), the class of types it works on and what PTX calls it in the modifiers
of ``sured``, ``red`` and ``atom``; the words of other instruction sets refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.ir.types import ScalarType


class Operation(Struct, frozen=True):
    """One operation. ``classes`` are those of ``u`` (unsigned and untyped), ``s`` (signed) and ``f`` (floating point).

    ``word`` is "" where PTX lacks it.  ``idempotent``: done again with the same operands, it leaves memory as it is.  ``binary``:
    the runtime updates all lanes' words by it at once (csrc/memory/lanes.h).
    """

    name: str
    classes: str
    word: str = ""
    idempotent: bool = False
    binary: bool = False

    @property
    def code(self) -> int:
        """The engine's number."""
        return int(getattr(lib, f"PE_ATOM_{self.name}"))


OPERATIONS = [
    Operation("ADD", "us", "add", binary=True),
    Operation("SUB", "us"),
    Operation("INC", "us"),
    Operation("DEC", "us"),
    Operation("UMIN", "u", "min", idempotent=True),
    Operation("UMAX", "u", "max", idempotent=True),
    Operation("XCHG", "us", "exch", idempotent=True),
    Operation("CAS", "us", "cas", idempotent=True),
    Operation("AND", "us", "and", idempotent=True, binary=True),
    Operation("OR", "us", "or", idempotent=True, binary=True),
    Operation("XOR", "us", "xor", binary=True),
    Operation("SMIN", "s", "min", idempotent=True),
    Operation("SMAX", "s", "max", idempotent=True),
    Operation("PREDEC", "us"),
    Operation("FMAX", "f", "max", idempotent=True),
    Operation("FMIN", "f", "min", idempotent=True),
    Operation("FCAS", "f"),
    Operation("FADD", "f", "add"),
    Operation("INC_WRAP", "u", "inc"),
    Operation("DEC_WRAP", "u", "dec"),
]


def type_class(kind: ScalarType) -> str:
    """``u``, ``s`` or ``f``."""
    if kind.is_float or kind.kind == "packed":
        return "f"
    return "s" if kind.is_signed else "u"


def find(word: str, kind: ScalarType) -> Operation:
    """The operation that PTX calls ``word`` on a type. Raises KeyError if there is none."""
    wanted = type_class(kind)
    for entry in OPERATIONS:
        if entry.word == word and wanted in entry.classes:
            return entry
    raise KeyError(f"no {word} on {kind}")


def variant(mods: Mapping[str, str]) -> int:
    """The engine's flags for ``atom`` and ``red``: types other than f32 keep subnormals without being asked to."""
    return int(lib.PE_ATOM_NOFTZ) if "noftz" in mods and mods["type"] == "f32" else 0
