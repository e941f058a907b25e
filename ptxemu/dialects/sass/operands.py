"""Operands of SASS: checked against the kinds that a row names, then turned into registers and values of the IR."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ptxemu.check.modifiers import Form, Misfit, alternatives, sort_modifiers
from ptxemu.dialects.build import Builder, Guard
from ptxemu.dialects.sass.ast import Address, Constant, Instruction, Negative, Operand
from ptxemu.dialects.sass.grammar import LATER
from ptxemu.dialects.sass.memory import Banks
from ptxemu.dialects.sass.table import ALIASES, ENGINE_TYPES, GEOMETRIES, JOINED, SIZES, TABLE
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Reg, SReg
from ptxemu.ir.types import PRED, TYPES
from ptxemu.syntax.ast import Int, Name, Not
from ptxemu.text.suggestions import ALIKE, closest

Source = Reg | SReg | int
LAST_REGISTER, LAST_PREDICATE = 254, 6
ZERO, TRUE = "RZ", "PT"
CARRY = ".CC"
ADDITIONS = ("IADD", "IADD32I")
"""What can give its carry."""
SPECIAL = {"SR_LANEID": "laneid", "SR_WARPID": "warpid"} | {
    f"SR_{sass}.{axis}": f"{ptx}.{axis.lower()}" for sass, ptx in (("TID", "tid"), ("CTAID", "ctaid")) for axis in "XYZ"
}
NUMBERS = frozenset(str(number) for number in range(LAST_REGISTER + 1))
IMM20 = 1 << 19
INDEX_LIMIT = 1 << 13


# ---------------------------------------------------------------- opcodes


def form_of(item: Instruction) -> Form:
    """The row of an instruction and what its modifiers mean; raises TextError."""
    opcode, name = item.opcode, item.name
    if opcode not in TABLE:
        raise TextError(f"unknown instruction '{opcode}'{closest(opcode, TABLE, ALIKE)}", name.pos, name.pos + len(opcode))
    words = joined(item.modifiers)
    if opcode == "RED":
        words = tuple(ALIASES.get(word, word) for word in words)
    _check_size(item, words)
    forms = sort_modifiers(TABLE[opcode], words, False)
    if isinstance(forms, Misfit):
        raise TextError(forms.message, *_modifier_span(item, words, forms.index))
    return forms[0]


def joined(words: tuple[str, ...]) -> tuple[str, ...]:
    """Modifiers with the words of one size (``F32.FTZ.RN``) made one."""
    found: list[str] = []
    at = 0
    while at < len(words):
        length = next((len(group) for group in JOINED if words[at : at + len(group)] == group), 1)
        found.append(".".join(words[at : at + length]))
        at += length
    return tuple(found)


def _check_size(item: Instruction, words: tuple[str, ...]) -> None:
    """An operation of SURED or RED takes the sizes that the reference lists for it."""
    operation = next((word for word in words if (item.opcode, word) in SIZES), None)
    size = next((index for index, word in enumerate(words) if word in ENGINE_TYPES), None)
    if operation is None or size is None:
        return
    sizes = SIZES[item.opcode, operation]
    if words[size] not in sizes:
        text = f"ILLEGAL_OP_TYPE: '{item.opcode}.{operation}' has no type .{words[size]}, only {alternatives(list(sizes))}"
        raise TextError(text, *_modifier_span(item, words, size))


def _modifier_span(item: Instruction, words: tuple[str, ...], index: int | None) -> tuple[int, int]:
    """Where a modifier stands, with its dot. Aliases are as long as what they stand for, or shorter by a letter."""
    if index is None:
        return item.name.pos, item.name.end
    written = joined(item.modifiers)
    start = item.name.pos + len(item.opcode) + sum(len(word) + 1 for word in written[:index])
    return start, start + 1 + len(written[index])


# ---------------------------------------------------------------- operands


def check_operands(form: Form, item: Instruction) -> None:
    """Raise TextError unless the operands are of the row's kinds and in the registers that it takes."""
    patterns = form.row.operands
    if item.guard is not None:
        predicate_number(item.guard[0])
    if item.opcode == "SURED" and [type(operand) for operand in item.operands[2:]] == [Int, Int]:
        bank = item.operands[2]
        raise TextError(f"a bank before the index {LATER}", bank.pos, item.operands[3].end)
    if len(item.operands) != len(patterns):
        plural = "" if len(patterns) == 1 else "s"
        message = f"'{item.opcode}' takes {len(patterns)} operand{plural}, not {len(item.operands)}"
        raise TextError(message, item.name.pos, item.name.end)
    for pattern, operand in zip(patterns, without_carry(item)):
        problem = _problem(pattern.type, operand)
        if problem is not None:
            raise TextError(problem, operand.pos, operand.end)
        if pattern.type in REGISTER_RULES:
            REGISTER_RULES[pattern.type](form, operand)


def check_data(form: Form, operand: Operand) -> None:
    """Rb: one register, or an even pair; RZ is zero."""
    assert isinstance(operand, Name)
    number = register_number(operand)
    if number is not None and ENGINE_TYPES[form.mods["size"]].bits == 64:
        check_pair(operand, number)


