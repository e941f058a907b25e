"""What the grammar makes of a line of SASS. Positions are offsets in the source."""

from __future__ import annotations

from dataclasses import dataclass

from ptxemu.syntax.ast import Int


@dataclass(slots=True, frozen=True)
class Name:
    """A register, predicate, special register or label."""

    text: str
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Not:
    """``!P0`` as an operand."""

    name: Name
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Negative:
    """``-R0``."""

    name: Name
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Address:
    """``[Ra + imm]``; ``base`` is None for a bare literal."""

    base: Name | None
    offset: int
    pos: int
    end: int


@dataclass(slots=True, frozen=True)
class Constant:
    """``c[bank][offset]``."""

    bank: int
    offset: int
    pos: int
    end: int


Operand = Name | Not | Negative | Address | Constant | Int


@dataclass(slots=True, frozen=True)
class Instruction:
    """``@!P0 OPCODE.MODIFIERS operands``; the mnemonic lies at ``name.pos``."""

    guard: tuple[Name, bool] | None
    name: Name
    operands: tuple[Operand, ...]
    pos: int
    end: int

    @property
    def opcode(self) -> str:
        return self.name.text.partition(".")[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        return tuple(self.name.text.split(".")[1:])


@dataclass(slots=True, frozen=True)
class Directive:
    """``.word arguments``."""

    name: Name
    arguments: tuple[Operand, ...]


@dataclass(slots=True, frozen=True)
class Line:
    """One line: a label, an instruction after it, or a directive."""

    label: Name | None
    statement: Instruction | Directive | None
