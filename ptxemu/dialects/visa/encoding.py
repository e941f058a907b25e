"""The 48 bytes of a TYPED_ATOMIC (vISA "TYPED_ATOMIC", Format): both ways between text and bytecode.

Fields in order: opcode, operation, execution size and predicate, then the surface and seven raw operands, each an index into
the kernel's table of variables and a byte offset.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from ptxemu.dialects.operations import OPERATIONS
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa.ast import Guard, Instruction, Operand
from ptxemu.dialects.visa.kernel import form_of
from ptxemu.dialects.visa.masks import Span, span
from ptxemu.dialects.visa.operands import NULL, RAW
from ptxemu.dialects.visa.table import ALIASES, ATOMIC, HALF, entry_of
from ptxemu.syntax.ast import Name
from ptxemu.text.errors import InputError

OPCODE = 0x73
HALF_BIT = 0x20
HEAD = struct.Struct("<BBBHB")
RAW_OPERAND = struct.Struct("<IH")
SIZE = HEAD.size + 7 * RAW_OPERAND.size
INVERTED = 1 << 15
CONTROLS = ("", ".any", ".all")
MOST_PREDICATES = 1 << 12
SIZES = (1, 2, 4, 8)
NUMBERED = re.compile(r"[PTV]([0-9]{1,9})")
Index = Callable[[Name], int]
NameOf = Callable[[str, int], str]
SPELLINGS = {word: alias for alias, word in ALIASES.items()}


def number(name: Name) -> int:
    """A variable's number as its index: ``V40`` is 40."""
    found = NUMBERED.fullmatch(name.text)
    if found is None:
        raise TextError(f"'{name.text}' has no number to stand for it", name.pos, name.end)
    return int(found[1])


def encode(item: Instruction, index: Index = number) -> bytes:
    """The bytes of an instruction; ``index`` tells the place of a variable in the kernel's table. Raises TextError."""
    form = form_of(item)
    if item.opcode != ATOMIC or item.execution is None or len(item.operands) != len(form.row.operands):
        raise TextError("only a complete TYPED_ATOMIC has an encoding here", item.pos, item.end)
    at = span(item.execution, False, 32)
    if at.size not in SIZES:
        raise TextError(f"an execution size of {at.size} has no encoding", item.pos, item.end)
    code = entry_of(form.mods["op"]).visa_code | (HALF_BIT if HALF in form.mods else 0)
    surface = item.operands[0]
    head = HEAD.pack(OPCODE, code, _execution(at), _predicate(item.guard, index), _field(surface, index, 0xFF))
    return head + b"".join(_raw(operand, index) for operand in item.operands[1:])


def _execution(at: Span) -> int:
    return SIZES.index(at.size) | (at.offset // 4 + 8 * at.no_mask) << 4


def _predicate(guard: Guard | None, index: Index) -> int:
    if guard is None:
        return 0
    base, _, word = guard.name.text.partition(".")
    name = Name(base, guard.name.pos, guard.name.pos + len(base))
    control = f".{word.lower()}" if word else ""
    if control not in CONTROLS:
        raise TextError(f"'{control}' is neither .any nor .all", name.end, guard.name.end)
    return _field(name, index, MOST_PREDICATES - 1, 1) | CONTROLS.index(control) << 13 | INVERTED * guard.inverted


def _field(operand: Operand, index: Index, most: int, least: int = 0) -> int:
    """An operand's index; of predicates and variables, 0 stands for none."""
    if not isinstance(operand, Name):
        raise TextError("expected a name", operand.pos, operand.end)
    value = index(operand)
    if not least <= value <= most:
        raise TextError(f"index {value} does not fit its field", operand.pos, operand.end)
    return value


def _raw(operand: Operand, index: Index) -> bytes:
    if isinstance(operand, Name) and NULL.fullmatch(operand.text):
        return RAW_OPERAND.pack(0, 0)
    found = RAW.fullmatch(operand.text) if isinstance(operand, Name) else None
    if found is None or int(found[2]) > 0xFFFF:
        raise TextError("expected a raw operand, such as V40.0, or the null variable V0", operand.pos, operand.end)
    return RAW_OPERAND.pack(_field(Name(found[1], operand.pos, operand.end), index, 0xFFFFFFFF, 1), int(found[2]))


def numbered(kind: str, index: int) -> str:
    """A variable's name by its index: ``V40`` is 40."""
    return f"{kind}{index}"


def decode(code: bytes, name_of: NameOf = numbered, *, finalizer: bool = False) -> str:
    """The text of an instruction; ``name_of`` tells the name of a variable, of kind P, T or V, in the kernel's table.

    Operations and the null variable are written as in the documents, or as the finalizer writes them. Raises InputError.
    """
    if len(code) != SIZE:
        raise InputError(f"a TYPED_ATOMIC has {SIZE} bytes, not {len(code)}")
    opcode, op, execution, predicate, surface = HEAD.unpack_from(code)
    words = {entry.visa_code: entry.visa for entry in OPERATIONS if entry.visa}
    if opcode != OPCODE:
        raise InputError(f"opcode 0x{opcode:02x} is not that of TYPED_ATOMIC, 0x{OPCODE:02x}")
    if op & ~(HALF_BIT | 0x1F) or op & 0x1F not in words:
        raise InputError(f"operation 0x{op:02x} is reserved")
    if execution & 15 >= len(SIZES):
        raise InputError(f"execution size 0x{execution:02x} is reserved")
    size, mask = SIZES[execution & 15], f"M{(execution >> 4 & 7) + 1}{'_NM' if execution >> 7 else ''}"
    word = SPELLINGS.get(words[op & 0x1F], words[op & 0x1F]) if finalizer else words[op & 0x1F]
    name = f"TYPED_ATOMIC.{word.upper()}{'.16' if op & HALF_BIT else ''}"
    null = "%null.0" if finalizer else "V0"
    raws = [RAW_OPERAND.unpack_from(code, HEAD.size + place * RAW_OPERAND.size) for place in range(7)]
    operands = [f"{name_of('V', index)}.{offset}" if index else null for index, offset in raws]
    return " ".join([*_guard(predicate, name_of), name, f"({mask}, {size})", name_of("T", surface), *operands])


def _guard(predicate: int, name_of: NameOf) -> list[str]:
    control = predicate >> 13 & 3
    if predicate & MOST_PREDICATES or control == len(CONTROLS):
        raise InputError(f"predicate 0x{predicate:04x} is reserved")
    inverted = "!" if predicate & INVERTED else ""
    index = predicate & MOST_PREDICATES - 1
    return [f"({inverted}{name_of('P', index)}{CONTROLS[control]})"] if index else []