def check_coordinates(form: Form, operand: Operand) -> None:
    """Ra: a register, an even one for two coordinates, a multiple of 4 for three."""
    assert isinstance(operand, Address) and operand.base is not None
    first = operand.base
    number, count = register_number(first), len(GEOMETRIES[form.mods["dim"]].coordinates)
    align = (1, 1, 2, 4)[count]
    if number is None:
        raise TextError("coordinates may not lie in RZ", first.pos, first.end)
    if number % align:
        raise TextError(f"{count} coordinates start at a multiple of {align}, not {first.text}", first.pos, first.end)
    if number + count - 1 > LAST_REGISTER:
        raise TextError(f"there are not {count} registers from {first.text} on", first.pos, first.end)


def check_address(form: Form, operand: Operand) -> None:
    """Ra + ImmS20: with .E an even pair."""
    assert isinstance(operand, Address)
    immediate20(operand)
    number = None if operand.base is None else register_number(operand.base)
    if number is not None and operand.base is not None and "E" in form.mods:
        check_pair(operand.base, number)


def check_register(form: Form, operand: Operand) -> None:
    """A register, if it is not a number or a constant."""
    name = operand.name if isinstance(operand, Negative) else operand
    if isinstance(name, Name):
        register_number(name)


def check_predicate(form: Form, operand: Operand) -> None:
    name = operand.operand if isinstance(operand, Not) else operand
    assert isinstance(name, Name)
    predicate_number(name)


def check_pair(name: Name, number: int) -> None:
    if number % 2 or number == LAST_REGISTER:
        raise TextError(f"a pair starts at an even register below R{LAST_REGISTER}, not {name.text}", name.pos, name.end)


REGISTER_RULES: dict[str, Callable[[Form, Operand], None]] = {
    "data": check_data, "coordinates": check_coordinates, "address": check_address, "word": check_register,
    "reg": check_register, "term": check_register, "source": check_register, "pred": check_predicate, "test": check_predicate,
}  # fmt: skip


def register_number(name: Name) -> int | None:
    """A register's number, None for RZ."""
    if name.text == ZERO:
        return None
    if not is_register(name.text):
        raise TextError(f"'{name.text}' is not a register; there are R0 to R{LAST_REGISTER} and RZ", name.pos, name.end)
    return int(name.text[1:])


def has_carry(item: Instruction) -> bool:
    """Does the destination give the carry, ``Rd.CC``?"""
    first = item.operands[0] if item.operands else None
    return item.opcode in ADDITIONS and isinstance(first, Name) and first.text.endswith(CARRY)


def without_carry(item: Instruction) -> tuple[Operand, ...]:
    """The operands, the destination without ``.CC``."""
    if not has_carry(item):
        return item.operands
    first = item.operands[0]
    assert isinstance(first, Name)
    return replace(first, text=first.text.removesuffix(CARRY)), *item.operands[1:]


def predicate_number(name: Name) -> int | None:
    """A predicate's number, None for PT."""
    if name.text == TRUE:
        return None
    if not is_predicate(name.text):
        raise TextError(f"'{name.text}' is not a predicate; there are P0 to P{LAST_PREDICATE} and PT", name.pos, name.end)
    return int(name.text[1:])


