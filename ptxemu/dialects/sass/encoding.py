"""The 64-bit words of SURED and RED on sm_50 to sm_62: text to word and back.

The layouts are tables of bit fields.  Like the disassembler of the CUDA tools, decoding takes every pair of operation and
size; the assembler takes what the reference calls legal.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ptxemu.check.modifiers import Form
from ptxemu.dialects.sass.ast import Address, Instruction
from ptxemu.dialects.sass.operands import (
    LAST_PREDICATE,
    LAST_REGISTER,
    TRUE,
    ZERO,
    check_operands,
    form_of,
    immediate20,
    predicate_number,
    register_number,
)
from ptxemu.dialects.sass.table import CLAMPS, DEFAULT_SIZE, DIMS
from ptxemu.dialects.text import TextError
from ptxemu.syntax.ast import Int, Name
from ptxemu.text.errors import InputError

OPS = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR")
SURED_SIZES = ("U32", "S32", "U64", "F32.FTZ.RN", "F16x2.RN", "S64", "SD32", "SD64")
RED_SIZES = ("U32", "S32", "U64", "F32.FTZ.RN", "F16x2.RN", "S64", "F64.RN")
NEEDS_60 = ("F16x2.RN", "F64.RN")
NOTHING = 255  # RZ
ALWAYS = 7  # PT
DEFAULT_CLAMP = "NEAR"


class Field(Struct, frozen=True):
    """Bits ``low`` .. ``low + width - 1``; ``values`` are the words that they number, or the field is a number."""

    name: str
    low: int
    width: int
    values: tuple[str, ...] = ()

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1


GUARD = (Field("negated", 19, 1), Field("guard", 16, 3), Field("a", 8, 8), Field("b", 0, 8))
SURED_OPCODE, SURED_MASK = 0x75A << 53, 0x7FF << 53
SURED = (
    Field("mode", 52, 1, ("P", "D")), Field("immediate", 51, 1), Field("clamp", 49, 2, CLAMPS), Field("dim", 33, 3, DIMS),
    Field("op", 24, 3, OPS), Field("BA", 23, 1), Field("size", 20, 3, SURED_SIZES), *GUARD,
)  # fmt: skip
INDEX, REGISTER = Field("word", 36, 13), Field("word", 39, 8)
RED_OPCODE, RED_MASK = 0xEBF8 << 48, 0xFFFE << 48
RED = (
    Field("E", 48, 1), Field("offset", 28, 20), Field("op", 23, 3, OPS), Field("size", 20, 3, RED_SIZES), *GUARD,
)  # fmt: skip

Values = Mapping[str, str | int]


# ---------------------------------------------------------------- words


def pack(opcode: int, fields: tuple[Field, ...], values: Values) -> int:
    """The word of an instruction whose fields have these values."""
    word = opcode
    for field in fields:
        value = values[field.name]
        number = field.values.index(value) if isinstance(value, str) else value
        assert 0 <= number <= field.mask, (field.name, number)
        word |= number << field.low
    return word


def unpack(word: int, opcode: int, fields: tuple[Field, ...]) -> dict[str, str | int]:
    """The fields of a word. Raises InputError for codes that mean nothing and bits that belong to no field."""
    values: dict[str, str | int] = {}
    rest = word ^ opcode
    for field in fields:
        number = word >> field.low & field.mask
        rest &= ~(field.mask << field.low)
        if field.values and number >= len(field.values):
            raise InputError(f"word 0x{word:016x}: {number} is not a code of the {field.name} field")
        values[field.name] = field.values[number] if field.values else number
    if rest:
        raise InputError(f"word 0x{word:016x}: bits 0x{rest:016x} must be zero")
    return values


# ---------------------------------------------------------------- text to word


def encode(item: Instruction, sm: int = 60) -> int:
    """The word of a SURED or RED instruction for a target; raises TextError."""
    form = form_of(item)
    check_operands(form, item)
    if item.opcode not in ("SURED", "RED"):
        raise TextError(f"'{item.opcode}' is not encoded here, only SURED and RED are", item.name.pos, item.name.end)
    sizes = SURED_SIZES if item.opcode == "SURED" else RED_SIZES
    size = form.mods["size"]
    if size not in sizes:
        raise TextError(f"size .{size} has no encoding", item.name.pos, item.name.end)
    if size in NEEDS_60 and sm < 60:
        raise TextError(f"size .{size} needs sm_60", item.name.pos, item.name.end)
    values: dict[str, str | int] = {"op": form.mods["op"], "size": size, **_guard(item), "b": _register(item.operands[1])}
    return _encode_sured(form, item, values) if item.opcode == "SURED" else _encode_red(form, item, values)


def _encode_sured(form: Form, item: Instruction, values: dict[str, str | int]) -> int:
    place, _, word = item.operands
    assert isinstance(place, Address) and place.base is not None
    immediate = isinstance(word, Int)
    values |= {"mode": form.mods["mode"], "immediate": int(immediate), "clamp": form.mods["clamp"], "dim": form.mods["dim"]}
    values |= {"BA": int("BA" in form.mods), "a": _register(place.base)}
    values["word"] = word.value if isinstance(word, Int) else _register(word)
    return pack(SURED_OPCODE, (*SURED, INDEX if immediate else REGISTER), values)


def _encode_red(form: Form, item: Instruction, values: dict[str, str | int]) -> int:
    place = item.operands[0]
    assert isinstance(place, Address)
    values |= {"E": int("E" in form.mods), "offset": immediate20(place) & 0xFFFFF}
    values["a"] = NOTHING if place.base is None else _register(place.base)
    return pack(RED_OPCODE, RED, values)


def _register(operand: object) -> int:
    assert isinstance(operand, Name)
    number = register_number(operand)
    return NOTHING if number is None else number


def _guard(item: Instruction) -> dict[str, int]:
    if item.guard is None:
        return {"guard": ALWAYS, "negated": 0}
    name, negated = item.guard
    number = predicate_number(name)
    return {"guard": ALWAYS if number is None else number, "negated": int(negated)}


# ---------------------------------------------------------------- word to text


def decode(word: int, sm: int = 60) -> str:
    """The text of a word as the CUDA tools print it: without the default size and clamp. Raises InputError."""
    if not 0 <= word < 1 << 64:
        raise InputError(f"0x{word:x} does not fit in 64 bits")
    if word & SURED_MASK == SURED_OPCODE:
        values = unpack(word, SURED_OPCODE, (*SURED, INDEX if word >> 51 & 1 else REGISTER))
        text = _sured_text(values)
    elif word & RED_MASK == RED_OPCODE:
        values = unpack(word, RED_OPCODE, RED)
        text = _red_text(values)
    else:
        raise InputError(f"word 0x{word:016x} is neither SURED nor RED")
    if values["size"] in NEEDS_60 and sm < 60:
        raise InputError(f"word 0x{word:016x}: size .{values['size']} needs sm_60")
    return _guard_text(values) + text


def _sured_text(values: Values) -> str:
    words = ["SURED", values["mode"], "BA" if values["BA"] else "", values["dim"], values["op"]]
    words += ["" if values["size"] == DEFAULT_SIZE else values["size"]]
    words += ["" if values["clamp"] == DEFAULT_CLAMP else values["clamp"]]
    word = values["word"]
    handle = f"0x{word:x}" if values["immediate"] else _register_text(word)
    return f"{_dotted(words)} [{_register_text(values['a'])}], {_register_text(values['b'])}, {handle}"


def _red_text(values: Values) -> str:
    words = ["RED", "E" if values["E"] else "", values["op"], "" if values["size"] == DEFAULT_SIZE else values["size"]]
    return f"{_dotted(words)} [{_address_text(values)}], {_register_text(values['b'])}"


def _address_text(values: Values) -> str:
    offset = values["offset"]
    assert isinstance(offset, int)
    base = _register_text(values["a"])
    if not offset:
        return base
    if base == ZERO:
        return f"0x{offset:x}"
    return f"{base}+0x{offset:x}" if offset < 1 << 19 else f"{base}+-0x{(1 << 20) - offset:x}"


def _register_text(number: object) -> str:
    assert isinstance(number, int) and (number <= LAST_REGISTER or number == NOTHING)
    return ZERO if number == NOTHING else f"R{number}"


def _guard_text(values: Values) -> str:
    number = values["guard"]
    assert isinstance(number, int) and (number <= LAST_PREDICATE or number == ALWAYS)
    if number == ALWAYS and not values["negated"]:
        return ""
    name = TRUE if number == ALWAYS else f"P{number}"
    return f"@{'!' if values['negated'] else ''}{name} "


def _dotted(words: list[str | int]) -> str:
    return ".".join(str(word) for word in words if word)
