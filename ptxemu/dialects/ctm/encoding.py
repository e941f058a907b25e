"""What a loader of binary programs can read of an instruction: word 0 and the high bits of the word of the RGB unit.

Operations, operands, and the alpha unit's output modifier, target and
test lie elsewhere, in words whose layout is not known.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ptxemu.check.modifiers import Form
from ptxemu.dialects.ctm.ast import Instruction, Part
from ptxemu.dialects.ctm.operands import CHANNELS, NO_CHANNELS, OUT, PRED, Destination, destinations, form_of, unit_of
from ptxemu.dialects.ctm.output import KINDS
from ptxemu.dialects.ctm.table import CACHED, DISABLED, MODIFIERS, SELECTS, TESTS, uncached
from ptxemu.dialects.text import TextError
from ptxemu.text.errors import InputError, UnsupportedError


class Field(Struct, frozen=True):
    """Bits of word 0, or of the RGB word (1)."""

    word: int
    low: int
    bits: int = 1


FIELDS: dict[str, Field] = {
    "type": Field(0, 0, 2), "texture_wait": Field(0, 2), "rgb_select": Field(0, 3, 3), "rgb_invert": Field(0, 6),
    "write_inactive": Field(0, 7), "last": Field(0, 8), "nop": Field(0, 9), "alu_wait": Field(0, 10),
    "rgb_write": Field(0, 11, 3), "alpha_write": Field(0, 14), "rgb_output": Field(0, 15, 3), "alpha_output": Field(0, 18),
    "rgb_clamp": Field(0, 19), "alpha_clamp": Field(0, 20), "alu_result_select": Field(0, 21), "alpha_invert": Field(0, 22),
    "alu_result_test": Field(0, 23, 2), "alpha_select": Field(0, 25, 3), "rgb_omod": Field(1, 26, 3),
    "rgb_target": Field(1, 29, 2), "alu_result_write": Field(1, 31),
}  # fmt: skip
"""``write`` and ``output`` are WMASK and OMASK; in ALU instructions, the latter masks the predicate and ``target`` tests."""
TEX = "TEX"
TYPES = ("ALU", "OUTPUT", "flow control", TEX)
MODIFIER_CODES = (*MODIFIERS, DISABLED)
UNITS = ("rgb", "alpha")
FLAGS = {"TEX_SEM_WAIT": "texture_wait", "NOP": "nop"}
GATED = ("type", "texture_wait", "last", "nop", *(f"{unit}_{field}" for unit in UNITS for field in ("select", "invert", "write")))
COMPUTED = (*GATED, "rgb_output", "alpha_output", "rgb_clamp", "alpha_clamp", "rgb_omod", "rgb_target")
EXPRESSED = {"ALU": COMPUTED, "OUTPUT": COMPUTED, "TEX": GATED}
"""The fields that programs can say, by type."""
Words = tuple[int, int]


class UnitFields(Struct, frozen=True):
    """What the words say of a unit, as texts: its modifiers, and the masks of the temporary and of ``out`` or ``pred``."""

    modifiers: tuple[str, ...]
    temporary: str
    output: str


class InstructionFields(Struct, frozen=True):
    """What the words say of an instruction. ``type`` is ALU, OUTPUT or TEX."""

    type: str
    last: bool
    rgb: UnitFields
    alpha: UnitFields


# ---------------------------------------------------------------- words and numbers


def pack(fields: Mapping[str, int]) -> Words:
    """The two words; fields that are not given are zero. Raises InputError for a code that does not exist."""
    words = [0, 0]
    for name, value in fields.items():
        if name not in FIELDS:
            raise InputError(f"the words of an instruction have no field '{name}'")
        field = FIELDS[name]
        if not 0 <= value < 1 << field.bits:
            raise InputError(f"{name}: {value} does not fit {field.bits} bits")
        _check_code(name, value)
        words[field.word] |= value << field.low
    return words[0], words[1]


def unpack(word: int, rgb: int = 0) -> dict[str, int]:
    """The fields of the two words. Raises InputError for reserved bits and codes, UnsupportedError for bits of operands."""
    known = [sum(((1 << field.bits) - 1) << field.low for field in FIELDS.values() if field.word == index) for index in (0, 1)]
    if not 0 <= rgb < 1 << 32 or not 0 <= word < 1 << 32:
        raise InputError("an instruction word has 32 bits")
    if word & ~known[0]:
        raise InputError(f"word 0x{word:08x}: bits 0x{word & ~known[0]:08x} are reserved")
    if rgb & ~known[1]:
        raise UnsupportedError(f"RGB word 0x{rgb:08x}: the layout of operands, bits 0x{rgb & ~known[1]:08x}, is not known")
    found = {name: (word, rgb)[field.word] >> field.low & (1 << field.bits) - 1 for name, field in FIELDS.items()}
    for name, value in found.items():
        _check_code(name, value)
    return found


def _check_code(name: str, value: int) -> None:
    if name.endswith("_select") and name != "alu_result_select" and value >= len(SELECTS):
        raise InputError(f"{name}: code {value} is reserved")


# ---------------------------------------------------------------- instructions


def encode(item: Instruction, kind: str, *, last: bool = False) -> Words:
    """The words of an instruction of a ``cached`` or ``umrt`` program, less its operations and operands.

    Raises TextError for a modifier that lies in another word.
    """
    coder = _Coder(item, kind)
    type = TEX if item.parts[0].opcode == TEX else coder.kind
    fields = {"type": TYPES.index(type), "last": int(last)}
    for part in item.parts:
        coder.add(part, fields)
    for part in item.parts:
        coder.check_alpha(part, fields)
    return pack(fields)


class _Coder:
    """The codes of one instruction's modifiers and masks."""

    def __init__(self, item: Instruction, kind: str) -> None:
        self.kind = item.kind.text if item.kind else TYPES[0]
        self.cached = kind == KINDS[0]
        self.targets = _targets(kind)

    def add(self, part: Part, fields: dict[str, int]) -> None:
        """What a part gives."""
        form, masks = self._read(part)
        for word, name in FLAGS.items():
            fields[name] = fields.get(name, 0) | (word in form.mods or part.opcode == word)
        for unit in _units(part):
            fields |= {
                f"{unit}_select": SELECTS.index(form.mods.get("sel", SELECTS[0])),
                f"{unit}_invert": int("PRED_INV" in form.mods),
                f"{unit}_clamp": int("CLAMP" in form.mods),
                f"{unit}_write": _mask(unit, masks.get("temporary")),
                f"{unit}_output": _mask(unit, masks.get(OUT) or masks.get(PRED)),
            }
        if "rgb" in _units(part):
            fields |= {"rgb_omod": _modifier(form), "rgb_target": self._end(part, form)}

    def check_alpha(self, part: Part, fields: Mapping[str, int]) -> None:
        """The alpha unit's own word cannot be written: what lies there must be what the RGB unit has."""
        form, masks = self._read(part)
        for word in ("W_OMASK", "TEX_SEM_ACQUIRE"):
            if word in form.mods:
                raise TextError(f"{word} lies in a word whose layout is not known", part.name.pos, part.name.end)
        if "alpha" not in _units(part) or not part.operands:
            return
        counts = PRED in masks or (OUT in masks and self.cached)
        if _modifier(form) != fields.get("rgb_omod", 0) or (counts and self._end(part, form) != fields.get("rgb_target", 0)):
            message = "the alpha unit's own modifiers, targets and tests lie in a word whose layout is not known"
            raise TextError(message, part.name.pos, part.name.end)

    def _read(self, part: Part) -> tuple[Form, dict[str, Destination]]:
        form = form_of(self.kind, part)
        return form, destinations(part.operands[0], unit_of(part), self.kind) if part.operands else {}

    def _end(self, part: Part, form: Form) -> int:
        """The code of the test or of the target, each in the order of the notes; 0 if there is none."""
        if "test" in form.mods:
            return TESTS.index(form.mods["test"])
        target = form.mods.get("target", self.targets[0])
        if target not in self.targets:
            raise TextError(f"MIXED_OUTPUT: this program cannot write {target}", part.name.pos, part.name.end)
        return self.targets.index(target)