class Operands:
    """The registers of a kernel, and the operands of its instructions."""

    def __init__(self, body: Builder, banks: Banks) -> None:
        self.body = body
        self.banks = banks
        self._registers = [Reg(f"R{number}", TYPES["b32"]) for number in range(LAST_REGISTER + 1)]
        self._predicates = [Reg(f"P{number}", PRED) for number in range(LAST_PREDICATE + 1)]

    # ------------------------------------------------------------ registers

    def target(self, operand: Operand) -> Reg:
        """A destination; RZ takes anything."""
        assert isinstance(operand, Name)
        number = register_number(operand)
        return self.body.temp("b32") if number is None else self._registers[number]

    def register(self, name: Name) -> Source:
        number = register_number(name)
        return 0 if number is None else self._registers[number]

    def group(self, first: Name, count: int) -> list[Reg]:
        """Consecutive registers."""
        number = register_number(first)
        assert number is not None
        return self._registers[number : number + count]

    def data(self, operand: Operand, bits: int) -> Reg:
        """The operand of a reduction: one register, or an even pair with the low word first."""
        assert isinstance(operand, Name)
        number = register_number(operand)
        if bits == 32 and number is not None:
            return self._registers[number]
        value = self.body.temp(f"b{bits}")
        if number is None:
            self.body.emit(f"mov.b{bits}", value, 0)
            return value
        self.body.emit("mov.b64", value, self.pair(number))
        return value

    def pair(self, number: int) -> tuple[Reg, Reg]:
        return self._registers[number], self._registers[number + 1]

    # ------------------------------------------------------------ values

    def source(self, operand: Operand) -> Source:
        """The value of a register, literal or constant."""
        if isinstance(operand, Negative):
            value = self.body.temp("b32")
            self.body.emit("sub.u32", value, 0, self.register(operand.name))
            return value
        if isinstance(operand, Name):
            return self.register(operand)
        if isinstance(operand, Int):
            return operand.value & 0xFFFFFFFF
        assert isinstance(operand, Constant)
        found = self.banks.word(self.body, operand.bank, operand.offset)
        if found is None:
            where = f"c[0x{operand.bank:x}][0x{operand.offset:x}]"
            raise TextError(f"there is no word in {where}: give it by .const or .param", operand.pos, operand.end)
        if isinstance(found, SReg):
            value = self.body.temp("b32")
            self.body.emit("mov.u32", value, found)
            return value
        return found

    def special(self, operand: Operand) -> SReg:
        assert isinstance(operand, Name)
        if operand.text not in SPECIAL:
            hint = closest(operand.text, SPECIAL)
            raise TextError(f"unknown special register '{operand.text}'{hint}", operand.pos, operand.end)
        return SReg(SPECIAL[operand.text])

    # ------------------------------------------------------------ predicates

    def guard(self, name: Name, negated: bool) -> Guard | None:
        """The guard of an instruction; PT is no guard, and !PT a predicate that is never true."""
        number = predicate_number(name)
        if number is not None:
            return self._predicates[number], negated
        if not negated:
            return None
        never = self.body.temp("pred")
        self.body.emit("mov.pred", never, 0)
        return never, False

    def predicate(self, operand: Operand) -> Reg:
        """The value of ``P0`` or ``!P0``."""
        name = operand.operand if isinstance(operand, Not) else operand
        assert isinstance(name, Name)
        number = predicate_number(name)
        value = self.body.temp("pred")
        if number is None:
            self.body.emit("mov.pred", value, int(not isinstance(operand, Not)))
        else:
            self.body.emit("not.pred" if isinstance(operand, Not) else "mov.pred", value, self._predicates[number])
        return value

    def predicate_target(self, operand: Operand) -> Reg:
        assert isinstance(operand, Name)
        number = predicate_number(operand)
        return self.body.temp("pred") if number is None else self._predicates[number]

    # ------------------------------------------------------------ addresses

    def address(self, place: Address, *, extended: bool) -> Reg:
        """A RED address: a 32-bit sum that wraps and is zero-extended, or a 64-bit sum (RED reference, "Description")."""
        offset = immediate20(place)
        total = self.body.temp("b64")
        if not extended:
            narrow = self.body.temp("b32")
            base = 0 if place.base is None else self.register(place.base)
            self.body.emit("mov.b32" if base == 0 else "add.u32", narrow, *([offset] if base == 0 else [base, offset]))
            self.body.emit("cvt.u64.u32", total, narrow)
            return total
        number = None if place.base is None else register_number(place.base)
        if number is None:
            self.body.emit("mov.b64", total, offset)
            return total
        whole = self.body.temp("b64")
        self.body.emit("mov.b64", whole, self.pair(number))
        self.body.emit("add.s64", total, whole, offset)
        return total


def immediate20(place: Address) -> int:
    """The signed offset of an address. A bare literal may also be the field's 20 bits or the address they extend to."""
    value = place.offset
    if -IMM20 <= value < IMM20:
        return value
    if place.base is None and IMM20 <= value < 2 * IMM20:
        return value - 2 * IMM20
    if place.base is None and 2**32 - IMM20 <= value < 2**32:
        return value - 2**32
    raise TextError("the offset does not fit 20 bits", place.pos, place.end)


def is_register(text: str) -> bool:
    return text[:1] == "R" and text[1:] in NUMBERS


def is_predicate(text: str) -> bool:
    return text[:1] == "P" and text[1:].isdigit() and len(text) == 2 and int(text[1:]) <= LAST_PREDICATE


KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "reg": ((Name,), "a register"),
    "term": ((Name, Negative), "a register"),
    "data": ((Name,), "a register"),
    "source": ((Name, Negative, Int, Constant), "a register, a number or c[bank][offset]"),
    "literal": ((Int,), "a number"),
    "pred": ((Name,), "a predicate"),
    "test": ((Name, Not), "a predicate"),
    "special": ((Name,), "a special register"),
    "word": ((Name, Int), "a register or an index"),
    "coordinates": ((Address,), "[Ra]"),
    "address": ((Address,), "an address in brackets"),
    "label": ((Name,), "a label"),
}
"""What the types of rows stand for: syntax trees, and words for messages."""


def _problem(kind: str, operand: Operand) -> str | None:
    trees, words = KINDS[kind]
    if not isinstance(operand, trees):
        return f"expected {words}"
    if kind == "coordinates":
        assert isinstance(operand, Address)
        return None if operand.base is not None and operand.offset == 0 else "coordinates are a register, [Ra]"
    if kind == "word" and isinstance(operand, Int) and not 0 <= operand.value < INDEX_LIMIT:
        return "an index has 13 bits"
    if kind == "word" and isinstance(operand, Name) and operand.text == ZERO:
        return "the header word may not be RZ"
    if isinstance(operand, Int) and not -(2**31) <= operand.value < 2**32:
        return "the number does not fit 32 bits"
    return None
