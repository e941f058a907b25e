"""Where a variable is kept: location expressions and lists of them (dwarfstd.org, version 5, sections 2.5 and 2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ptxemu.dwarf.names import Op
from ptxemu.dwarf.sections import Sections
from ptxemu.dwarf.stream import DwarfError, Stream

ADDRESS = 8
END_OF_LIST = (0, 0)
WORD = (1 << 64) - 1
FIXED = {
    Op.CONST1U: (1, False), Op.CONST1S: (1, True), Op.CONST2U: (2, False), Op.CONST2S: (2, True), Op.CONST4U: (4, False),
    Op.CONST4S: (4, True), Op.CONST8U: (8, False), Op.CONST8S: (8, True),
}  # fmt: skip


class Frame(Protocol):
    """What expressions look at. Raises DwarfError for what there is not."""

    def register(self, name: str) -> int: ...

    def symbol(self, name: str) -> Place: ...

    def word(self, place: Place) -> int:
        """The 8 bytes in memory there."""
        ...


class Place(Struct, frozen=True):
    """An address; in all spaces but ``generic`` an offset."""

    space: str
    address: int

    def __add__(self, offset: int) -> Place:
        return Place(self.space, self.address + offset & WORD)


GENERIC = "generic"
Location = Place | int
"""Where a variable is in memory, or, of one that is in a register or a constant, its bits."""


def register_name(number: int) -> str:
    """PTX gives registers the numbers that their names are, a byte for each character."""
    return number.to_bytes(-(-number.bit_length() // 8), "big").decode("latin-1")


def locate(expression: bytes, sections: Sections, frame: Frame) -> Location:
    """What an expression says of a frame. Raises DwarfError."""
    stream, stack = Stream(expression), list[Place]()
    is_value = False
    while stream.left:
        op = stream.number(1)
        if op == Op.REGX and not stack:
            return frame.register(register_name(stream.leb()))
        if op == Op.IMPLICIT_VALUE:
            return int.from_bytes(stream.bytes(stream.leb()), "little")
        is_value = op == Op.STACK_VALUE
        if not is_value:
            _do(op, stream, stack, sections, frame)
    if not stack:
        raise DwarfError("optimized out")
    return stack[-1].address if is_value else stack[-1]


def _do(op: int, stream: Stream, stack: list[Place], sections: Sections, frame: Frame) -> None:
    """One operation on the stack."""
    if op == Op.ADDR:
        stack.append(_address(stream.number(ADDRESS), sections, frame))
    elif op == Op.BREGX:
        name, offset = register_name(stream.leb()), stream.leb(signed=True)
        stack.append(Place(GENERIC, frame.register(name)) + offset)
    elif Op.LIT0 <= op <= Op.LIT31:
        stack.append(Place(GENERIC, op - Op.LIT0))
    elif op in FIXED:
        size, signed = FIXED[Op(op)]
        stack.append(Place(GENERIC, stream.number(size, signed) & WORD))
    elif op in (Op.CONSTU, Op.CONSTS):
        stack.append(Place(GENERIC, stream.leb(op == Op.CONSTS) & WORD))
    elif op in (Op.PLUS, Op.MINUS) and len(stack) > 1:
        top = stack.pop().address
        stack[-1] += top if op == Op.PLUS else -top
    elif op == Op.PLUS_UCONST and stack:
        stack[-1] += stream.leb()
    elif op == Op.DEREF and stack:
        stack[-1] = Place(GENERIC, frame.word(stack[-1]))
    elif op != Op.NOP:
        raise DwarfError(f"kept where it is not looked for: operation 0x{op:x} of DWARF")


def _address(word: int, sections: Sections, frame: Frame) -> Place:
    named = sections.symbol(word)
    return Place(GENERIC, word) if named is None else frame.symbol(named[0]) + named[1]


def within(low: int, high: int, sections: Sections, labels: Mapping[str, int], pc: int) -> bool:
    """Whether an instruction of a function is between two addresses, which are labels in it."""
    ends = [sections.symbol(word) for word in (low, high)]
    if None in ends:
        return False
    first, last = (labels.get(end[0]) for end in ends if end is not None)
    return first is not None and last is not None and first <= pc < last


def listed(at: int, sections: Sections, labels: Mapping[str, int], pc: int) -> bytes | None:
    """The expression that holds at an instruction, of the list at an offset of ``.debug_loc``; None if there is none."""
    stream = Stream(sections.get(".debug_loc"), at)
    while (pair := (stream.number(ADDRESS), stream.number(ADDRESS))) != END_OF_LIST:
        expression = stream.bytes(stream.number(2))
        if within(*pair, sections, labels, pc):
            return expression
    return None


def in_ranges(at: int, sections: Sections, labels: Mapping[str, int], pc: int) -> bool:
    """Whether one of the ranges at an offset of ``.debug_ranges`` has an instruction."""
    stream = Stream(sections.get(".debug_ranges"), at)
    while (pair := (stream.number(ADDRESS), stream.number(ADDRESS))) != END_OF_LIST:
        if within(*pair, sections, labels, pc):
            return True
    return False