def _targets(kind: str) -> tuple[str, ...]:
    if kind not in KINDS:
        raise InputError(f"the kind of a program is {' or '.join(KINDS)}, not {kind!r}")
    return CACHED if kind == KINDS[0] else tuple(uncached())


def _units(part: Part) -> tuple[str, ...]:
    return UNITS if part.unit is None else (part.unit.text.lower(),)


def _modifier(form: Form) -> int:
    return MODIFIER_CODES.index(form.mods.get("omod", MODIFIER_CODES[0]))


def _mask(unit: str, target: Destination | None) -> int:
    bits = sum(1 << channel for channel in target.channels) if target else 0
    return bits & 7 if unit == "rgb" else bits >> 3


def decode(word: int, rgb: int = 0, *, kind: str = KINDS[0]) -> InstructionFields:
    """What the words say of an instruction of a ``cached`` or ``umrt`` program.

    Raises InputError for reserved codes, UnsupportedError for what programs cannot say: flow control, results of the ALU
    that steer it, writes of inactive points, and all that other words hold.
    """
    targets, fields = _targets(kind), unpack(word, rgb)
    type = TYPES[fields["type"]]
    if type not in EXPRESSED:
        raise UnsupportedError(f"word 0x{word:08x}: programs have no {type}")
    foreign = [name for name, value in fields.items() if value and name not in EXPRESSED[type]]
    if foreign:
        raise UnsupportedError(f"word 0x{word:08x}: a program cannot say {type} with {', '.join(foreign)}")
    own = [] if type == TEX else [MODIFIER_CODES[fields["rgb_omod"]]]
    if fields["rgb_output"] or fields["rgb_target"]:
        own.append((TESTS if type == "ALU" else targets)[fields["rgb_target"]])
    own += [flag for flag, name in FLAGS.items() if fields[name]]
    return InstructionFields(type, bool(fields["last"]), _unit("rgb", fields, own), _unit("alpha", fields, []))


def _unit(unit: str, fields: Mapping[str, int], own: list[str]) -> UnitFields:
    words = [*own, SELECTS[fields[f"{unit}_select"]]]
    words += ["PRED_INV"] if fields[f"{unit}_invert"] else []
    words += ["CLAMP"] if fields[f"{unit}_clamp"] else []
    return UnitFields(tuple(words), _letters(unit, fields[f"{unit}_write"]), _letters(unit, fields[f"{unit}_output"]))


def _letters(unit: str, mask: int) -> str:
    shifted = mask if unit == "rgb" else mask << 3
    return "".join(letter for channel, letter in enumerate(CHANNELS) if shifted >> channel & 1) or NO_CHANNELS
