"""Operands of CTM: registers with masks and swizzles, checked against the rows' kinds."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.check.modifiers import Form, Misfit, sort_modifiers
from ptxemu.dialects.ctm.ast import Name, Number, Operand, Pair, Part, Source
from ptxemu.dialects.ctm.memory import CONSTANTS
from ptxemu.dialects.ctm.table import TABLES
from ptxemu.dialects.text import TextError
from ptxemu.text.suggestions import ALIKE, closest

CHANNELS = "rgba"
NO_CHANNELS = "none"
CONSTANT_SELECTS = {"0": 0, "h": 0x3F000000, "1": 0x3F800000}
LAST_TEMPORARY, LAST_CONSTANT = 127, CONSTANTS - 1
INPUTS = 16
PRED, OUT = "pred", "out"


class Unit(Struct, frozen=True):
    """Which channels a part computes."""

    channels: range
    words: str


UNITS = {"RGB": Unit(range(3), "rgb"), "ALPHA": Unit(range(3, 4), "a"), None: Unit(range(4), CHANNELS)}


class Destination(Struct, frozen=True):
    """Channels of a temporary, of the predicate or of the output."""

    kind: str  # "temporary", PRED, OUT
    number: int
    channels: tuple[int, ...]
    name: Name


def unit_of(part: Part) -> Unit:
    return UNITS[part.unit.text if part.unit else None]


def form_of(kind: str, part: Part) -> Form:
    """The row of a part of an instruction of a type, and what its modifiers mean; raises TextError."""
    name, opcode, table = part.name, part.opcode, TABLES[kind]
    if opcode not in table:
        end = name.pos + len(opcode)
        if any(opcode in other for other in TABLES.values()):
            raise TextError(f"'{opcode}' is not an operation of {kind} instructions", name.pos, end)
        raise TextError(f"unknown operation '{opcode}'{closest(opcode, table, ALIKE)}", name.pos, end)
    _check_modifiers(kind, part)
    forms = sort_modifiers(table[opcode], part.modifiers, False)
    if isinstance(forms, Misfit):
        raise TextError(forms.message, *_modifier_span(part, forms.index))
    count = len(forms[0].row.operands)
    if len(part.operands) != count:
        plural = "" if count == 1 else "s"
        raise TextError(f"'{opcode}' takes {count} operand{plural}, not {len(part.operands)}", name.pos, name.end)
    return forms[0]


def _check_modifiers(kind: str, part: Part) -> None:
    """Modifiers that other operations or instructions have."""
    (row,) = TABLES[kind][part.opcode]
    for index, word in enumerate(part.modifiers):
        owners = {other: [name for name, (one,) in table.items() if word in one.by_modifier] for other, table in TABLES.items()}
        if word in row.by_modifier or not any(owners.values()):
            continue
        of = f"{', '.join(owners[kind])}" if owners[kind] else f"{next(other for other in owners if owners[other])} instructions"
        raise TextError(f"'.{word}' is a modifier of {of}, not of '{part.opcode}'", *_modifier_span(part, index))


def _modifier_span(part: Part, index: int | None) -> tuple[int, int]:
    if index is None:
        return part.name.pos, part.name.end
    start = part.name.pos + len(part.opcode) + sum(len(word) + 1 for word in part.modifiers[:index])
    return start, start + 1 + len(part.modifiers[index])


# ---------------------------------------------------------------- destinations


def destinations(operand: Operand, unit: Unit, kind: str) -> dict[str, Destination]:
    """What a part writes, by kind of destination: a temporary, and the predicate or the output as the type has it."""
    assert isinstance(operand, Pair)
    found: dict[str, Destination] = {}
    for name in operand.names:
        made = _destination(name, unit)
        other = {"ALU": OUT, "OUTPUT": PRED}[kind]
        if made.kind == other:
            raise TextError(f"{kind} instructions do not write '{other}'", name.pos, name.end)
        if made.kind in found:
            raise TextError("the two destinations are of one kind", name.pos, name.end)
        found[made.kind] = made
    return found


def _destination(name: Name, unit: Unit) -> Destination:
    mask = name.suffix or unit.words
    if mask == NO_CHANNELS:
        mask = ""
    start = name.pos + len(name.stem) + 1
    wrong = next((letter for letter in mask if letter not in CHANNELS), None)
    if wrong is not None or len(set(mask)) < len(mask) or "." in name.suffix:
        raise TextError(f"a write mask has letters of {CHANNELS}, each once, or is {NO_CHANNELS}", start, name.end)
    foreign = next((letter for letter in mask if letter not in unit.words), None)
    if foreign is not None:
        raise TextError(f"this unit has no channel {foreign}, only {unit.words}", start, name.end)
    channels = tuple(sorted(CHANNELS.index(letter) for letter in mask))
    if name.stem in (PRED, OUT):
        return Destination(name.stem, 0, channels, name)
    return Destination("temporary", temporary(name), channels, name)


def temporary(name: Name) -> int:
    """The number of ``r0`` .. ``r127``."""
    number = _number(name.stem, "r", LAST_TEMPORARY)
    if number is None:
        known = f"there are r0 to r{LAST_TEMPORARY}, {PRED} and {OUT}"
        raise TextError(f"'{name.stem}' cannot be written; {known}", name.pos, name.pos + len(name.stem))
    return number


# ---------------------------------------------------------------- sources


class Select(Struct, frozen=True):
    """One channel of a source: of a temporary (``r``) or constant (``c``) register, or the bits of a number."""

    bank: str
    number: int
    channel: int
    negated: bool
    absolute: bool


def selects(operand: Operand, unit: Unit) -> dict[int, Select]:
    """What each channel of a unit reads from a source."""
    if isinstance(operand, Pair):
        operand = _plain(operand)
    value = operand.value
    signs = operand.negated, operand.absolute
    if isinstance(value, Number):
        if value.bits not in CONSTANT_SELECTS.values():
            raise TextError("numbers in sources are 0, 0.5 and 1; others lie in constants", value.pos, value.end)
        return {channel: Select("", value.bits, 0, *signs) for channel in unit.channels}
    bank, number = _register(value)
    letters = _swizzle(value, unit)
    found = {}
    for channel, letter in zip(unit.channels, letters, strict=True):
        if letter in CONSTANT_SELECTS:
            found[channel] = Select("", CONSTANT_SELECTS[letter], 0, *signs)
        else:
            found[channel] = Select(bank, number, CHANNELS.index(letter), *signs)
    return found


def _plain(pair: Pair) -> Source:
    return Source(pair.names[0], False, False, pair.pos, pair.end)


def _register(name: Name) -> tuple[str, int]:
    for bank, last in (("r", LAST_TEMPORARY), ("c", LAST_CONSTANT)):
        number = _number(name.stem, bank, last)
        if number is not None:
            return bank, number
    known = f"there are r0 to r{LAST_TEMPORARY} and c0 to c{LAST_CONSTANT}"
    raise TextError(f"'{name.stem}' is not a register; {known}", name.pos, name.pos + len(name.stem))


def _swizzle(name: Name, unit: Unit) -> str:
    letters = name.suffix or unit.words
    count = len(unit.channels)
    if len(letters) == 1:
        letters *= count
    if len(letters) != count or not set(letters) <= {*CHANNELS, *CONSTANT_SELECTS}:
        start = name.pos + len(name.stem) + 1
        what = "one letter" if count == 1 else f"one letter or {count}"
        raise TextError(f"a swizzle of this unit has {what} of {CHANNELS}{''.join(CONSTANT_SELECTS)}", start, name.end)
    return letters


def constant(name: Name) -> int:
    """The number of ``c0`` .. ``c255``."""
    number = _number(name.text, "c", LAST_CONSTANT)
    if number is None:
        raise TextError(f"'{name.text}' is not a constant; there are c0 to c{LAST_CONSTANT}", name.pos, name.end)
    return number


def input_number(operand: Operand) -> tuple[int, Name]:
    """The number of ``inp0`` .. ``inp15``."""
    assert isinstance(operand, Source)
    name = operand.value
    number = _number(name.text, "inp", INPUTS - 1) if isinstance(name, Name) else None
    if number is None or operand.negated or operand.absolute:
        raise TextError(f"expected an input, inp0 to inp{INPUTS - 1}", operand.pos, operand.end)
    assert isinstance(name, Name)
    return number, name


def _number(text: str, prefix: str, last: int) -> int | None:
    digits = text.removeprefix(prefix)
    if not text.startswith(prefix) or not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        return None
    return int(digits) if len(digits) <= 3 and int(digits) <= last else None
